"""What ``ttx check`` calls an error against what the real Megatron-LM (core 0.18.0) refuses, over many variants.

Every variant goes through the real start of a run (``drivers/megatron_verdict.py``: arguments, process groups, model
configuration, rank 0's layers, optimizer, schedule, data) and through `api.check`. A *miss* is refused by the real
code and has no error here, a *false alarm* the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import OracleServer
from megatron_mutations import BASES, CHANGES, Variant, command, variants

from translator import api
from translator.findings import Level
from translator.frameworks import get
from translator.native import WORLD_SIZE, Missing
from translator.reading import ReadOptions
from translator.source import Source, load

pytestmark = pytest.mark.oracle
VERSION = "megatron@0.18.0"
DRIVER = "megatron_verdict.py"
REPOSITORY = Path(__file__).resolve().parents[2]
# Of each base so many single and double changes.
SINGLE, DOUBLE = 10, 4
CORPUS_SINGLE, CORPUS_DOUBLE, CORPUS_BASES = 6, 2, 30
MOST = 0.01

# Why a variant may be judged otherwise; keys are parts of what was said.
MISSES = {
    "unrecognized arguments: --zero-stage": "an unknown option may belong to a fork or an installed package: a warning",
    "require setting the environment variable CUDA_DEVICE_MAX_CONN": "may be set outside of the files: a warning",
    "NCCL_ALGO must be one of": "may be set outside of the files: a warning",
}
FALSE_ALARMS = {
    "attention heads are no multiple of": (
        "TransformerEngine refuses it in the constructor of its attention, which is not installed here; Megatron-LM's "
        "own attention fails in its first step"
    ),
    "training experts under tensor parallelism needs": (
        "refused in the first forward pass (megatron/core/transformer/moe/moe_layer.py:620), which is not run here"
    ),
}


@pytest.fixture(scope="module")
def verdicts(megatron: OracleServer) -> Iterator[OracleServer]:
    """The driver that judges; it skips or fails as ``megatron`` does."""
    with megatron.environment.serve(DRIVER) as running:
        yield running


def refusal(server: OracleServer, variant: Variant) -> str | None:
    """What the real code refuses a variant with; None when it would start."""
    answer = server.request(
        "judge",
        argv=variant.words,
        world_size=variant.world_size,
        environment={"CUDA_DEVICE_MAX_CONNECTIONS": None, **variant.environment},
    )
    if answer["ok"]:
        return None
    assert answer["stage"] not in ("driver", "crash", "timeout"), (variant.name, answer)
    return f"{answer['stage']}: {answer['error']}"


def errors(variant: Variant) -> list[str]:
    """What our own check calls an error."""
    found = api.check(Source("run.sh", variant.script), framework=VERSION)
    return [f"{finding.code} {finding.message}" for finding in found if finding.level is Level.ERROR]


def of_examples() -> Iterator[Variant]:
    """The launch scripts of our own examples, as the commands that they come to."""
    for folder in sorted((REPOSITORY / "fixtures" / "examples").glob("*-megatron")):
        for path in sorted(folder.glob("*.s*")):
            native = get("megatron").parse(load(str(path)), "0.18.0", ReadOptions())
            world = native.given.get(WORLD_SIZE)
            words = written(native.given.values())
            if world is not None and isinstance(world.value, int) and words:
                yield command(folder.name, words, world.value, environment_of(words))


def written(options: object) -> list[str]:
    """The words that say the same as parsed options; empty when one is not known."""
    words: list[str] = []
    for given in options:  # type: ignore[attr-defined]
        if given.address.startswith("@"):
            continue
        if isinstance(given.value, Missing):
            return []
        words.append(given.written)
        if not isinstance(given.value, bool):
            several = isinstance(given.value, list) and given.address != "moe_layer_freq"
            words += [str(value).replace(" ", "") for value in (given.value if several else [given.value])]
    return words


def environment_of(words: list[str]) -> dict[str, str]:
    """What a launch must set for these options."""
    sharded = {"--use-megatron-fsdp", "--use-torch-fsdp2"} & set(words)
    return {"CUDA_DEVICE_MAX_CONNECTIONS": "8" if sharded else "1", "NCCL_ALGO": "Ring"}


def of_corpus(corpus: Path) -> Iterator[Variant]:
    """Every so manyth functional test that trains GPT or a mixture of experts, and reads no options from elsewhere."""
    from test_megatron_settle_oracle import corpus_commands

    found = corpus_commands(corpus)
    of_gpt = [name for name in found if name.split("/", 1)[0] in ("gpt", "moe", "mixtral")]
    stated = {name: {word.text for word in found[name][0]} for name in of_gpt}
    names = [name for name in of_gpt if "--lr" in stated[name] and "--use-checkpoint-args" not in stated[name]]
    for name in names[:: max(1, len(names) // CORPUS_BASES)]:
        words, world, variables = found[name]
        yield command(name, [word.text for word in words], world, variables)


def compared(server: OracleServer, wanted: Iterator[Variant]) -> None:
    """Judge variants twice, print how often we agree, and hold the kinds of disagreement to their limits."""
    counts = {"sound, no error": 0, "refused, error": 0}
    missed: list[str] = []
    alarmed: list[str] = []
    unexplained: list[str] = []
    for variant in wanted:
        refused, said = refusal(server, variant), errors(variant)
        if bool(refused) == bool(said):
            counts["refused, error" if refused else "sound, no error"] += 1
            continue
        line = f"{variant.name}: {refused or '; '.join(said)}"
        (missed if refused else alarmed).append(line)
        known = MISSES if refused else FALSE_ALARMS
        if not any(part in line for part in known):
            unexplained.append(line)
    refusals, sound = counts["refused, error"] + len(missed), counts["sound, no error"] + len(alarmed)
    print(f"\n{refusals + sound} variants: {counts}, misses {len(missed)}, false alarms {len(alarmed)}")
    print(*(f"miss: {line}" for line in missed), *(f"false alarm: {line}" for line in alarmed), sep="\n")
    assert unexplained == []
    assert len(missed) <= max(1, MOST * refusals)
    assert len(alarmed) <= max(1, MOST * sound)
    assert refusals > sound / 4
    assert sound > refusals / 4


def test_variants_are_many_and_repeat_themselves() -> None:
    first = [variant.words for variant in variants(BASES, SINGLE, DOUBLE)]
    assert first == [variant.words for variant in variants(BASES, SINGLE, DOUBLE)]
    assert len(BASES) >= 40
    assert len(first) >= 600
    names = " ".join(variant.name for variant in variants(BASES, SINGLE, DOUBLE))
    assert not [name for name in CHANGES if f"/ {name}" not in names]


def test_what_the_real_code_refuses_is_an_error_and_nothing_else(verdicts: OracleServer) -> None:
    for base in (*BASES, *of_examples()):
        assert refusal(verdicts, base) is None, base.name
    compared(verdicts, variants(BASES, SINGLE, DOUBLE))


def test_variants_of_our_examples(verdicts: OracleServer) -> None:
    compared(verdicts, variants(list(of_examples()), SINGLE, DOUBLE))


@pytest.mark.corpus
def test_variants_of_upstream_tests(verdicts: OracleServer, corpus: Path) -> None:
    compared(verdicts, variants(list(of_corpus(corpus)), CORPUS_SINGLE, CORPUS_DOUBLE))
