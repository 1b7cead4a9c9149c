"""What the evaluator keeps: state, launches, findings, limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from translator.findings import Finding, Level, Place
from translator.shell import sbatch
from translator.shell.expand import Expander
from translator.shell.flow import Flow, LimitError
from translator.shell.launch import Context
from translator.shell.launchers import LAUNCHERS, Launcher
from translator.shell.state import State, Var
from translator.shell.syntax import Block, Node
from translator.shell.values import Chunk, Launch, Source, Unknown, Value, WrittenFile

NOTHING: Mapping[str, Value] = MappingProxyType({})
MAX_STEPS = 200_000
MAX_DEPTH = 90
MAX_VALUE = 1_000_000
MAX_CHUNKS = 50_000
MAX_FINDINGS = 200


class Core:
    """The parts that assignments, commands and statements share."""

    def __init__(
        self,
        source: Source,
        positional: Sequence[str],
        given: Mapping[str, str],
        read_sibling: Callable[[str], str | None] | None,
        launchers: Mapping[str, Launcher] = LAUNCHERS,
    ) -> None:
        self.source = source
        self.offset = 0
        self.state = State()
        self.read_sibling = read_sibling
        self.launchers = launchers
        self.findings: list[Finding] = []
        self._reported: set[tuple[str, str, Place | None]] = set()
        self.launches: list[Launch] = []
        self.files: list[WrittenFile] = []
        # What the files hold that the script itself has written so far, by path.
        self.bodies: dict[str, Value] = {}
        self.holes: list[Unknown] = []
        self.pending: list[tuple[Flow, State, Unknown]] = []
        self.context = Context()
        self.cause: Unknown | None = None
        self.assumable = False
        self.substituted = False
        self.out: list[Chunk] | None = None
        self.opaque = False
        self.stdin: Value | None = None
        self.function_name = ""
        self.locals: list[dict[str, Var | None]] = []
        self.quiet = 0
        self.tested = 0
        self.steps = 0
        self.depth = 0
        self.file_depth = 0
        self.reading: list[str] = [source.file]
        self._bodies: dict[tuple[int, int], tuple[Source, Block]] = {}
        file_name = Value((Chunk(source.file, source, 0),))
        self.zero = self.file_name = file_name
        outside = Source("", "--set")
        self.given = {name: Value((Chunk(text, outside, 0),)) for name, text in given.items()}
        for name, value in self.given.items():
            self.state.vars[name] = var = Var(value)
            var.exported = True
        arguments = Source("", "--args")
        self.state.positional = [Value((Chunk(text, arguments, 0),)) for text in positional]
        self.allocation: dict[str, Value] = {}
        self.scheduled = False
        self.scheduler_set: dict[str, Var] = {}
        self.allocate(source)
        self.expander = Expander(self)  # type: ignore[arg-type]

    def allocate(self, source: Source, asked: Mapping[str, Value] = NOTHING) -> None:
        """Take ``#SBATCH`` directives into account, and what ``sbatch`` is asked for."""
        found = sbatch.directives(source, asked)
        if not found and self.allocation:
            return
        self.allocation = found
        self.scheduled = bool(found) or "#SBATCH" in source.text
        for name, value in sbatch.variables(found).items():
            if name not in self.given:
                self.state.vars[name] = self.scheduler_set[name] = var = Var(value)
                var.exported = True

    # -- reports and limits

    def report(
        self, code: str, level: str, message: str, place: Place | None, fix: str = "", *, option: str | None = None
    ) -> None:
        """One finding; the same thing is said once."""
        key = (code, message, place)
        if key not in self._reported and len(self.findings) < MAX_FINDINGS:
            self._reported.add(key)
            self.findings.append(Finding(code, Level(level), message, fix, place, option))

    def spend(self, steps: int = 1) -> None:
        """Count work. Raises `LimitError` beyond the limit."""
        self.steps += steps
        if self.steps > MAX_STEPS:
            raise LimitError(f"more than {MAX_STEPS} steps")

    def bounded(self, value: Value) -> Value:
        """The value, if its size is sensible. Raises `LimitError`."""
        size = len(value.text)
        if size > MAX_VALUE or len(value.chunks) > MAX_CHUNKS:
            raise LimitError(f"a value grows beyond {MAX_VALUE} characters")
        if size > 2000 or len(value.chunks) > 200:
            self.spend(size // 1000 + len(value.chunks) // 50)
        return value

    def here(self) -> Place:
        """The place of the current command."""
        return self.source.place(self.offset)

    # -- what the statements provide to the commands

    def execute(self, node: Node) -> Flow | None:
        """One statement."""
        raise NotImplementedError

    def run_text(self, source: Source, start: int = 0, end: int | None = None) -> Flow | None:
        """Parse and evaluate a text."""
        raise NotImplementedError

    def subshell(self, action: Callable[[], Flow | None]) -> None:
        """Run with a copy of the state."""
        raise NotImplementedError

    def settle_pending(self, mark: int, kinds: frozenset[str]) -> None:
        """Merge the states that left early where it was not known whether they would."""
        raise NotImplementedError
