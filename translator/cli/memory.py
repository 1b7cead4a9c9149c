"""``ttx memory``: what every rank holds, and whether it fits on a card."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from translator.cli.common import Subparsers, add_source_options, print_findings, print_json, read_options
from translator.errors import UsageError

if TYPE_CHECKING:
    from translator.memory.report import MemoryReport, StageLine
    from translator.reading import Reading

GIB = 2**30
_WIDTH = 120
DESCRIPTION = """\
Estimates the memory of every rank of a run under the framework that SRC is written for: parameters, gradients,
optimizer state, activations in flight, buffers, and what lies outside the allocator. "allocated" is what PyTorch
counts as such at the peak of a step, "reserved" what its allocator takes from the card. FIELD=VALUE asks what would be
if: a degree that is set takes the data-parallel ranks and the accumulation along. Where a run does not fit, the
smallest changes that make it fit are told, with the options to set. Nothing is run.
"""
EPILOG = """\
exit code:
  0  it fits on the card, as expected
  1  it does not
  2  the source cannot be read, does not say enough, or the call is wrong

examples:
  ttx memory train.sh --gpu h100-80gb
  ttx memory train.sh --as torchtitan
  ttx memory ds_config.json --model meta-llama/Llama-3-8B/config.json --world-size 64
  ttx memory train.toml batch.micro_batch=4 --format json
  ttx memory train.sh -o memory.svg
"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "memory",
        help="estimate the memory of every rank",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_source_options(parser)
    group = parser.add_argument_group("the estimate")
    group.add_argument(
        "--as",
        dest="target",
        metavar="FW[@V]",
        help="under another framework, as the source would be converted to it",
    )
    group.add_argument(
        "--gpu",
        metavar="NAME",
        help="the card, such as b200 or mi300x (default: gpu in [tool.ttx] of the project, else h100-80gb)",
    )
    group.add_argument("--tokens-per-second", type=float, metavar="N", help="measured, per card: gives MFU and HFU")
    group.add_argument("-o", "--output", metavar="PATH", help="a picture of the stages (.svg)")
    group.add_argument("--force", action="store_true", help="overwrite an existing picture")
    group.add_argument("--format", choices=("text", "json"), default="text")


def run(parsed: argparse.Namespace) -> int:
    """Estimate; returns the exit code."""
    from translator import api
    from translator.findings import Level
    from translator.memory.estimate import estimate_reading
    from translator.memory.hardware import DEFAULT, gpu
    from translator.memory.relay import relay
    from translator.memory.report import report

    card = gpu(parsed.gpu or _preferred(parsed.source) or DEFAULT)
    reading = api.read(parsed.source, framework=parsed.framework, options=read_options(parsed))
    reading.check()
    relay(reading.flat, reading.by_hand)
    print_findings([finding for finding in reading.findings if finding.level is Level.ERROR])
    if parsed.target is not None:
        reading = seen_as(reading, parsed.target)
    elif reading.native is None:
        raise UsageError("a spec has no memory of its own", fix="say under which framework: --as FRAMEWORK")
    found = report(estimate_reading(reading), card)
    if parsed.output is not None:
        _picture(found, parsed)
    if parsed.format == "json":
        print_json(found.as_dict())
    else:
        _tell(found, parsed.tokens_per_second)
    return 0 if found.fits else 1


def seen_as(reading: Reading, target: str) -> Reading:
    """The source as another framework would run it; what that cannot say is left as the source has it.

    Raises SourceError and UsageError.
    """
    from translator import api

    return api.convert(reading, target, nearest=True).completed()


def _preferred(source: str) -> str | None:
    """The card that the project of the source names, or else that of the current folder."""
    from pathlib import Path

    from translator.project import project

    folder = None if source == "-" else Path(source).parent
    return (project(folder).gpu if folder is not None and folder.is_dir() else None) or project().gpu


def _picture(found: MemoryReport, parsed: argparse.Namespace) -> None:
    from pathlib import Path

    from translator.cli.files import write_files
    from translator.memory.picture import svg

    if not parsed.output.endswith(".svg"):
        raise UsageError(f"-o {parsed.output}: pictures are written as .svg")
    write_files({Path(parsed.output): svg(found)}, force=parsed.force)


