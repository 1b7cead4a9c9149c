"""torchtitan 0.3.0's catalogue, classes and registries as read statically, against the real package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from environments import OracleEnvironment, OracleServer, environment

from translator.catalogue import load
from translator.catalogue.classes import Classes, classes
from translator.catalogue.python_tree import PythonTree
from translator.frameworks.catalogues import generate
from translator.frameworks.torchtitan.extract_python import generate_classes
from translator.pyconfig import MISSING, Call, Function, Node, Partial, Symbol, Unknown, evaluate
from translator.resources import schema_path

pytestmark = pytest.mark.oracle

VERSION = "0.3.0"
PACKAGES = ("llama3", "qwen3", "deepseek_v3", "gpt_oss", "muse_glimmer")
# What the environment goes without; modules that import it cannot be asked.
ABSENT = {"torchvision", "transformers", "fla", "torch_checkpointing.dtensor_resharder"}
# Classes that upstream defines only where torchao is installed.
WITH_TORCHAO = {
    f"torchtitan.components.quantization.{name}.Config"
    for name in ("float8.Float8Linear", "mx.MXFP8Linear", "nvfp4.NVFP4Linear")
}
# Constants of torch's own, whose values the wheel does not have.
CONSTANTS = {"torch.nn.attention.flex_attention._DEFAULT_SPARSE_BLOCK_SIZE": 128}


@pytest.fixture(scope="module")
def package(torchtitan_030: OracleServer) -> OracleEnvironment:
    return environment("torchtitan-0.3.0")


@pytest.fixture(scope="module")
def known() -> Classes:
    return classes("torchtitan", VERSION)


def modules(known: Classes) -> list[str]:
    """The modules that define the known classes."""
    found = set()
    for name in known.rows:
        parts = name.removesuffix(".Config").split(".")
        found.add(".".join(parts[:-1]))
    return sorted(found)


@pytest.fixture(scope="module")
def real(package: OracleEnvironment, known: Classes) -> dict[str, Any]:
    names = sorted({name for row in known.rows.values() for name in row["imports"]})
    return package.run("torchtitan_dump_classes.py", [*modules(known), "--", *names])


def default_row(field: dict[str, Any]) -> Any:
    """A field's default in its JSON form."""
    return {"symbol": field["dynamic"]} if "dynamic" in field else field.get("default")


def filled(known: Classes, row: Any) -> Any:
    """A default with the defaults of its own class filled in, as the real object has them."""
    if isinstance(row, list):
        return [filled(known, item) for item in row]
    if isinstance(row, dict) and row.keys() == {"symbol"} and row["symbol"] in CONSTANTS:
        return CONSTANTS[row["symbol"]]
    if isinstance(row, dict) and row.keys() == {"class", "fields"}:
        fields = known.rows[row["class"]]["fields"]
        return {
            "class": row["class"],
            "fields": {
                name: filled(known, row["fields"].get(name, default_row(field))) for name, field in fields.items()
            },
        }
    if isinstance(row, dict):
        return {name: filled(known, item) for name, item in row.items()}
    return row


def test_every_class_and_default(real: dict[str, Any], known: Classes) -> None:
    importable = {name for name in real["classes"] if name in known.rows}
    assert len(importable) > 120
    wrong = []
    for name in sorted(importable):
        row, ours = real["classes"][name], known.rows[name]
        assert list(ours["fields"]) == list(row["fields"]), name
        assert ours["bases"] == row["bases"], name
        for field, stated in ours["fields"].items():
            truth = row["fields"][field]
            if "dynamic" in stated:
                mine: Any = {"default": filled(known, default_row(stated))}
            else:
                mine = {key: filled(known, item) for key, item in stated.items() if key != "type"}
            if repr(mine) != repr(truth):
                wrong.append((name, field, mine, truth))
    assert not wrong


def test_every_importable_class_is_known(real: dict[str, Any], known: Classes) -> None:
    assert set(real["classes"]) - set(known.rows) == set()
    assert {reason.split("'")[1] for reason in real["failed"].values()} <= ABSENT
    missing = {name for name in known.rows if name not in real["classes"]}
    assert {name for name in missing if not name.startswith(tuple(real["failed"]))} == WITH_TORCHAO


def test_every_import_path(real: dict[str, Any], known: Classes) -> None:
    asked = {name for canonical in real["classes"] for name in known.rows[canonical]["imports"]}
    wrong = {
        name
        for name in asked
        if real["names"].get(name) not in {None, known.canonical(f"{name}.Config"), known.canonical(name)}
    }
    assert not wrong
    assert len(asked & real["names"].keys()) > 200


