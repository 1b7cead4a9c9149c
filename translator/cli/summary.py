"""What a person is told after a conversion, on standard error."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from translator.cli.common import print_findings
from translator.findings import Level
from translator.ledger import Entry, LedgerLine, summary
from translator.printable import one_line
from translator.spec.touches import Touches

if TYPE_CHECKING:
    from translator.conversion import Conversion
    from translator.findings import Finding

_BOLD, _DIM, _RED, _YELLOW, _GREEN = "1", "2", "31", "33", "32"
_COLOURS = {
    Entry.APPROXIMATED: _YELLOW,
    Entry.UNSUPPORTED: _RED,
    Entry.NEEDS_INPUT: _RED,
}
_HEADINGS = {
    Touches.TRAINING: "touching training",
    Touches.MEMORY: "touching memory",
    Touches.SPEED: "touching speed",
    Touches.OPERATION: "touching operation (data, checkpoints, logging)",
    Touches.NOTHING: "touching nothing",
}
# Where a statement about a framework was read: for those who ask (ttx explain, --format json).
_SOURCE = re.compile(r" \((?:[^()]|\([^()]*\))*\)(?=;|$)")
_WIDTH_OF_VALUE = 60
_WIDTH_OF_OPTION = 44


def tell(
    done: Conversion,
    findings: Sequence[Finding],
    differences: Sequence[Finding],
    *,
    ledger: str,
    refused: bool,
    missing: Sequence[str],
) -> None:
    """Findings, counts, ledger lines grouped by what they touch, what words mean elsewhere, and the verdict.

    ``missing`` are files that hold a part of the result and were not written.
    """
    print_findings(findings)
    page = _Page()
    counts = ", ".join(f"{count} {name.replace('_', '-')}" for name, count in summary(done.ledger).items() if count)
    version = "" if done.target == "spec" else f" {done.version}"
    source = "spec" if done.source.framework == "spec" else f"{done.source.framework} {done.source.version}"
    page.line(f"{source} -> {done.target}{version}: {counts or 'nothing stated'}", _BOLD)
    if ledger != "none":
        page.ledger([line for line in done.ledger if ledger == "all" or line.entry.is_loss], everything=ledger == "all")
        page.differences(differences)
    if missing:
        page.line(f"The result needs {', '.join(missing)} beside it: write a folder with -o DIR.")
    lost = sum(line.alters_training for line in done.ledger)
    if not lost:
        page.line("Nothing that touches training was lost.", _GREEN)
    elif refused:
        page.line(f"Nothing was written: {_losses(lost)} (--on-loss error).", _RED)
    else:
        page.line(f"{_losses(lost)}: {'--ledger losses prints them' if ledger == 'none' else 'see above'}.", _YELLOW)
    errors = sum(finding.level is Level.ERROR for finding in findings)
    if errors:
        page.line(
            f"{'1 error' if errors == 1 else f'{errors} errors'}: a framework would refuse this, see above.", _RED
        )


def _losses(count: int) -> str:
    return "1 loss touches training" if count == 1 else f"{count} losses touch training"


class _Page:
    """Standard error: coloured on a terminal, wrapped to its width."""

    def __init__(self) -> None:
        terminal = sys.stderr.isatty()
        self._coloured = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
        self._width = _columns() if terminal else 0

    def line(self, text: str, style: str = "") -> None:
        print(self._styled(one_line(text), style), file=sys.stderr)

    def ledger(self, lines: list[LedgerLine], *, everything: bool) -> None:
        for touches in Touches:
            group = [line for line in lines if line.touches is touches]
            if not group:
                continue
            self.line("")
            self.line(f"{_HEADINGS[touches]} ({len(group)})", _BOLD)
            width = min(_WIDTH_OF_OPTION, max(len(_said(line)) for line in group))
            for line in sorted(group, key=lambda line: -int(line.entry.is_loss)) if everything else group:
                self._entry(line, width)
        if lines:
            self.line("")

    def differences(self, findings: Sequence[Finding]) -> None:
        """What source and target mean differently by the same words; what matters little is counted."""
        told = [finding for finding in findings if finding.level is not Level.NOTE]
        notes = len(findings) - len(told)
        if not findings:
            return
        self.line(f"same words, other meaning ({len(told)})", _BOLD)
        for finding in told:
            first, *rest = self._wrapped(_SOURCE.sub("", one_line(finding.message)), 8) or [""]
            print(f"  {self._styled(finding.code, _YELLOW)}  {first}", file=sys.stderr)
            for part in rest:
                print(f"{' ' * 8}{part}", file=sys.stderr)
        example = (told or findings)[0].code
        more = f"; {notes} more that hardly matter (--format json has them)" if notes else ""
        self.line(f"  ttx explain {example} tells more{more}", _DIM)
        self.line("")

    def _entry(self, line: LedgerLine, width: int) -> None:
        said = _said(line)
        result = f"  -> {one_line(line.target, 2 * _WIDTH_OF_VALUE)}" if line.target else ""
        entry = self._styled(f"{line.entry.value:<12}", _COLOURS.get(line.entry, ""))
        print(f"  {entry}  {said.ljust(width) if result else said}{result}", file=sys.stderr)
        where = f"{line.where.file}:{line.where.line}" if line.where else ""
        note = ": ".join(part for part in (where, line.note) if part) if line.note or line.entry.is_loss else ""
        for part in self._wrapped(one_line(note), 16):
            print(" " * 16 + self._styled(part, _DIM), file=sys.stderr)

    def _wrapped(self, text: str, indent: int) -> list[str]:
        if not text or not self._width:
            return [text] if text else []
        import textwrap

        return textwrap.wrap(text, max(self._width - indent, 40), break_long_words=False, break_on_hyphens=False)

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._coloured and style and text else text


def _said(line: LedgerLine) -> str:
    """The option as it is written, with its value; a bare flag is its own value."""
    value = line.value
    if value is None or str(value) == line.option or (isinstance(value, bool) and line.where is not None):
        shown = ""
    elif isinstance(value, dict):
        shown = " ".join(f"{key}={item}" for key, item in value.items())
    elif isinstance(value, list | tuple):
        shown = " ".join(map(str, value))
    else:
        shown = str(value)
    return one_line(f"{one_line(line.option, _WIDTH_OF_VALUE)} {one_line(shown, _WIDTH_OF_VALUE)}".strip())


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return 100
