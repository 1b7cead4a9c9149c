"""What we call an error against what the real torchtitan refuses: a matrix of broken and sound variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from environments import OracleServer, environment
from torchtitan_python_variants import python_variants
from torchtitan_variants import (
    BATCH,
    CHECKPOINT,
    DEGREES,
    DETAILS,
    EXPERTS,
    FLAVORS,
    LLAMA,
    MISSPELT,
    MODULES,
    OPERATION,
    QUANTIZE,
    RECOMPUTE,
    STAGES,
    TRAINING,
    VALIDATION,
    P,
    Variant,
    changed,
    pairs,
    parsed,
    singles,
    toml_text,
)

from translator import api
from translator.errors import TtxError
from translator.findings import Level
from translator.reading import ReadOptions
from translator.source import Source

DRIVER = "torchtitan_trainer.py"
SHIPPED = {
    "llama3": ("models__llama3__train_configs__debug_model", 8),
    "llama3 8B": ("models__llama3__train_configs__llama3_8b", 64),
    "llama4": ("models__llama4__train_configs__debug_model", 8),
    "deepseek": ("models__deepseek_v3__train_configs__debug_model", 8),
    "qwen3": ("models__qwen3__train_configs__qwen3_0.6b", 8),
    "qwen3 MoE": ("models__qwen3__train_configs__qwen3_moe_debug", 8),
    "gpt_oss": ("models__gpt_oss__train_configs__debug_model", 8),
}


@dataclass
class Confusion:
    """How often the two agree, and where they do not."""

    refused: int = 0
    accepted: int = 0
    misses: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, answer: Mapping[str, Any], errors: Sequence[str]) -> None:
        """Count one variant: the real answer, and our errors."""
        if answer["ok"]:
            self.accepted += 1
            if errors:
                self.alarms[name] = "; ".join(errors)
        else:
            self.refused += 1
            if not errors:
                self.misses[name] = f"{answer['stage']}: {answer['error']}"[:300]


def toml_variants(bases: Mapping[str, tuple[dict[str, Any], int]]) -> Iterator[tuple[Variant, str]]:
    """Variants of the TOML bases and their text."""
    made: list[Variant] = []

    def add(base: str, changes: Any, world: int | None = None) -> None:
        made.extend(Variant(base, found, world or bases[base][1]) for found in changes)

    for base in bases:
        add(base, [{}])
    add("own", singles(DEGREES, BATCH, TRAINING, OPERATION))
    add("own", MISSPELT)
    piped = {f"{P}pipeline_parallel_degree": 2}
    add("own", ({**piped, **found} for found in singles(STAGES)))
    looped = {**piped, f"{P}pipeline_parallel_schedule": "Interleaved1F1B"}
    add("own", ({**looped, **found} for found in singles(STAGES)))
    add("own", ({"checkpoint.enable": True, **found} for found in singles(CHECKPOINT)))
    add("own", MODULES)
    add("own", singles(DETAILS))
    add("own", singles(RECOMPUTE, QUANTIZE))
    add("own", ({"validation.enable": True, **found} for found in singles(VALIDATION)))
    add(
        "own",
        ({"profiling.enable_profiling": True, **found} for found in singles({"profiling.profile_freq": [0, 3, 4]})),
    )
    add("own", pairs(40, 1, DEGREES, BATCH))
    add("own", ({**piped, **found} for found in pairs(40, 2, STAGES)))
    add("own", pairs(20, 3, TRAINING, OPERATION, CHECKPOINT))
    add("own", pairs(25, 4, RECOMPUTE))
    add("own", pairs(25, 5, QUANTIZE))
    add("own", ({"validation.enable": True, **found} for found in pairs(10, 6, VALIDATION)))
    add("own", pairs(50, 7, FLAVORS))
    add("deepseek", pairs(25, 8, EXPERTS))
    add("llama4", pairs(20, 9, EXPERTS))
    for number, base in enumerate(name for name in bases if name != "own"):
        add(base, singles(DEGREES))
        add(base, pairs(10, 10 + number, DEGREES, STAGES, BATCH), 16)
    for variant in made:
        yield variant, toml_text(changed(bases[variant.base][0], variant.changes))


def errors_of(name: str, text: str, world_size: int, framework: str) -> list[str]:
    """What we call an error."""
    try:
        found = api.check(Source(name, text), framework=framework, options=ReadOptions(world_size=world_size))
    except TtxError as error:
        return [f"{type(error).__name__}: {error}"]
    return [f"{finding.code} {finding.message}" for finding in found if finding.level is Level.ERROR]


def served(name: str) -> Iterator[OracleServer]:
    """The driver in an environment."""
    found = environment(name)
    if reason := found.missing():
        pytest.skip(reason)
    with found.serve(DRIVER) as running:
        yield running


@pytest.fixture(scope="module")
def trainer_030() -> Iterator[OracleServer]:
    yield from served("torchtitan-0.3.0")


@pytest.fixture(scope="module")
def trainer_022() -> Iterator[OracleServer]:
    yield from served("torchtitan-0.2.2")


@pytest.mark.oracle
@pytest.mark.corpus
def test_toml_variants(trainer_022: OracleServer, corpus: Path) -> None:
    bases = {"own": (parsed(LLAMA), 8)}
    for name, (file, world) in SHIPPED.items():
        path = corpus / "torchtitan" / "0.2.2" / f"torchtitan__{file}.toml"
        bases[name] = (parsed(path.read_text(encoding="utf-8")), world)
    count = Confusion()
    seen: set[tuple[str, int]] = set()
    for variant, text in toml_variants(bases):
        if (text, variant.world_size) in seen:
            continue
        seen.add((text, variant.world_size))
        answer = trainer_022.request("judge", text=text, world_size=variant.world_size)
        assert answer.get("stage") != "driver", (variant.name, answer)
        count.add(variant.name, answer, errors_of("run.toml", text, variant.world_size, "torchtitan@0.2.2"))
    report(count)


@pytest.mark.oracle
def test_python_variants(trainer_030: OracleServer) -> None:
    count = Confusion()
    seen: set[tuple[str, int]] = set()
    for variant, text in python_variants():
        if (text, variant.world_size) in seen:
            continue
        seen.add((text, variant.world_size))
        answer = trainer_030.request("judge", text=text, config="run", world_size=variant.world_size)
        assert answer.get("stage") != "driver", (variant.name, answer)
        count.add(variant.name, answer, errors_of("run.py", text, variant.world_size, "torchtitan@0.3.0"))
    report(count)


def report(count: Confusion) -> None:
    """Print the counts and every disagreement."""
    print(f"\nrefused {count.refused}, of which missed {len(count.misses)}; ", end="")
    print(f"accepted {count.accepted}, of which called an error {len(count.alarms)}")
    for title, found in (("MISS", count.misses), ("ALARM", count.alarms)):
        for name, reason in found.items():
            print(f"{title} {name}: {reason}")