def test_every_option_of_a_bare_trainer(real: dict[str, Any]) -> None:
    catalogue = load("torchtitan", VERSION)
    ours = {
        entry.address: entry.default
        for entry in catalogue.entries
        if not entry.address.startswith("model_spec") and in_default(entry.address, entry.conditional, catalogue)
    }
    truth = {path: value for path, value in real["trainer"].items() if path != "model_spec"}
    assert len(truth) > 100
    assert {path: repr(value) for path, value in ours.items()} == {path: repr(value) for path, value in truth.items()}


def in_default(address: str, conditional: str | None, catalogue: Any) -> bool:
    """Whether the default classes have the option."""
    if conditional is None:
        return True
    parts = address.split(".")
    holders = [".".join(parts[:end]) for end in range(1, len(parts))]
    held = [catalogue.default(name) for name in reversed(holders) if name in catalogue]
    wanted = [owners.split("|") for owners in conditional.split(" in ")]
    return all(default in owners for default, owners in zip(held, wanted, strict=False))


def test_the_wheel_gives_the_shipped_files(package: OracleEnvironment) -> None:
    source = package.source
    for name, text in (
        (f"{VERSION}.json", generate("torchtitan", VERSION, source)),
        (f"classes-{VERSION}.json", generate_classes(VERSION, source)),
        (f"flavors-{VERSION}.json", generate("torchtitan", VERSION, source, "flavors")),
    ):
        assert schema_path("torchtitan", name).read_text("utf-8") == text, name


class WheelResolver:
    """The wheel's own source behind every import, the catalogue's classes where it is not read."""

    def __init__(self, tree: PythonTree) -> None:
        self._tree = tree

    def module(self, dotted: str, importing_file: str) -> tuple[str, str] | None:
        return self._tree.module(dotted, importing_file)

    def default(self, cls: str, field: str) -> object:
        return MISSING

    def call(self, dotted: str, args: list[object], kwargs: dict[str, object], place: Any) -> object:
        return self._tree.call(dotted, args, kwargs, place)

    def is_config(self, dotted: str) -> bool:
        return False


def flat(value: object, known: Classes, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values below a node, by dotted path, defaults filled in."""
    if isinstance(value, Node):
        for name in known.fields(value.cls) or tuple(value.fields):
            item = value.fields[name] if name in value.fields else known.default(value.cls, name)
            if item is not MISSING:
                yield from flat(item, known, f"{path}.{name}" if path else name)
    elif isinstance(value, list | tuple) and any(isinstance(item, Node) for item in value):
        for index, item in enumerate(value):
            yield from flat(item, known, f"{path}[{index}]")
    else:
        yield path, value


def told(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of the real configuration in the same form."""
    if isinstance(value, dict) and not path.endswith("kwargs"):
        for name, item in value.items():
            yield from told(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from told(item, f"{path}[{index}]")
    else:
        yield path, value


def as_lists(value: Any) -> Any:
    """A value as JSON passes it on."""
    if isinstance(value, list | tuple):
        return [as_lists(item) for item in value]
    return {name: as_lists(item) for name, item in value.items()} if isinstance(value, dict) else value


def registry_functions(source: Path, family: str) -> list[str]:
    from translator.pyconfig import functions

    file = source / "torchtitan" / "models" / family / "config_registry.py"
    return [item.name for item in functions(file.read_text("utf-8"), file.name)]


@pytest.mark.parametrize("family", PACKAGES)
def test_registry_functions_as_evaluated(
    family: str, torchtitan_030: OracleServer, package: OracleEnvironment, known: Classes, record_property: Any
) -> None:
    source = package.source
    module = f"torchtitan.models.{family}.config_registry"
    file = f"torchtitan/models/{family}/config_registry.py"
    text = (source / file).read_text("utf-8")
    compared = opened = 0
    for name in registry_functions(source, family):
        answer = torchtitan_030.request("resolve", module=family, config=name)
        found = evaluate(text, file, name, WheelResolver(PythonTree(source)), module_name=module)
        if not answer["ok"]:  # what the real package refuses here for want of a GPU or a package
            continue
        assert isinstance(found.value, Node), (name, found.value)
        ours = {path: item for path, item in flat(found.value, known) if not path.startswith("model_spec.")}
        real = {path: item for path, item in told(answer["config"]) if not path.startswith("model_spec.")}
        wrong = {}
        for path, item in real.items():
            mine = ours.get(path, MISSING)
            if isinstance(mine, Unknown | Call):
                opened += 1
            elif isinstance(mine, Symbol | Partial | Function):
                assert "<" in str(item) or "." in str(item), (name, path, item)
            else:
                compared += 1
                if repr(as_lists(mine)) != repr(item):
                    wrong[path] = (mine, item)
        assert not wrong, (name, wrong)
    record_property("compared", compared)
    record_property("open", opened)
    print(f"{family}: {compared} values compared, {opened} open")
    assert compared > 100
    assert opened == 0
