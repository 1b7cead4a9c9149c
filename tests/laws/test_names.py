"""Finding codes: documented once, used, and nothing else is used."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import translator
from translator.codes import all_codes

CODE = re.compile(r"[\"']([RSLDMP]\d{3})[\"']")
PACKAGE = Path(translator.__file__).parent


def literals() -> dict[str, set[str]]:
    """Codes that stand as literals in the package, with the modules, those that document them left out."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        if path.name == "codes.py":
            continue
        for code in CODE.findall(path.read_text(encoding="utf-8")):
            found.setdefault(code, set()).add(path.relative_to(PACKAGE).as_posix())
    return found


def modules() -> list[str]:
    """Every module of the package that documents codes."""
    return [
        ".".join(("translator", *path.relative_to(PACKAGE).with_suffix("").parts)) for path in PACKAGE.rglob("codes.py")
    ]


def test_no_code_is_documented_twice() -> None:
    seen: dict[str, str] = {}
    for name in modules():
        for code in getattr(import_module(name), "CODES", {}):
            assert code not in seen, f"{code} is documented in {seen[code]} and {name}"
            seen[code] = name
    assert set(seen) <= set(all_codes())


def test_every_module_of_codes_is_gathered() -> None:
    known = all_codes()
    for name in modules():
        assert set(getattr(import_module(name), "CODES", {})) <= set(known), name


def test_every_code_that_is_used_is_documented() -> None:
    used = literals()
    assert not {code: used[code] for code in used.keys() - all_codes().keys()}


def test_every_code_that_is_documented_is_used() -> None:
    assert not all_codes().keys() - literals().keys()


def test_documentation_says_what_to_do() -> None:
    for code, entry in all_codes().items():
        assert len(str(entry)) > 80, code
