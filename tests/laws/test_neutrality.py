"""What stands outside the folders of the frameworks holds for every framework, and names none."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import pytest

import translator
from translator import frameworks
from translator.spec import leaves

PACKAGE = Path(translator.__file__).parent
TEMPLATES, SCHEMAS = PACKAGE.parent / "templates", PACKAGE.parent / "schemas"
OWN_NAMES = tuple(frameworks.BUILT_IN)
OWN = tuple(PACKAGE / "frameworks" / name for name in OWN_NAMES)
# The names of the frameworks, and of programs that belong to one or may become one.
NAMES = re.compile(rf"{'|'.join(frameworks.BUILT_IN)}|(?<![a-z])(?:nemo|accelerate|titan)(?![a-z])", re.IGNORECASE)
# (pattern of modules, the top-level name it is in) -> why a framework may be named there.
ALLOWED = {
    ("frameworks/__init__.py", "BUILT_IN"): "the registry itself",
    ("cli/__init__.py", "_parser"): "the first words of ttx --help say what ttx is for",
    ("cli/*.py", "EPILOG"): "the examples in ttx COMMAND --help are commands as people write them",
}


class Naming(NamedTuple):
    """A name of a framework in the code of a module."""

    module: str
    inside: str
    line: int
    text: str


def exception(naming: Naming) -> tuple[str, str] | None:
    """What allows a naming."""
    fits = (key for key in ALLOWED if fnmatchcase(naming.module, key[0]) and naming.inside == key[1])
    return next(fits, None)


def modules() -> list[Path]:
    """Every module of the package that belongs to no framework."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if not any(path.is_relative_to(folder) for folder in OWN)]


def namings(module: str, text: str) -> Iterator[Naming]:
    """Identifiers and strings that name a framework; docstrings and comments may give examples."""
    tree = ast.parse(text)
    for statement in tree.body:
        inside = _title(statement)
        documentation = {id(node.value) for node in ast.walk(statement) if _is_documentation(node)}
        for node in ast.walk(statement):
            if id(node) in documentation:
                continue
            for word in _words(node):
                if NAMES.search(word):
                    yield Naming(module, inside, getattr(node, "lineno", statement.lineno), word)


def _is_documentation(node: ast.AST) -> bool:
    """A string that is a statement: a docstring, of an attribute too."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _title(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        return target.id if isinstance(target, ast.Name) else ""
    return getattr(statement, "name", "")


def _words(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        yield node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    for name in ("id", "attr", "arg", "name", "asname", "module"):
        word = getattr(node, name, None)
        if isinstance(word, str):
            yield word


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_names_no_framework(path: Path) -> None:
    module = path.relative_to(PACKAGE).as_posix()
    assert not NAMES.search(module)
    found = namings(module, path.read_text(encoding="utf-8"))
    assert not [naming for naming in found if exception(naming) is None]


def test_every_exception_is_needed() -> None:
    found = {
        exception(naming)
        for path in modules()
        for naming in namings(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"))
    }
    assert set(ALLOWED) <= found


def test_the_fields_of_the_spec_name_none() -> None:
    assert not [leaf.path for leaf in leaves().values() if NAMES.search(f"{leaf.path} {leaf.doc} {leaf.choices}")]


def test_templates_lie_in_the_folder_of_their_framework() -> None:
    common = [path for path in TEMPLATES.rglob("*.j2") if path.relative_to(TEMPLATES).parts[0] not in OWN_NAMES]
    assert not [path for path in common if NAMES.search(path.read_text(encoding="utf-8"))]


def test_catalogues_are_generated_by_their_framework() -> None:
    generated = {name for framework in frameworks.every() for name in _generators(framework)}
    assert {path.name for path in SCHEMAS.iterdir() if path.is_dir()} <= generated
    for path in SCHEMAS.glob("*/*.json"):
        head = json.loads(path.read_text(encoding="utf-8"))
        assert head["framework"] == path.parent.name, path


def _generators(framework: object) -> list[str]:
    from translator.frameworks.base import Generated

    return list(framework.generators()) if isinstance(framework, Generated) else []


@pytest.mark.parametrize(
    "text",
    [
        "if name == 'megatron': pass",
        "MEGATRON = 1",
        "def f(torchtitan_version): pass",
        "import translator.frameworks.deepspeed.syntax",
        "from translator.frameworks.deepspeed import syntax as s",
        "x.deepspeed",
        "KEYS = {'accelerate': 1}",
        "f'of {a} and Megatron-LM'",
        "f(torchtitan=1)",
        "class C:\n    def f(self): return b'NeMo'",
    ],
)
def test_a_name_in_code_is_found(text: str) -> None:
    assert list(namings("x.py", text))


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # as megatron has it",
        'def f():\n    """As in Megatron-LM."""\n    return 1',
        'X = 1\n"""As deepspeed has it."""',
        "class C:\n    '''For torchtitan.'''\n    y: int = 0\n    '''megatron'''",
        "accelerated, accelerator, nemophila = 'accelerates', 1, 2",
    ],
)
def test_an_example_in_words_is_none(text: str) -> None:
    assert not list(namings("x.py", text))


# (folder, framework whose modules it imports) -> why.
BORROWED = {("deepspeed/megatron_fork", "megatron"): "a fork's scripts hold Megatron-LM's arguments, read by its rows"}


def test_a_framework_does_without_the_others() -> None:
    found: set[tuple[str, str]] = set()
    for name, folder in zip(OWN_NAMES, OWN, strict=True):
        for path in folder.rglob("*.py"):
            home = path.relative_to(PACKAGE / "frameworks").parent.as_posix()
            found |= {(home, other) for other in imported(path) if other != name}
    assert found == set(BORROWED)


def imported(path: Path) -> Iterator[str]:
    """The built-in frameworks whose modules a module imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for module in names:
            parts = module.split(".")
            if parts[:2] == ["translator", "frameworks"] and parts[2:3] and parts[2] in OWN_NAMES:
                yield parts[2]
