"""``ttx diff``: two configurations compared by what they mean."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from translator.cli.common import Subparsers, print_json
from translator.errors import UsageError
from translator.findings import Level
from translator.printable import one_line

if TYPE_CHECKING:
    from translator.diffing import Compared, Difference
    from translator.reading import LeafOrigin, Reading

DESCRIPTION = """\
Compares two configurations, of one framework or of two, by the values in force: defaults count, spelling does not. A is
the reference: what A says and B does not say likewise is a difference. Differences that alter training are marked.
"""
EPILOG = """\
exit code:
  0  both train the same
  1  something that alters training differs
  2  a configuration cannot be read, or the call is wrong

examples:
  ttx diff train.sh train.toml
  ttx diff old.sh new.sh --from megatron@0.12.0 --from megatron@0.18.0
  ttx diff train.sh out/train.toml --format markdown > differences.md
"""
_WIDTH = 60


def add_parser(subparsers: Subparsers) -> None:
    """Declare the command."""
    parser = subparsers.add_parser(
        "diff",
        help="compare two configurations by what they mean",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("left", metavar="A", help="the reference: a configuration or a spec file")
    parser.add_argument("right", metavar="B", help="what is compared with it")
    parser.add_argument(
        "--from",
        dest="frameworks",
        action="append",
        default=[],
        metavar="FW[@V]",
        help="framework and version of both, or, given twice, of A and of B; else the texts decide",
    )
    parser.add_argument("--world-size", type=int, metavar="N", help="number of ranks, where a source does not tell")
    parser.add_argument("--model", metavar="PATH|NAME", help="the model, where a source leaves it to another file")
    parser.add_argument("--all", action="store_true", help="also what only B says, and what leaves results alone")
    parser.add_argument("--format", choices=("text", "json", "markdown"), default="text")


def run(parsed: argparse.Namespace) -> int:
    """Compare; returns the exit code."""
    from translator.diffing import diff

    names = parsed.frameworks
    if len(names) > 2:
        raise UsageError("--from is given once for both, or twice, for A and for B")
    if parsed.left == "-" and parsed.right == "-":
        raise UsageError("only one of the two can be standard input")
    left = _read(parsed.left, names[0] if names else None, parsed)
    right = _read(parsed.right, names[-1] if names else None, parsed)
    found = diff(left, right)
    if parsed.format == "json":
        print_json(found.as_dict())
    elif parsed.format == "markdown":
        _markdown(found, parsed)
    else:
        _text(found, parsed)
    return 0 if found.same_training else 1


def _read(name: str, framework: str | None, parsed: argparse.Namespace) -> Reading:
    from translator import api
    from translator.frameworks.base import TakesModel
    from translator.reading import ReadOptions
    from translator.source import load

    if parsed.world_size is not None and not 1 <= parsed.world_size < 2**31:
        raise UsageError("--world-size must be 1 or more")
    source = load(name)
    model = parsed.model
    if model is not None:
        from translator import frameworks
        from translator.spec_file import is_spec

        spec = framework in api.SPECS or (framework is None and is_spec(source))
        chosen = None if spec else frameworks.resolve(framework)[0] if framework else frameworks.detect(source)
        model = model if isinstance(chosen, TakesModel) else None
    return api.read(source, framework=framework, options=ReadOptions(world_size=parsed.world_size, model=model))


def _text(found: Compared, parsed: argparse.Namespace) -> None:
    print(one_line(f"{_title(found.left)} {parsed.left}  ->  {_title(found.right)} {parsed.right}"))
    for heading, group in _grouped(found.differences):
        print(f"\n{heading} ({len(group)})")
        for each in group:
            print(one_line(f"  {each.field}: {_value(each.left)} -> {_value(each.right)}"))
            for side, origin in (("A", each.left_origin), ("B", each.right_origin)):
                said = _origin(origin)
                if said:
                    print(one_line(f"      {side}: {said}"))
    if parsed.all and found.right_only:
        print(f"\nsaid by B only ({len(found.right_only)})")
        for each in found.right_only:
            print(one_line(f"  {each.field}: {_value(each.right)}"))
    told = found.findings if parsed.all else [each for each in found.findings if each.level is not Level.NOTE]
    if found.findings:
        print(f"\nsame words, other meaning ({len(found.findings)})")
        for finding in told:
            print(one_line(f"  {finding.code}: {finding.message}"))
        if len(told) < len(found.findings):
            print(f"  and {len(found.findings) - len(told)} that leave the results alone (--all shows them)")
    if found.curve is not None and found.curve[0] > 0:
        print(f"\nlearning rates differ by at most {found.curve[0]:.2%} of the peak, at step {found.curve[1]}")
    print(f"\n{_verdict(found)}")


def _markdown(found: Compared, parsed: argparse.Namespace) -> None:
    print(f"# {_cell(parsed.left)} and {_cell(parsed.right)}\n")
    print(f"A is {_title(found.left)}, B is {_title(found.right)}. {_verdict(found)}\n")
    for heading, group in _grouped(found.differences):
        print(f"## {heading[:1].upper()}{heading[1:]}\n\n| field | A | B | where A says it | where B says it |")
        print("|---|---|---|---|---|")
        for each in group:
            cells = (each.field, _value(each.left), _value(each.right))
            origins = (_origin(each.left_origin), _origin(each.right_origin))
            print(f"| {' | '.join(map(_cell, (*cells, *origins)))} |")
        print()
    if found.findings:
        print("## Same words, other meaning\n")
        for finding in found.findings:
            print(f"- **{finding.code}** {_cell(finding.message)}")


def _cell(text: str) -> str:
    """Text that a table of Markdown shows as it is."""
    escaped = one_line(text)
    for character in "\\`*_[]<>|":
        escaped = escaped.replace(character, f"\\{character}")
    return escaped


def _grouped(differences: list[Difference]) -> list[tuple[str, list[Difference]]]:
    """Differences by what they touch, the gravest first."""
    groups: dict[str, list[Difference]] = {}
    for each in differences:
        groups.setdefault(each.touches.value, []).append(each)
    return [(_HEADINGS.get(name, name), group) for name, group in groups.items()]


_HEADINGS = {
    "training": "alters training",
    "memory": "alters memory",
    "speed": "alters speed",
    "operation": "alters operation (data, checkpoints, logging)",
}


def _title(reading: Reading) -> str:
    from translator import frameworks

    return "spec" if reading.native is None else f"{frameworks.get(reading.framework).title} {reading.version}"


def _value(value: object) -> str:
    return "not said" if value is None else one_line(str(value), _WIDTH)


def _origin(origin: LeafOrigin | None) -> str:
    if origin is None:
        return ""
    if origin.option is not None:
        place = f", {origin.place.file}:{origin.place.line}" if origin.place is not None else ""
        return f"{origin.option}{place}"
    return origin.note or origin.origin.value


def _verdict(found: Compared) -> str:
    count = sum(each.alters_training for each in found.differences)
    if not count:
        rest = len(found.differences)
        others = f"; {rest} other {'difference' if rest == 1 else 'differences'}" if rest else ""
        return f"Both train the same{others}."
    return f"{count} {'difference alters' if count == 1 else 'differences alter'} training."
