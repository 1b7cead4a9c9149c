"""The spec as a YAML file: a source format on equal terms with the frameworks'."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from translator.errors import SourceError, UsageError
from translator.native import Origin
from translator.reading import LeafOrigin, Reading
from translator.source import Source
from translator.spec import leaves

if TYPE_CHECKING:
    from translator.spec import Spec

VERSION = "1"
MAX_SPEC_BYTES = 1024 * 1024
MAX_DEPTH = 20
# What all ${...} of a spec may grow to, in characters and items.
MAX_RESOLVED = 200_000


@cache
def sections() -> frozenset[str]:
    """Names that may stand at the top level of a spec."""
    return frozenset((*(leaf.partition(".")[0] for leaf in leaves()), "extras"))


def is_spec(source: Source) -> bool:
    """Whether the text is a spec: YAML whose top level names sections of the spec and nothing else; cheap."""
    if not source.name.endswith((".yaml", ".yml", "<stdin>")) or len(source.text) > MAX_SPEC_BYTES:
        return False
    lines = source.text.splitlines()
    keys = [line.partition(":")[0] for line in lines if line[:1].isalpha()]
    return bool(keys) and all(key in sections() for key in keys)


def read_spec(sources: Sequence[Source], overrides: Mapping[str, Any]) -> Reading:
    """Merge spec files from left to right with OmegaConf, resolve ``${...}``, apply overrides.

    Raises SourceError with the file and, for a syntax error, the line; UsageError for an override of no field.
    """
    import yaml
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    for leaf in overrides:
        if leaf not in leaves() and not leaf.startswith("extras."):
            raise unknown_field(leaf)
    merged: Any = OmegaConf.create()
    name = "the spec"
    try:
        for source in sources:
            name = source.name
            _refuse_bombs(source)
            merged = OmegaConf.merge(merged, _mapping(OmegaConf.create(source.text), name))
        for leaf, value in overrides.items():
            OmegaConf.update(merged, leaf, value, force_add=True)
        _Interpolations(OmegaConf.to_container(merged, resolve=False)).check()
        tree = OmegaConf.to_container(merged, resolve=True)
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise SourceError(f"{name}{line}: not valid YAML: {getattr(error, 'problem', error)}") from None
    except (
        OmegaConfBaseException,
        AssertionError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:
        said = str(error).splitlines()
        raise SourceError(f"{name} is no spec: {said[0] if said else type(error).__name__}") from None
    assert isinstance(tree, dict)
    return _reading_of_tree(tree, name)


def unknown_field(leaf: str) -> UsageError:
    """The error for a field that the spec does not have, with the nearest names."""
    from translator.names import nearest

    near = nearest(leaf, leaves())
    return UsageError(
        f"the spec has no field {leaf!r}", fix=f"nearest: {', '.join(near)}" if near else "see: ttx fields"
    )


def _mapping(tree: Any, name: str) -> Any:
    from omegaconf import DictConfig

    if not isinstance(tree, DictConfig):
        raise SourceError(f"{name} is no spec: the top level is no mapping")
    return tree


def _refuse_bombs(source: Source) -> None:
    """Aliases multiply (a few lines can stand for billions of nodes), and a spec has ``${...}`` instead."""
    import yaml

    if len(source.text) > MAX_SPEC_BYTES:
        raise SourceError(f"{source.name} is too large for a spec")
    depth = 0
    for event in yaml.parse(source.text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise SourceError(f"{source.name}:{line}: YAML aliases are not read in a spec", fix="use ${path} instead")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise SourceError(f"{source.name}:{line}: nested too deeply for a spec")


class _Interpolations:
    """Sees that resolving all ``${...}`` of a tree ends, stays small, and only refers to the tree."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree
        self._size: dict[tuple[str, ...], int] = {}
        self._open: set[tuple[str, ...]] = set()

    def check(self) -> None:
        """Raises SourceError when one is no plain path, refers to itself, or the whole grows too large."""
        self._measure(self._tree, ())

    def _measure(self, node: Any, path: tuple[str, ...]) -> int:
        if path in self._size:
            return self._size[path]
        if path in self._open:
            raise SourceError(f"${{...}} at {'.'.join(path)} refers to itself")
        self._open.add(path)
        if isinstance(node, dict | list):
            items = node.items() if isinstance(node, dict) else enumerate(node)
            size = 1 + sum(self._measure(value, (*path, str(key))) for key, value in items)
        elif isinstance(node, str):
            size = len(node) + sum(self._measure(*self._target(name, path)) for name in _names(node))
        else:
            size = 1
        if size > MAX_RESOLVED:
            raise SourceError("the ${...} of the spec grow too large")
        self._open.discard(path)
        self._size[path] = size
        return size

    def _target(self, name: str, path: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
        """The node that a path names; an absent one counts nothing, OmegaConf reports it."""
        bare = name.lstrip(".")
        ups = len(name) - len(bare)
        start = path[: max(len(path) - ups, 0)] if ups else ()
        parts = [part for part in bare.replace("[", ".").replace("]", "").split(".") if part]
        node, found = self._tree, (*start, *parts)
        for part in found:
            if isinstance(node, dict) and part in node:
                node = node[part]
            elif isinstance(node, list) and part.isdecimal() and int(part) < len(node):
                node = node[int(part)]
            else:
                return None, ("", name)
        return node, found


def _names(text: str) -> Iterator[str]:
    at = text.find("${")
    while at >= 0:
        before = text[:at]
        if (len(before) - len(before.rstrip("\\"))) % 2:  # \${ is the text ${ itself
            at = text.find("${", at + 2)
            continue
        end = text.find("}", at)
        name = text[at + 2 : end] if end >= 0 else text[at + 2 :]
        if ":" in name or "$" in name:
            # ${oc.env:NAME} and its like would let a file ask for more than itself.
            raise SourceError(f"${{{name}}}: only ${{section.field}} is read in a spec")
        yield name.strip()
        at = text.find("${", at + 2)


def _reading_of_tree(tree: dict[Any, Any], name: str) -> Reading:
    from pydantic import ValidationError

    from translator.names import nearest
    from translator.spec import Spec

    try:
        spec = Spec.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        near = nearest(path, leaves()) if first["type"] == "extra_forbidden" else []
        said = "no field of the spec" if first["type"] == "extra_forbidden" else first["msg"]
        raise SourceError(
            f"{name}: {path}: {said}", fix=f"nearest: {', '.join(near)}" if near else "see: ttx fields"
        ) from None
    return reading_of(spec)


def reading_of(spec: Spec) -> Reading:
    """A reading of a spec built in code."""
    from translator.spec import flatten

    flat = flatten(spec)
    origins = {leaf: LeafOrigin(Origin.EXPLICIT, leaf) for leaf, value in flat.items() if value is not None}
    return Reading("spec", VERSION, flat, origins, extras=dict(spec.extras))


def tree_of(reading: Reading) -> dict[str, Any]:
    """The spec as nested dictionaries: what is stated, extras last; numbers are of their leaf's type."""
    from translator.spec import nest

    known = leaves()
    tree = nest(
        {leaf: float(value) if _is_whole(known[leaf].kind, value) else value for leaf, value in reading.flat.items()}
    )
    return {**tree, "extras": reading.extras} if reading.extras else tree


def _is_whole(kind: str, value: object) -> bool:
    return kind == "float" and type(value) is int and abs(value) < 2**53


def to_yaml(reading: Reading) -> str:
    """A spec file: every leaf that is stated, section by section, extras last."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Plain YAML; words that OmegaConf would take for numbers are quoted, tuples are lists."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
        style = '"' if not value.isprintable() else "'" if _like_a_number(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    Dumper.add_representer(tuple, lambda dumper, value: dumper.represent_list(value))
    Dumper.add_multi_representer(object, lambda dumper, value: text(dumper, str(value)))
    return yaml.dump(_literal(tree_of(reading)), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)


def _like_a_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _literal(value: Any) -> Any:
    """The value with every ``${`` escaped, so that reading the file gives it back as it stands."""
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_literal(item) for item in value]
    if isinstance(value, str) and "${" in value:
        return re.sub(r"(\\*)\$\{", r"\1\1\\${", value)
    return value
