"""Exceptions that stop work. They carry one line for the person and the exit code of the command."""

from __future__ import annotations

from translator.findings import Place


class TtxError(Exception):
    """Base of every error that ttx raises on purpose; printed as one line, never as a traceback."""

    exit_code = 2

    def __init__(self, message: str, *, place: Place | None = None, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.fix = fix

    def __str__(self) -> str:
        head = f"{self.place}: " if self.place else ""
        tail = f" ({self.fix})" if self.fix else ""
        return f"{head}{self.message}{tail}"


class SourceError(TtxError):
    """The input cannot be read: missing, binary, too large, truncated, or not what it claims to be."""


class UnsupportedError(SourceError):
    """The input is what it claims to be, and of a kind that ttx cannot read."""


class UsageError(TtxError):
    """The command or the API was called wrongly: unknown framework, version, flag value, output path."""


class InternalError(TtxError):
    """ttx contradicts itself, for instance when read-back differs from what the ledger admits."""

    exit_code = 3
