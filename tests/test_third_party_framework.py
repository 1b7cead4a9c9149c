"""A framework from another distribution converts from and to the built-in ones, without a line of ttx changed.

Toy's configuration is ``KEY=VALUE`` lines. It trains one kind of model, over tensor and replicated data ranks.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from translator import api, frameworks
from translator.cli import main
from translator.conversion import Conversion
from translator.errors import SourceError
from translator.findings import Place
from translator.frameworks.base import Framework, RenderContext, Rendered
from translator.ledger import Entry, summary
from translator.mapping.rows import Row, absent, choice, implied, linked, same
from translator.mapping.shared import accumulation_follows
from translator.mapping.table import Table
from translator.mapping.views import NativeView, Sink, SpecView
from translator.native import Given, Native
from translator.reading import ReadOptions
from translator.shell import evaluate
from translator.shell.launchers import SCRIPT, Launcher, roles
from translator.source import Source
from translator.spec import leaves
from translator.spec.derive import accumulation

DEFAULTS: dict[str, Any] = {"LAYERS": 12, "HIDDEN": 768, "HEADS": 12, "SEQ": 1024, "STEPS": 1000, "LR": 3e-4}
DEFAULTS |= {"TP": 1, "DP": 1, "MICRO": 1, "GLOBAL": None, "MATH": "half"}  # GLOBAL: one micro batch on every data rank
STATED: dict[str, Any] = {"LAYERS": 24, "HIDDEN": 2048, "HEADS": 16, "SEQ": 4096, "STEPS": 500, "LR": 0.0002}
STATED |= {"TP": 2, "DP": 4, "MICRO": 2, "GLOBAL": 64, "MATH": "single"}
CONFIGURATION = "\n".join(["# toy", *(f"{key}={value}" for key, value in STATED.items()), ""])
DATA = "parallel.data."
RANKS = ["parallel.world_size", *(f"{DATA}{leaf}" for leaf in ("degree", "replicate", "shard", "sharding"))]
BATCH = ["batch.micro_batch", "batch.global_batch", "batch.accumulation"]
STEPS = ["schedule.total", "schedule.unit"]


def _read_ranks(native: NativeView) -> Mapping[str, Any]:
    ranks = native("DP")
    return dict(zip(RANKS, (ranks * native("TP"), ranks, ranks, 1, "none"), strict=True))


def _write_ranks(spec: SpecView, sink: Sink) -> None:
    if spec(f"{DATA}degree") is None:
        sink.need(f"{DATA}degree", "give --world-size N")
    sink.put("DP", spec(f"{DATA}degree", 1))
    for leaf in RANKS[2:]:
        sink.short(leaf, Entry.APPROXIMATED, "every data rank holds all of the training state")
    sink.short("parallel.world_size", Entry.APPROXIMATED, "there are tensor and data ranks only")


def _read_batch(native: NativeView) -> Mapping[str, Any]:
    micro, whole = native("MICRO"), native("GLOBAL")
    return dict(zip(BATCH, (micro, whole, accumulation(whole, micro, native("DP"))), strict=True))


def _write_batch(spec: SpecView, sink: Sink) -> None:
    for option, leaf in zip(("MICRO", "GLOBAL"), BATCH[:2], strict=True):
        if spec(leaf) is not None:
            sink.put(option, spec(leaf))
    accumulation_follows(spec, sink)


def _write_steps(spec: SpecView, sink: Sink) -> None:
    if spec("schedule.unit") == "steps" and spec("schedule.total") is not None:
        sink.put("STEPS", spec("schedule.total"))
    for leaf in STEPS:
        sink.short(leaf, Entry.UNSUPPORTED, "training is counted in steps")


ROWS: tuple[Row, ...] = (
    same("LAYERS", "model.layers"),
    same("HIDDEN", "model.hidden"),
    same("HEADS", "model.heads"),
    same("SEQ", "batch.seq_len"),
    same("LR", "optimizer.lr"),
    choice("MATH", "precision.compute", {"half": "bf16", "single": "fp32"}),
    same("TP", "parallel.tensor"),
    linked(["DP"], RANKS, read=_read_ranks, write=_write_ranks),
    linked(["MICRO", "GLOBAL"], BATCH, read=_read_batch, write=_write_batch),
    linked(["STEPS"], STEPS, read=lambda native: {STEPS[0]: native("STEPS"), STEPS[1]: "steps"}, write=_write_steps),
    implied("parallel.pipeline.degree", 1, "there is no pipeline"),
    implied("parallel.context", 1, "a sequence stays on one rank"),
    implied("optimizer.name", "adamw", "AdamW is the only optimizer"),
    implied("schedule.decay", "constant", "the learning rate is constant"),
)


class Toy:
    """The whole of what a framework must provide."""

    name = "toy"
    title = "Toy"
    versions: tuple[str, ...] = ("1.0",)
    default_version = "1.0"

    def sniff(self, source: Source) -> float:
        return 1.0 if source.text.startswith("# toy\n") else 0.0

    def guess_version(self, source: Source) -> str:
        return self.default_version

    def parse(self, source: Source, version: str, options: ReadOptions) -> Native:
        native = Native(self.name, version)
        for number, line in enumerate(source.text.splitlines(), 1):
            key, equals, text = line.partition("#")[0].strip().partition("=")
            place = Place(source.name, number, 1)
            if key and not equals:
                raise SourceError(f"{key} is no KEY=VALUE", place=place)
            if key in DEFAULTS:
                native.given[key] = Given(key, self._value(key, text, place), key, place)
            elif key:
                native.unknown.append(Given(key, text, key, place))
        self.settle(native)
        return native

    @staticmethod
    def _value(key: str, text: str, place: Place) -> object:
        kind = int if DEFAULTS[key] is None else type(DEFAULTS[key])
        try:
            return kind(text)
        except ValueError:
            raise SourceError(f"{key} is no {kind.__name__}", place=place) from None

    def settle(self, native: Native) -> None:
        values: dict[str, Any] = {**DEFAULTS, **native.explicit_values()}
        if values["GLOBAL"] is None:
            values["GLOBAL"] = values["MICRO"] * values["DP"]
            native.derived["GLOBAL"] = "MICRO on each of DP ranks"
        native.values = values

    def table(self, version: str) -> Table:
        said = {leaf for row in ROWS for leaf in row.fields}
        rest = [absent(leaf, "Toy has nothing of the kind") for leaf in leaves() if leaf not in said]
        return Table(self.name, version, (*ROWS, *rest), known=DEFAULTS)

    def spelling(self, address: str, version: str) -> str:
        return address

    def default(self, address: str, version: str) -> Any:
        return DEFAULTS.get(address)

    def must_state(self, address: str, value: Any, version: str) -> bool:
        return bool(value != DEFAULTS.get(address))

    def keeps_unknown(self, version: str) -> bool:
        return False

    def render(self, sink: Sink, version: str, context: RenderContext) -> Rendered:
        stated = {key: f"{key}={value}" for key, value in sink.values.items() if self.must_state(key, value, version)}
        lines = [f"{line}  # {context.origin_of.get(key, '')}" for key, line in stated.items()]
        return Rendered("toy.conf", {"toy.conf": "\n".join(["# toy", *lines, ""])}, stated)


TOY: Framework = Toy()


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Toy as pip would install it."""
    folder = tmp_path / "site" / "toy_trainer-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-trainer\nVersion: 1.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text(f"[ttx.frameworks]\ntoy = {__name__}:TOY\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder.parent))
    _forget()
    yield
    _forget()