def _tell(found: MemoryReport, tokens_per_second: float | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from translator import frameworks

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True, width=_WIDTH)
    job, worst = found.estimate.job, found.worst
    card_gib = found.gpu.memory_bytes / GIB
    title = frameworks.get(job.framework).title
    console.print(f"{title} {job.version} on {found.gpu.title} ({card_gib:.1f} GiB): GiB per rank", markup=False)
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name in ("stage", "layers", "parameters", "gradients", "optimizer", "activations", "other"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("allocated", "reserved", "outside", "of card"):
        table.add_column(name, justify="right", no_wrap=True)
    for first, last, line in _groups(found.stages):
        table.add_row(*_row(first, last, line, found.gpu.memory_bytes))
    console.print(table)
    for words in found.estimate.assumed:
        console.print(f"Assumed: {words}.", markup=False)
    verdict = "fits" if found.surely else "fits, but not by much" if found.fits else "does not fit"
    console.print(
        f"\nIt {verdict}: the fullest stage is {worst.stage}, with {_gib(worst.card, 1)} of {card_gib:.1f} GiB "
        f"(allocated {_gib(worst.allocated[0], 1)} to {_gib(worst.allocated[2], 1)}), at its peak in the "
        f"{worst.phase}.",
        markup=False,
    )
    console.print("\nWhat it holds then:", markup=False)
    for name, kind, amount in sorted(worst.terms, key=lambda term: -term[2]):
        if amount >= 0.01 * worst.allocated[1]:
            console.print(f"  {_gib(amount):>8}  {name} ({kind.value})", markup=False)
    if found.changes:
        console.print("\nThe smallest changes that make it fit, cheapest first:", markup=False)
        for change in found.changes:
            console.print(f"  {_gib(change.peak_bytes):>8}  {change.says}", markup=False)
            if change.written:
                console.print(f"            {change.written}", markup=False)
    elif not found.fits:
        console.print("\nNo three changes make it fit, nor would sixteen times the ranks.", markup=False)
    _tell_compute(found, tokens_per_second, console.print)


def _tell_compute(found: MemoryReport, tokens_per_second: float | None, say: object) -> None:
    assert callable(say)
    job = found.estimate.job
    flat = job.flat
    peak = found.gpu.peak_flops(flat.get("precision.compute"), flat.get("precision.fp8"))
    world = flat.get("parallel.world_size") or 1
    tokens = (flat.get("batch.global_batch") or 0) * job.layout.seq_len
    flops = found.compute
    line = f"\n{flops.training:.3g} FLOPs per token and training step"
    if tokens:
        ideal = tokens * (flops.training + flops.recomputed) / (peak * world)
        line += (
            f"; a step of {tokens:,} tokens takes at least {ideal:.3g} s on {world} cards at {peak / 1e12:.0f} TFLOP/s"
        )
    say(line, markup=False)
    if tokens_per_second is not None:
        mfu, hfu = flops.utilisation(tokens_per_second, peak)
        say(f"{tokens_per_second:g} tokens/s per card: MFU {mfu:.1%}, HFU {hfu:.1%}", markup=False)


def _gib(amount: float, places: int = 2) -> str:
    """Bytes in GiB; more than any card will have, in powers of ten."""
    value = amount / GIB
    return f"{value:.{places}f}" if value < 1e5 else f"{value:.1e}"


def _groups(stages: list[StageLine]) -> list[tuple[int, int, StageLine]]:
    """Neighbouring stages with equal lines as one."""
    groups: list[tuple[int, int, StageLine]] = []
    for line in stages:
        if groups and _same(groups[-1][2], line):
            groups[-1] = (groups[-1][0], line.stage, groups[-1][2])
        else:
            groups.append((line.stage, line.stage, line))
    return groups


def _same(left: StageLine, right: StageLine) -> bool:
    return left.layers == right.layers and abs(left.card - right.card) < 0.005 * GIB


def _row(first: int, last: int, line: StageLine, capacity: int) -> list[str]:
    from translator.memory.terms import Kind

    kinds = (Kind.PARAMETERS, Kind.GRADIENTS, Kind.OPTIMIZER, Kind.ACTIVATIONS)
    other = line.of_kind(Kind.TRANSIENT) + line.of_kind(Kind.WORKSPACE)
    return [
        str(first) if first == last else f"{first}-{last}",
        str(line.layers),
        *(f"{_gib(line.of_kind(kind))}" for kind in kinds),
        f"{_gib(other)}",
        f"{_gib(line.allocated[1])}",
        f"{_gib(line.reserved[1])}",
        f"{_gib(line.outside)}",
        f"{line.card / capacity:.0%}" if line.card < 100 * capacity else "-",
    ]
