"""The catalogues against the real parsers, option by option."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from translator.catalogue import Catalogue, Entry, flavors, load
from translator.frameworks.catalogues import generate
from translator.resources import schema_path

pytestmark = pytest.mark.oracle

DRIVERS = Path(__file__).parent / "drivers"
TITAN_FAMILIES = ("llama3", "llama4", "qwen3", "deepseek_v3", "gpt_oss")
MEGATRON_VERSION = "0.18.0"
# Names of converters that upstream writes inside a function, where the catalogue names the enum they look up.
NAMELESS = {"enum_type_handler", "<lambda>"}


def oracle_env(name: str) -> str:
    """The value of an environment variable that names a part of the oracle; skips the test without it."""
    value = os.environ.get(name)
    if value:
        return value
    if os.environ.get("TTX_ORACLE_REQUIRED") == "1":
        pytest.fail(f"{name} is not set")
    pytest.skip(f"{name} is not set")


def ask(python: str, driver: str, *arguments: str) -> Any:
    """What a driver prints, from a clean environment."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "COV_"))}
    done = subprocess.run(
        [python, str(DRIVERS / driver), *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def parser() -> Any:
    python, source = oracle_env("TTX_ORACLE_MEGATRON_PYTHON"), oracle_env("TTX_ORACLE_MEGATRON_SRC")
    return ask(python, "megatron_dump_parser.py", source)


@pytest.fixture(scope="module")
def megatron_catalogue() -> Catalogue:
    return load("megatron", os.environ.get("TTX_ORACLE_MEGATRON_VERSION", MEGATRON_VERSION))


def facts(entry: Entry) -> dict[str, Any]:
    """An entry in the words of the driver. Signals are the machine's own, so the catalogue leaves them open."""
    bare = entry.action in {"store_true", "store_false"}
    return {
        "flags": list(entry.flags),
        "dest": entry.address,
        "action": entry.action,
        "default": entry.default,
        "nargs": entry.arity,
        "const": entry.action == "store_true" if bare else entry.const,
        "choices": None if entry.choices is None or entry.type_name == "Signals" else list(entry.choices),
        "type": entry.type_name if entry.takes_value else None,
    }


def told(action: dict[str, Any], entry: Entry) -> dict[str, Any]:
    """An action in the same words; a missing type is text, and a nameless converter is the enum it looks up."""
    row = {key: value for key, value in action.items() if key != "required"}
    if action["type"] in NAMELESS and entry.kind in {"enum", "custom"}:
        row["type"] = entry.type_name
    elif action["nargs"] == 0:  # upstream may name a type, which then does nothing
        row["type"] = None
    elif action["type"] is None:
        row["type"] = "str"
    if entry.type_name == "Signals":
        row["choices"] = None
    return row


@pytest.mark.parametrize("group", ["core", "modelopt"])
def test_every_megatron_action(parser: Any, megatron_catalogue: Catalogue, group: str) -> None:
    wrong = []
    for action in parser[group]:
        entry = megatron_catalogue.by_flag(action["flags"][0])
        if entry is None:
            wrong.append((action["flags"], "unknown"))
        elif repr(facts(entry)) != repr(told(action, entry)):
            wrong.append((facts(entry), told(action, entry)))
        elif entry.conditional != (None if group == "core" else group):
            wrong.append((entry.key, entry.conditional))
    assert not wrong
    assert not [action["flags"] for action in parser[group] if action["required"]]


def test_no_option_that_megatron_does_not_have(parser: Any, megatron_catalogue: Catalogue) -> None:
    real = {action["flags"][0] for action in parser["core"]}
    assert len(real) > 400
    assert {entry.key for entry in megatron_catalogue.entries if entry.conditional is None} == real


def test_what_an_empty_command_line_gives(parser: Any, megatron_catalogue: Catalogue) -> None:
    ours = {name: megatron_catalogue.default(name) for name in parser["defaults"]}
    assert {name: repr(value) for name, value in ours.items()} == {
        name: repr(value) for name, value in parser["defaults"].items()
    }


def test_the_wheel_gives_the_shipped_catalogue_but_for_what_it_leaves_out(megatron_catalogue: Catalogue) -> None:
    source = Path(oracle_env("TTX_ORACLE_MEGATRON_SRC"))
    version = megatron_catalogue.version
    shipped = schema_path("megatron", f"{version}.json").read_text("utf-8").splitlines()
    made = generate("megatron", version, source).splitlines()
    missing = [line for line in shipped if line not in set(made)]
    assert [line for line in made if line not in set(shipped)] == []
    assert all('"conditional": "modelopt"' in line for line in missing)


@pytest.fixture(scope="module", params=["0.1.0", "0.2.2"])
def titan(request: pytest.FixtureRequest) -> tuple[str, Any]:
    version = str(request.param)
    python = oracle_env(f"TTX_ORACLE_TORCHTITAN_{version.replace('.', '')}_PYTHON")
    families = TITAN_FAMILIES if version == "0.2.2" else ("llama3",)
    return version, ask(python, "torchtitan_dump_config.py", *families)


def test_every_torchtitan_field(titan: tuple[str, Any]) -> None:
    version, real = titan
    catalogue = load("torchtitan", version)
    assert list(catalogue.addresses()) == sorted(real["options"])
    for address, field in real["options"].items():
        (entry,) = catalogue.by_address(address)
        assert (address, repr(entry.default)) == (address, repr(field["default"]))
        # typing prints a union with a Literal the older way
        wrapped = re.fullmatch(r"Optional\[(.*)\]", field["type"])
        stated = f"{wrapped[1]} | None" if wrapped else field["type"]
        assert (address, entry.type_name.replace('"', "'")) == (address, stated)


def test_every_torchtitan_flavor(titan: tuple[str, Any]) -> None:
    version, real = titan
    ours = flavors("torchtitan", version)
    assert real["flavors"]
    for family, table in real["flavors"].items():
        assert {name: item for name, item in ours[family].items() if name != "_defaults"} == table
