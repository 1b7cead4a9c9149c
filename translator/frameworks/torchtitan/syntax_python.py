"""Python configurations of torchtitan 0.3.0 (``config_registry`` functions): text to options, each with its place.

Nothing is run or imported: the function is evaluated from its text, with what is known of torchtitan's classes and
helper functions, and with the modules beside the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from translator.errors import SourceError
from translator.findings import Finding, Place
from translator.frameworks.torchtitan.launch_facts import comment_lines, hints, read_hints
from translator.native import Native

if TYPE_CHECKING:
    from translator.frameworks.torchtitan.python_resolver import TitanResolver
    from translator.pyconfig.source import FunctionInfo
    from translator.shell import Word

VERSIONS = ("0.3.0",)
DEFAULT_VERSION = "0.3.0"
_IMPORT = re.compile(r"^\s*(?:from|import)\s+torchtitan\b", re.MULTILINE)
_RELATIVE_REGISTRY = re.compile(r"^from\s+\.\s+import\b[^\n]*\bmodel_registry\b", re.MULTILINE)
_RETURNS = re.compile(r"(?:^|[.\s\"'])(?:\w*Trainer\.Config|\w*TrainerConfig)\b")
_DEFINITION = re.compile(r"^def\s+(\w+)\s*\(\s*\)", re.MULTILINE)
# A file whose functions do not say what they return has few of them, or the person names one.
_TRIED = 12
# A file without any of these makes no configuration, nor changes one that it gets from elsewhere.
_MAKES = re.compile(r"Trainer\.Config\b|TrainerConfig\b|\bconfig_registry\b")
_NO_PYTHON = (".yaml", ".yml", ".json", ".toml", ".md", ".rst", ".txt")
REGISTRY_FILE = "config_registry.py"


def sniff(path: str, text: str) -> float:
    """How surely a text is a torchtitan configuration in Python, from 0 to 1."""
    if path.endswith(_NO_PYTHON) or (not path.endswith(".py") and not _IMPORT.search(text)):
        return 0.0
    score = 0.3 * bool(_IMPORT.search(text)) + 0.4 * bool(re.search(r"\bTrainer\.Config\b|TrainerConfig\b", text))
    score += 0.2 * bool(re.search(r"\bmodel_registry\b|\bModelSpec\b", text)) + 0.1 * path.endswith(".py")
    return min(1.0, score) if _DEFINITION.search(text) or score > 0.5 else score / 2


def guess_version(text: str) -> str:
    """The version that a hint in the text names, else 0.3.0: the only one that is configured in Python."""
    said = hints(line for line, _ in comment_lines(text)).get("version")
    return said if said in VERSIONS else DEFAULT_VERSION


def read_source(
    path: str,
    text: str,
    *,
    function: str | None = None,
    version: str = DEFAULT_VERSION,
    world_size: int | None = None,
    overrides: Sequence[str | Word] = (),
    variables: Mapping[str, str] | None = None,
    read_sibling: Callable[[str], str | None] | None = None,
    inside: str = "",
    native: Native | None = None,
) -> Native:
    """Read a configuration function: every stated option with its place, then the overrides of the command line.

    ``function`` names the function where the file has several. ``overrides`` are words as torchtitan takes them
    (``--training.steps=100``, ``activation-checkpoint:full``); ``variables`` the environment as far as it is given;
    ``inside`` the path of the file below the folder that ``read_sibling`` reads from, when it is not its bare name.
    ``native`` is what a launch line already said. Raises `SourceError` when the text is no Python, has no such
    function, or several and none is named; whatever else is wrong is a finding.
    """
    from translator.catalogue import load
    from translator.frameworks.torchtitan.python_options import Options
    from translator.frameworks.torchtitan.python_resolver import TitanResolver
    from translator.pyconfig import Node, Unknown, evaluate

    native = native or Native("torchtitan", version)
    module = _module_name(path, text, version, read_sibling)
    resolver = TitanResolver(version, path, module_name=module, read_sibling=read_sibling, inside=inside)
    name = function or _only_function(path, text, resolver, module)
    _demand(path, text, name)
    found = evaluate(text, path, name, resolver, module_name=module, environment=variables or {})
    native.findings.extend(found.findings)
    root = found.value
    if isinstance(root, Unknown):
        raise SourceError(f"{name} cannot be evaluated: {root.reason}", place=root.place)
    if not isinstance(root, Node) or not _is_trainer(root, resolver):
        kind = root.cls if isinstance(root, Node) else type(root).__name__
        raise SourceError(f"{name} returns a {kind}, not a Trainer.Config", fix="name another with FILE.py:FUNCTION")
    Options(native, resolver.facts, load("torchtitan", version)).read(root)
    _without_repeats(native)
    read_hints(native, comment_lines(text), path, world_size)
    if overrides:
        from translator.frameworks.torchtitan.overrides_tyro import apply

        apply(native, overrides, load("torchtitan", version))
    return native


def _without_repeats(native: Native) -> None:
    seen: set[tuple[str, str, Place | None]] = set()
    kept: list[Finding] = []
    for finding in native.findings:
        key = (finding.code, finding.message, finding.place)
        if key not in seen:
            seen.add(key)
            kept.append(finding)
    native.findings[:] = kept


def _is_trainer(root: object, resolver: TitanResolver) -> bool:
    from translator.frameworks.torchtitan.python_resolver import TRAINER

    names = (root.cls, *root.bases)  # type: ignore[attr-defined]
    return any(
        resolver.facts.is_subclass(name, TRAINER) or name.endswith(("Trainer.Config", "TrainerConfig"))
        for name in names
    )


def _demand(path: str, text: str, name: str) -> None:
    """See that the function is there. Raises `SourceError`."""
    from translator.pyconfig import functions

    known = functions(text, path)
    if name in {item.name for item in known}:
        return
    if re.search(rf"^(?:async\s+)?def\s+{re.escape(name)}\b", text, re.MULTILINE):
        message = f"{path}: {name} takes arguments, and a configuration function takes none"
    elif re.search(rf"\b{re.escape(name)}\b", text) or re.search(r"^from\s+\S+\s+import\s+\*", text, re.MULTILINE):
        return  # bound by an import or an assignment
    else:
        message = f"{path} has no function {name}"
    raise SourceError(message, fix=_listed(_candidates(known)))


def _candidates(known: Iterable[FunctionInfo]) -> list[str]:
    """Functions that say that they return a configuration; else all that others may call."""
    public = [item for item in known if not item.name.startswith("_")]
    said = [item.name for item in public if _RETURNS.search(item.returns)]
    return said or [item.name for item in public if not item.returns]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return f"it has: {shown}" if names else "it has no function that takes no arguments"


def configurations(
    path: str, text: str, *, version: str = DEFAULT_VERSION, read_sibling: Callable[[str], str | None] | None = None
) -> list[str]:
    """The functions of a file that return a configuration: those that say so, else those that are found to.

    Raises `SourceError` when the text is no Python.
    """
    from translator.frameworks.torchtitan.python_resolver import TitanResolver
    from translator.pyconfig import functions

    if _MAKES.search(text) is None:
        return []
    known = functions(text, path)
    names = _candidates(known)
    if not names or any(_RETURNS.search(item.returns) for item in known):
        return names
    module = _module_name(path, text, version, read_sibling)
    resolver = TitanResolver(version, path, module_name=module, read_sibling=read_sibling)
    return [name for name in names[:_TRIED] if _returns_trainer(path, text, name, resolver, module)]


def _only_function(path: str, text: str, resolver: TitanResolver, module: str) -> str:
    """The one configuration function of a file. Raises `SourceError` when there are several or none."""
    from translator.pyconfig import functions

    known = functions(text, path)
    names = _candidates(known)
    if len(names) > 1 and not any(_RETURNS.search(item.returns) for item in known):
        names = [name for name in names[:_TRIED] if _returns_trainer(path, text, name, resolver, module)] or names
    if len(names) == 1:
        return names[0]
    if not names:
        raise SourceError(f"{path} has no configuration function", fix="one that takes no arguments")
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    fix = f"name one: {path}:{names[0]}; it has {shown}"
    raise SourceError(f"{path} has {len(names)} configuration functions", fix=fix)


def _returns_trainer(path: str, text: str, name: str, resolver: TitanResolver, module: str) -> bool:
    from translator.pyconfig import Limits, Node, evaluate

    limits = Limits(steps=50_000, seconds=1.0)
    found = evaluate(text, path, name, resolver, module_name=module, limits=limits).value
    return isinstance(found, Node) and _is_trainer(found, resolver)


def _module_name(path: str, text: str, version: str, read_sibling: Callable[[str], str | None] | None) -> str:
    """The dotted name of a registry of torchtitan's own, or of a copy of one: its family is known by folder or imports.

    Empty for every other file; also where the folder has a registry of its own that torchtitan does not know.
    """
    if not _RELATIVE_REGISTRY.search(text):
        return ""
    from translator.catalogue.classes import classes

    facts = classes("torchtitan", version)
    families = [name.split(".")[2] for name in facts.functions if name.endswith(".model_registry")]
    folder = path.replace("\\", "/").rpartition("/")[0].rpartition("/")[2]
    if folder in families:
        return f"torchtitan.models.{folder}.config_registry"
    if read_sibling is not None and read_sibling("__init__.py") is not None:
        return ""
    for family in sorted(families, key=len, reverse=True):
        own = {name.split(".")[4] for name in facts.rows if name.startswith(f"torchtitan.models.{family}.model.")}
        imported = re.search(r"^from\s+\.model\s+import\s+([^\n]+)", text, re.MULTILINE)
        if imported and own & set(re.findall(r"\w+", imported[1])):
            return f"torchtitan.models.{family}.config_registry"
        if re.search(rf"^def\s+_?{re.escape(family)}_", text, re.MULTILINE):
            return f"torchtitan.models.{family}.config_registry"
    return ""
