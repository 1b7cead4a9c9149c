"""The spec as a YAML file: a source format on equal terms with the frameworks'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from translator.errors import SourceError
from translator.native import Origin
from translator.reading import LeafOrigin, Reading
from translator.source import Source
from translator.spec import leaves

if TYPE_CHECKING:
    from translator.spec import Spec

MAX_SPEC_BYTES = 1024 * 1024


@cache
def sections() -> frozenset[str]:
    """Names that may stand at the top level of a spec."""
    return frozenset((*(leaf.partition(".")[0] for leaf in leaves()), "extras"))


def is_spec(source: Source) -> bool:
    """Whether the text is a spec: YAML whose top level names sections of the spec and nothing else; cheap."""
    if not source.name.endswith((".yaml", ".yml")) or len(source.text) > MAX_SPEC_BYTES:
        return False
    keys = [line.partition(":")[0] for line in source.text.splitlines() if line[:1].isalpha() and ":" in line]
    return bool(keys) and all(key in sections() for key in keys)


def read_spec(sources: Sequence[Source], overrides: Mapping[str, Any]) -> Reading:
    """Merge spec files from left to right with OmegaConf, resolve ``${...}``, apply overrides.

    Raises SourceError with the file and, for a syntax error, the line.
    """
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    merged: Any = OmegaConf.create()
    try:
        for source in sources:
            if len(source.text) > MAX_SPEC_BYTES:
                raise SourceError(f"{source.name} is too large for a spec")
            _refuse_aliases(source)
            merged = OmegaConf.merge(merged, OmegaConf.create(source.text))
        for leaf, value in overrides.items():
            OmegaConf.update(merged, leaf, value, force_add=True)
        tree = OmegaConf.to_container(merged, resolve=True)
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SourceError(f"not valid YAML:{line} {getattr(error, 'problem', error)}") from None
    except (OmegaConfBaseException, AttributeError, RecursionError) as error:
        raise SourceError(f"not a spec: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from None
    if not isinstance(tree, dict):
        raise SourceError("not a spec: the top level is no mapping")
    return _reading_of_tree(tree)


def _refuse_aliases(source: Source) -> None:
    """Aliases multiply (a few lines can stand for billions of nodes), and a spec has ``${...}`` instead."""
    import yaml

    for event in yaml.parse(source.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1 if event.start_mark else 0
            raise SourceError(
                f"{source.name} line {line}: YAML aliases are not read in a spec", fix="use ${path} instead"
            )


def _reading_of_tree(tree: dict[Any, Any]) -> Reading:
    from pydantic import ValidationError

    from translator.names import nearest
    from translator.spec import Spec

    try:
        spec = Spec.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        near = nearest(path, leaves()) if first["type"] == "extra_forbidden" else []
        raise SourceError(
            f"{path}: {first['msg']}", fix=f"nearest: {', '.join(near)}" if near else "see: ttx fields"
        ) from None
    return reading_of(spec)


def reading_of(spec: Spec) -> Reading:
    """A reading of a spec built in code."""
    from translator.spec import flatten

    flat = flatten(spec)
    origins = {leaf: LeafOrigin(Origin.EXPLICIT, leaf) for leaf, value in flat.items() if value is not None}
    return Reading("spec", "1", flat, origins, extras=dict(spec.extras))


def to_yaml(reading: Reading) -> str:
    """A spec file: every leaf that is stated, section by section, extras last."""
    import yaml

    from translator.spec import nest

    tree: dict[str, Any] = nest(reading.flat)
    if reading.extras:
        tree["extras"] = reading.extras
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=100)
