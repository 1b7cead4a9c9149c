"""What we call an error against what the real DeepSpeed 0.19.2 refuses: a matrix of broken and sound variants.

The real answer is that of ``deepspeed.initialize`` with a tiny model and of its first step, at eight ranks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deepspeed_variants import Config, text_of, variants
from environments import OracleServer, environment

from translator import api
from translator.errors import TtxError
from translator.findings import Level
from translator.reading import ReadOptions
from translator.source import Source

DRIVER = "deepspeed_engine.py"
WORLD = 8
# What a CPU cannot tell: packages that are not installed, and kernels that stand-ins replace.
UNJUDGEABLE = (
    *(
        "No module named",
        "Unable to import",
        "Please install",
        "MagicMock",
        "mixed dtype (CPU)",
        "autocast::prioritize",
    ),
    "Cannot access accelerator device",
)
# What both say differently, and why: part of the variant's name -> the reason.
EXPLAINED: dict[str, str] = {
    "last_batch_iteration='x'": "the engine takes the TypeError of a scheduler's step for an older interface, and "
    "calls it again with a number",
    "'cos_min_ratio': 'low'": "nothing computes with the floor until the warm-up is over; then it stops",
    "sequence_parallel_size=": "initialize never divides the ranks; the program's registration of Ulysses does, and "
    "refuses (deepspeed/runtime/sequence_parallel/parallel_state_sp.py:29 at 0.19.2)",
    "warmup_max_lr=[0.0001, 0.0002]": "a rate for each parameter group: how many there are is the program's business",
    "'warmup_min_lr': [0, 0]": "a rate for each parameter group: how many there are is the program's business",
}


@dataclass
class Confusion:
    """How often the two agree, and where they do not."""

    refused: int = 0
    accepted: int = 0
    unjudged: int = 0
    misses: dict[str, str] = field(default_factory=dict)
    alarms: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, answer: Mapping[str, Any], errors: Sequence[str]) -> None:
        """Count one variant: the real answer, and our errors."""
        if answer["ok"]:
            self.accepted += 1
            if errors:
                self.alarms[name] = "; ".join(errors)
        elif any(part in answer["error"] for part in UNJUDGEABLE):
            self.unjudged += 1
        else:
            self.refused += 1
            if not errors:
                self.misses[name] = f"{answer['stage']}: {answer['error']}"[:300]


def errors_of(text: str) -> list[str]:
    """What we call an error."""
    options = ReadOptions(world_size=WORLD)
    try:
        found = api.check(Source("ds_config.json", text), framework="deepspeed@0.19.2", options=options)
    except TtxError as error:
        return [f"{type(error).__name__}: {error}"]
    return [f"{finding.code} {finding.message}" for finding in found if finding.level is Level.ERROR]


@pytest.fixture(scope="module")
def engine() -> Iterator[OracleServer]:
    found = environment("deepspeed-0.19.2")
    if reason := found.missing():
        pytest.skip(reason)
    with found.serve(DRIVER) as running:
        yield running


def trains(config: Config) -> bool:
    """Whether the first step can be tried: not with kernels and ranks that a stand-in acts."""
    text = json.dumps(config)
    return "quantized" not in text and "autotp_size" not in text and "sequence_parallel_size" not in text


def of_corpus(corpus: Path) -> dict[str, Config]:
    """The JSON configurations of the corpus that are plain JSON."""
    found: dict[str, Config] = {}
    for file in sorted((corpus / "deepspeed").glob("*.json")):
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            continue
        if isinstance(config, dict):
            found[file.stem] = config
    return found


@pytest.mark.oracle
@pytest.mark.corpus
def test_variants(engine: OracleServer, corpus: Path) -> None:
    count = Confusion()
    for variant, config in variants(of_corpus(corpus)):
        text = text_of(config)
        answer = engine.request("judge", text=text, world_size=WORLD, trains=trains(config), fill='"auto"' in text)
        assert answer.get("stage") not in {"driver", "timeout", "crash"}, (variant.name, answer)
        count.add(variant.name, answer, errors_of(text))
    report(count)
    assert count.refused >= 300
    assert count.accepted >= 300
    assert len(count.misses) < 0.01 * count.refused
    assert len(count.alarms) < 0.01 * count.accepted
    left = {**count.misses, **count.alarms}
    unexplained = [name for name in left if not any(part in name for part in EXPLAINED)]
    assert not unexplained, {name: left[name] for name in unexplained}


def report(count: Confusion) -> None:
    """Print the counts and every disagreement."""
    print(f"\nrefused {count.refused}, of which missed {len(count.misses)}; ", end="")
    print(f"accepted {count.accepted}, of which called an error {len(count.alarms)}; not judged {count.unjudged}")
    for title, found in (("MISS", count.misses), ("ALARM", count.alarms)):
        for name, reason in found.items():
            print(f"{title} {name}: {reason}")