def _forget() -> None:
    frameworks.names.cache_clear()
    frameworks.get.cache_clear()


def in_force(found: Conversion) -> Mapping[str, object]:
    """What Toy reads from the result."""
    assert found.target == "toy"
    assert found.back.native is not None
    return found.back.native.values


def fates(found: Conversion) -> dict[str, tuple[str, str]]:
    """What became of each option; no difference goes unsaid, every stated option has one line, a loss has a reason."""
    assert not [finding.message for finding in found.findings if finding.code == "L290"]
    assert found.source.native is not None
    stated = Counter(str(given.place) for given in found.source.stated() if given.place)
    assert Counter(str(line.where) for line in found.ledger if line.where) == stated
    assert sum(summary(found.ledger).values()) == len(found.ledger)
    assert not [line.option for line in found.ledger if line.entry.is_loss and not line.note]
    return {line.option: (line.entry.value, line.target) for line in found.ledger}


def test_it_is_known() -> None:
    assert frameworks.names() == (*frameworks.BUILT_IN, "toy")
    assert frameworks.detect(Source("toy.conf", CONFIGURATION)) is frameworks.get("toy") is TOY


def test_from_megatron(examples: Path) -> None:
    found = api.convert(str(examples / "llama3-8b-megatron" / "train.sh"), "toy")
    wanted = {"LAYERS": 32, "HIDDEN": 4096, "HEADS": 32, "SEQ": 8192, "STEPS": 25000, "TP": 2, "DP": 4, "GLOBAL": 512}
    assert in_force(found) == {**DEFAULTS, **wanted}
    became = fates(found)
    assert became["--num-layers"] == ("exact", "LAYERS=32")
    assert became["--tensor-model-parallel-size"] == ("exact", "TP=2")
    assert became["--rotary-base"] == ("unsupported", "")
    assert became["--lr-decay-style"][0] == "unsupported"
    assert became["--use-distributed-optimizer"][0] == "approximated"


def test_from_torchtitan(examples: Path) -> None:
    source = examples / "llama3-8b-torchtitan" / "llama3_8b_fp8.toml"
    found = api.convert(str(source), "toy", options=ReadOptions(world_size=64))
    wanted = {"LAYERS": 32, "HIDDEN": 4096, "HEADS": 32, "SEQ": 8192, "STEPS": 100000, "TP": 2, "DP": 32}
    assert in_force(found) == {**DEFAULTS, **wanted, "MICRO": 2, "GLOBAL": 512}
    became = fates(found)
    assert became["training.seq_len"] == ("exact", "SEQ=8192")
    assert became["model.converters"][0] == "unsupported"


