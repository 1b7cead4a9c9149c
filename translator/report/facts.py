"""The numbers of both sides next to each other: what a summary and its tables hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translator.report.words import amount, count, duration, gib

if TYPE_CHECKING:
    from translator.report.model import Compute, Report, Side

Rows = list[tuple[str, str, str]]


def facts(report: Report) -> list[tuple[str, str]]:
    """The report in a few lines: name and value."""
    left, right = report.sides
    warnings = sum(each.level != "note" for each in report.meanings)
    found = [
        ("From" if report.ledger else left.label, f"{left.title}, {left.name}"),
        ("To" if report.ledger else right.label, f"{right.title}, {right.name}"),
        ("Run", report.subject),
        (
            "Options" if report.ledger else "Differences",
            ", ".join(f"{number} {name.lower()}" for name, number in report.counts) or "none",
        ),
        ("Same words, other meaning", f"{warnings} to look at, {len(report.meanings) - warnings} more"),
        ("Checks", "; ".join(_checked(side) for side in report.sides)),
    ]
    if left.memory is not None or right.memory is not None:
        found.append(("Fullest rank", "; ".join(_fullest(side) for side in report.sides)))
    if report.curves is not None:
        found.append(("Learning rate", rates(report)))
    if left.traffic is not None and right.traffic is not None:
        sent = [f"{amount(side.traffic.sent_bytes)} ({side.label})" for side in report.sides if side.traffic]
        found.append(("Sent by a rank in a step", ", ".join(sent)))
    return found


def _checked(side: Side) -> str:
    errors = sum(check.level == "error" for check in side.checks)
    warnings = sum(check.level == "warning" for check in side.checks)
    return f"{side.label}: {count(errors, 'error')}, {count(warnings, 'warning')}"


def _fullest(side: Side) -> str:
    memory = side.memory
    if memory is None:
        return f"{side.label}: not known"
    return f"{side.label}: {gib(memory.worst.card_bytes)} of {gib(memory.capacity_bytes)} GiB, {memory.verdict}"


def rates(report: Report) -> str:
    """How the learning rates differ, in a sentence without its point."""
    curves = report.curves
    if curves is None:
        return f"not known: {report.curves_unknown}"
    if curves.largest_difference == 0:
        return f"The same at every one of {curves.steps:,} steps"
    share = f"{curves.share_of_peak:.2%}" if curves.share_of_peak >= 5e-5 else f"{curves.share_of_peak:.1g}"
    return f"At most {share} of the peak apart, at step {curves.at_step + 1:,} of {curves.steps:,}"


def compute(report: Report) -> Rows:
    """FLOPs and the least time of a step."""
    sides = [side.compute for side in report.sides]

    def row(name: str, say: str) -> tuple[str, str, str]:
        one, other = (_value(each, say) for each in sides)
        return name, one, other

    return [
        row("FLOPs per token and training step", "training"),
        row("FLOPs per token, computed again", "recomputed"),
        row("Tokens per step", "tokens"),
        row("Cards", "ranks"),
        row("Peak rate of a card", "peak"),
        row("A step takes at least", "ideal"),
    ]


def _value(found: Compute | None, say: str) -> str:
    if found is None:
        return "not known"
    return {
        "training": f"{found.training_flops_per_token:.3g}",
        "recomputed": f"{found.recomputed_flops_per_token:.3g}",
        "tokens": f"{found.tokens_per_step:,}" if found.tokens_per_step else "not known",
        "ranks": f"{found.ranks:,}",
        "peak": f"{found.peak_flops_per_second / 1e12:.0f} TFLOP/s",
        "ideal": "not known" if found.ideal_step_seconds is None else duration(found.ideal_step_seconds),
    }[say]


def axes(report: Report) -> Rows:
    """Bytes that a rank sends in a step, by axis."""
    totals = [_by_axis(side) for side in report.sides]
    if any(total is None for total in totals):
        return []
    one, other = (total or {} for total in totals)
    return [(name, amount(one.get(name, 0.0)), amount(other.get(name, 0.0))) for name in dict.fromkeys([*one, *other])]


def _by_axis(side: Side) -> dict[str, float] | None:
    if side.traffic is None:
        return None
    found: dict[str, float] = {}
    for line in side.traffic.lines:
        found[line.axis] = found.get(line.axis, 0.0) + line.sent_bytes
    return found
