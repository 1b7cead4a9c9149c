"""``ttx communication``: what the ranks of a run send each other in a step, over which links, and for how long."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from translator.cli.common import Subparsers, add_source_options, print_json, read_options
from translator.errors import UsageError

if TYPE_CHECKING:
    from translator.communication.account import Communication, Line

_WIDTH = 140
DESCRIPTION = """\
Tells what the ranks of a run send each other in one optimizer step under the framework that SRC is written for: on each
axis of the layout the collectives, their sizes and number, the nodes that they span, the bytes that a rank sends, and
the time that this takes at least on a network.
"""
EPILOG = """\
exit code:
  0  well
  2  the source cannot be read, does not say enough, or the call is wrong

examples:
  ttx communication train.sh
  ttx communication train.sh --as torchtitan --network dgx-a100
  ttx communication train.toml --network nvlink4+infiniband-hdr --gpus-per-node 4 --format json
"""


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "communication",
        help="tell what the ranks send each other in a step",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_source_options(parser)
    group = parser.add_argument_group("the network")
    group.add_argument(
        "--as", dest="target", metavar="FW[@V]", help="under another framework, as the source would be converted to it"
    )
    group.add_argument(
        "--network",
        metavar="NAME",
        help="dgx-h100 (the default), dgx-a100, dgx-b200 ..., or LINK+LINK, within and between",
    )
    group.add_argument("--gpus-per-node", type=int, metavar="N", help="else as the source says, else 8")
    group.add_argument(
        "--algorithm", choices=("ring", "tree", "fastest"), default="fastest", help="of all-reduces (default: fastest)"
    )
    group.add_argument("--format", choices=("text", "json"), default="text")


def run(parsed: argparse.Namespace) -> int:
    """Tell; returns 0. Raises SourceError and UsageError."""
    from translator import api
    from translator.cli.memory import seen_as
    from translator.communication.account import communication_of_reading
    from translator.communication.links import DEFAULT, network

    links = network(parsed.network or DEFAULT)
    if parsed.gpus_per_node is not None and not 1 <= parsed.gpus_per_node <= 1024:
        raise UsageError("--gpus-per-node must be between 1 and 1024")
    reading = api.read(parsed.source, framework=parsed.framework, options=read_options(parsed))
    if parsed.target is not None:
        reading = seen_as(reading, parsed.target)
    elif reading.native is None:
        raise UsageError("a spec communicates under no framework of its own", fix="say under which: --as FRAMEWORK")
    found = communication_of_reading(reading, links, gpus_per_node=parsed.gpus_per_node, algorithm=parsed.algorithm)
    if parsed.format == "json":
        print_json(found.as_dict())
    else:
        _tell(found)
    return 0


def _tell(found: Communication) -> None:
    from rich.console import Console
    from rich.table import Table

    from translator import frameworks

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True, width=_WIDTH)
    title = frameworks.get(found.job.framework).title
    links = f"{found.network.inside.title} within a node, {found.network.between.title} between nodes"
    console.print(f"{title} {found.job.version}, one optimizer step, {links}", markup=False)
    table = Table(box=None, pad_edge=False, show_edge=False)
    for name, side in (("axis", "left"), ("what", "left"), ("collective", "left")):
        table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    for name in ("ranks", "nodes", "calls", "message", "sent", "off node", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in found.lines:
        table.add_row(*_row(line))
    if not found.lines:
        console.print("Nothing: no group has more than one rank.", markup=False)
        return
    console.print(table)
    for words in found.assumed:
        console.print(f"Assumed: {words}.", markup=False)
    rest = found.seconds(overlapped=False)
    console.print(
        f"\nOne after another {found.seconds():.3g} s on the busiest stage; {rest:.3g} s are not meant to run beside "
        "computation (those without *). Figures are those of the busiest rank, at the full rate of the links: a lower "
        "bound.",
        markup=False,
    )


def _row(line: Line) -> list[str]:
    mark = "*" if line.transfer.overlapped else ""
    return [
        line.transfer.axis.value,
        line.transfer.name + mark,
        line.transfer.operation.value,
        str(line.ranks),
        str(line.nodes),
        f"{max(line.calls):,.0f}",
        _bytes(line.message_bytes),
        _bytes(max(line.sent_bytes)),
        _bytes(max(line.crossing_bytes)),
        f"{max(line.seconds):.3g}",
    ]


def _bytes(count: float) -> str:
    """Bytes with a unit of powers of ten, as links are rated."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB"