@pytest.mark.parametrize("target", ["torchtitan", "torchtitan@0.3.0", "megatron", "toy"])
def test_there_and_back(target: str) -> None:
    there = api.convert(Source("toy.conf", CONFIGURATION), target)
    became = fates(there)
    assert became.keys() >= STATED.keys()
    assert became["SEQ"][0] == became["TP"][0] == "exact"
    assert "4096" in became["SEQ"][1]
    back = api.convert(there.back, "toy")
    fates(back)
    assert in_force(back) == STATED


def test_the_command(examples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script, toy = examples / "llama3-8b-megatron" / "train.sh", tmp_path / "toy.conf"
    assert main(["convert", str(script), "--to", "toy", "-o", str(toy)]) == 1  # much of it has no counterpart
    assert "-> toy 1.0" in capsys.readouterr().err
    assert "SEQ=8192  # --seq-length\n" in toy.read_text(encoding="utf-8")
    # The toy has no word for the longest sequence, without which Megatron-LM does not start.
    assert main(["convert", str(toy), "--from", "toy", "--to", "megatron"]) == 1
    assert "--max-position-embeddings is required" in capsys.readouterr().err
    assert main(["convert", str(toy), "--from", "toy", "--to", "megatron", "model.max_positions=8192"]) == 0
    assert "--seq-length 8192" in capsys.readouterr().out
    toy.write_text("# toy\nLAYERS=many\n", encoding="utf-8")
    assert main(["convert", str(toy), "--to", "megatron"]) == 2
    assert "toy.conf:2:1" in capsys.readouterr().err


def test_fields_have_a_column_of_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["fields", "batch.seq_len"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split("\t")[-1] == "SEQ"
    assert main(["fields", "parallel.pipeline.degree", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["fields"]
    assert list(row["options"]) == list(frameworks.names())
    assert (row["options"]["toy"], row["fixed"]["toy"]) == ([], "there is no pipeline")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["fields", "batch.seq_len"]) == 0
    head = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out.splitlines()[0]).split()
    assert head[-1] == "Toy"
    assert head[3:] == [framework.title for framework in frameworks.every()]


def test_its_options_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "GLOBAL"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "GLOBAL (Toy 1.0)"
    assert {
        "default: None",
        "known since: 1.0",
        "fields: batch.micro_batch, batch.global_batch, batch.accumulation",
    } <= {*said}
    assert main(["explain", "precision.compute"]) == 0
    assert "toy: MATH\n" in capsys.readouterr().out
    assert main(["explain", "GLOBALL"]) == 2
    assert "nearest: GLOBAL" in capsys.readouterr().err


def test_its_options_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalogue", "show", "toy"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == sorted(DEFAULTS)
    assert ["LAYERS", "int", "12", "", ""] in lines
    assert main(["catalogue", "show", "toy@1.0", "LR", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["framework"], document["version"]) == ("toy", "1.0")
    assert [(row["address"], row["default"], row["kind"]) for row in document["options"]] == [("LR", 3e-4, "float")]
    assert main(["catalogue", "diff", "toy", "1.0", "1.0"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["catalogue", "show", "toy@2.0"]) == 2
    assert "known versions: 1.0" in capsys.readouterr().err
    assert main(["catalogue", "extract", "toy", "1.0", "--source", "."]) == 2
    assert "no extractor for 'toy'" in capsys.readouterr().err


def test_a_program_may_be_its_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Source("toy.py", CONFIGURATION)
    with pytest.raises(SourceError, match="a Python program that configures no torchtitan"):
        frameworks.detect(program)
    monkeypatch.setattr(Toy, "programs", lambda self, source: source.name.endswith(".py"), raising=False)
    assert frameworks.detect(program) is TOY


def test_one_that_cannot_be_loaded_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "site" / "broken-2.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 2.0\n", encoding="utf-8")
    (folder / "entry_points.txt").write_text("[ttx.frameworks]\nbroken = no_such_module:X\n", encoding="utf-8")
    _forget()
    assert main(["fields"]) == 2
    said = capsys.readouterr().err
    assert "the framework broken of broken cannot be loaded: No module named 'no_such_module'" in said
    assert main(["convert", "--help"]) == 0


def test_a_launcher_of_ones_own() -> None:
    script = "toyrun --ranks 4 t.py --x\ndeepspeed --num_gpus 8 --num_nodes 2 t.py --x\n"
    toyrun = Launcher(takes=SCRIPT, roles=roles(tasks="--ranks"), once_per_node=True)
    found = evaluate(script, "run.sh", launchers={**frameworks.launchers(), "toyrun": toyrun}).launches
    assert [(launch.launcher, launch.world_size) for launch in found] == [("toyrun", 4), ("deepspeed", 16)]
    assert not evaluate(script, "run.sh").launches, "the shell itself knows no framework's"
