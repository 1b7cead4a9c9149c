"""Simple commands: assignments, functions, builtins, redirections, other shells and launches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from posixpath import normpath
from typing import TYPE_CHECKING

from translator.shell import builtins, filters, launch
from translator.shell.assigning import Assigning
from translator.shell.core import NOTHING
from translator.shell.expand import PUT_IT_THERE, not_set, supply
from translator.shell.flow import Flow, LimitError
from translator.shell.lexer import Lexer
from translator.shell.placeholders import join
from translator.shell.state import Var
from translator.shell.syntax import Assign, Function, Heredoc, Redirect, Simple
from translator.shell.tokens import tokenize
from translator.shell.values import (
    HOLE,
    SPLIT,
    Chunk,
    DerivedSource,
    Source,
    Unknown,
    Value,
    Word,
    WrittenFile,
)

if TYPE_CHECKING:
    from translator.shell.interp import Interpreter

MAX_CALLS = 30
MAX_FILES = 200
MAX_LAUNCHES = 1_000


class Commands(Assigning):
    """The part of the interpreter that runs simple commands."""

    # -- running a command

    def simple(self, node: Simple) -> Flow | None:
        """One simple command."""
        tokens = node.tokens
        if tokens is None:
            tokens = node.tokens = tokenize(Lexer(node.source), node.spans)
        if node.dangling is not None:
            place = node.source.place(node.dangling)
            message = "the backslash is followed by a space: it does not continue the line, and passes a space"
            self.report("R072", "warning", message, place, "remove what follows the backslash")
        if tokens.trouble is not None:
            place = node.source.place(tokens.trouble)
            self.report("R060", "error", "this is not understood as bash", place, "check the script with bash -n")
        if tokens.redirects or node.heredocs:
            return self.with_redirects(node, lambda: self._words(node, tokens.words, tokens.assigns))
        return self._words(node, tokens.words, tokens.assigns)

    def _words(self, node: Simple, words: Sequence[object], assigns: Sequence[Assign]) -> Flow | None:
        source = node.source
        if not words:
            self.substituted = False
            for assign in assigns:
                self.apply(assign, source)
            if not self.substituted:
                self.state.status = 0
                self.assumable = False
            return None
        first = words[0]
        bare = first.bare if not isinstance(first, Assign) else None  # type: ignore[attr-defined]
        if bare in builtins.DECLARATIONS:
            for assign in assigns:
                self.apply(assign, source)
            builtins.declare(self._interp(), bare, words[1:], source)
            return None
        values = self.expander.fields(words, source)  # type: ignore[arg-type]
        if not values:
            for assign in assigns:
                self.apply(assign, source)
            return None
        self.offset = node.start
        if not assigns:
            return self.command(values)
        return self._with_assigns(assigns, source, values)

    def _interp(self) -> Interpreter:
        return self  # type: ignore[return-value]

    def _with_assigns(self, assigns: Sequence[Assign], source: Source, values: list[Value]) -> Flow | None:
        """``NAME=value command``: set and exported for this command alone."""
        saved = {assign.name: self.state.vars.get(assign.name) for assign in assigns}
        for assign in assigns:
            self.apply(assign, source)
            var = self.state.vars.get(assign.name)
            if var is not None:
                self.state.vars[assign.name] = exported = var.replaced(var.value, var.array)
                exported.exported = True
        try:
            return self.command(values)
        finally:
            self.restore_locals(saved)

    def command(self, values: list[Value]) -> Flow | None:
        """A command whose words are expanded."""
        name = values[0].text
        function = self.state.functions.get(name)
        if function is not None:
            return self.call(function, values[1:])
        handler = builtins.BUILTINS.get(name)
        if handler is not None:
            self.state.status = 0
            self.assumable = False
            return handler(self._interp(), values[1:])
        return self.external(values)

    def call(self, function: Function, arguments: list[Value]) -> Flow | None:
        """A function call."""
        if len(self.locals) >= MAX_CALLS:
            raise LimitError(f"functions call each other more than {MAX_CALLS} deep")
        outer_arguments, outer_name = self.state.positional, self.function_name
        mark = len(self.pending)
        self.state.positional, self.function_name = arguments, function.name
        self.locals.append({})
        try:
            flow = self.execute(function.body)
            self.settle_pending(mark, frozenset({"return"}))
        finally:
            self.restore_locals(self.locals.pop())
            self.state.positional, self.function_name = outer_arguments, outer_name
        return None if flow is not None and flow.kind == "return" else flow

    # -- redirections

    def with_redirects(self, node: Simple, action: Callable[[], Flow | None]) -> Flow | None:
        """Run with the redirections and heredocs of a command."""
        tokens = node.tokens
        if tokens is None:
            tokens = node.tokens = tokenize(Lexer(node.source), node.spans)
        outer_out, outer_in, outer_opaque = self.out, self.stdin, self.opaque
        target: Value | None = None
        appends = False
        for redirect in tokens.redirects:
            target = self._redirect(redirect, node.source, target)
            appends = appends or redirect.operator in {">>", "&>>"}
        for heredoc in node.heredocs:
            self.stdin = self._heredoc(heredoc, node.source)
        diverted = target is not None
        before = self.bodies.pop(normpath(target.text), None) if target is not None else None
        if diverted:
            self.out, self.opaque = None if appends and before is None else [], False
        try:
            flow = action()
            if target is not None and self.out and not self.opaque:
                self.write(target, Value((*before.chunks, *self.out) if appends and before is not None else self.out))
        finally:
            if diverted:
                self.opaque = outer_opaque
            self.out, self.stdin = outer_out, outer_in
        return flow

    def _redirect(self, redirect: Redirect, source: Source, target: Value | None) -> Value | None:
        """Apply one redirection; returns where standard output goes when that is not the reader of the command."""
        value = self.expander.value(redirect.target, source)
        operator, descriptor = redirect.operator, redirect.descriptor
        if operator == "<<<":
            newline = Chunk("\n", source, source.text.find("\n") if not value.chunks else value.chunks[-1].offset)
            self.stdin = Value((*value.chunks, newline))
        elif operator == "<" and descriptor in {"", "0"}:
            unknown = Unknown(f"< {value.text}", None, "the content of a file", self.here())
            self.stdin = Value((Chunk(unknown.expression, source, self.offset, unknown),))
        elif operator in {">", ">>", ">|", "&>", "&>>", "<>"} and descriptor in {"", "1"}:
            return value
        elif operator == ">&" and descriptor in {"", "1"} and value.text != "1":
            return Value((Chunk("/dev/stderr", source, self.offset),))
        return target

    def _heredoc(self, heredoc: Heredoc, source: Source) -> Value:
        if heredoc.literal:
            value = Value((Chunk(source.text[heredoc.start : heredoc.end], source, heredoc.start),))
        else:
            value = self.expander.span(heredoc.start, heredoc.end, source)
        if heredoc.strip:
            chunks: list[Chunk] = []
            fresh = True
            for chunk in value.chunks:
                at = 0
                for line in chunk.text.splitlines(keepends=True):
                    skip = len(line) - len(line.lstrip("\t")) if fresh and chunk.unknown is None else 0
                    chunks.append(chunk.cut(at + skip, at + len(line)))
                    at += len(line)
                    fresh = line.endswith("\n")
            value = Value(chunks)
        if value.chunks and not value.text.endswith("\n"):
            value = Value((*value.chunks, Chunk("\n", source, heredoc.end)))
        return value

    def write(self, path: Value, body: Value) -> None:
        """Note a file that the script writes."""
        if path.text.startswith("/dev/") or len(self.files) >= MAX_FILES:
            return
        place = self.here()
        if path.known:
            self.bodies[normpath(path.text)] = body
        self.files.append(WrittenFile(path.word(place), body.word(place), place))

    def text_of(self, name: str) -> str | None:
        """The text of a file: written by the script before, or beside it; None where it is neither or not known."""
        body = self.bodies.get(normpath(name))
        if body is not None:
            return body.text if body.known else None
        return self.read_sibling(name) if self.read_sibling is not None else None

    # -- other programs

    def emit(self, chunks: Sequence[Chunk]) -> None:
        """Write to standard output, when something reads it."""
        if self.out is not None:
            self.out.extend(chunks)
            if len(self.out) > 1000:
                self.spend(1)

    def external(self, values: list[Value]) -> Flow | None:
        """A command that bash would look up on PATH."""
        self.spend(1)
        stripped = launch.strip(values, self.context, self.launchers)
        if isinstance(stripped, launch.Program):
            self._launch(stripped)
        elif isinstance(stripped, launch.Shell):
            return self._shell(stripped)
        elif self._is_own_script(stripped):
            return self._shell(launch.Shell(stripped.context, None, stripped.words[0], tuple(stripped.words[1:])))
        elif (stripped.words and len(stripped.words) < len(values) and self._inner(stripped)) or filters.run(
            self._interp(), stripped.words
        ):
            return None
        self._foreign(values)
        return None

    def _is_own_script(self, other: launch.Other) -> bool:
        """``./run.sh``: a script that lies beside this one, started by its path."""
        word = other.words[0] if other.words else None
        if word is None or not word.known or "/" not in word.text or not word.text.endswith((".sh", ".bash")):
            return False
        if normpath(word.text) in self.bodies:
            return True
        return self.read_sibling is not None and self.read_sibling(word.text) is not None

    def _inner(self, other: launch.Other) -> bool:
        """``exec myfunction``, ``env NAME=x cmd``: a launcher before something of the script's own."""
        if other.words[0].text in self.state.functions and other.context.names[-1:] != ("srun",):
            self.call(self.state.functions[other.words[0].text], list(other.words[1:]))
            return True
        return False

    def _foreign(self, values: Sequence[Value]) -> None:
        """A program of which nothing is known: its output and exit status are not."""
        self.opaque = True
        self.state.status = None
        self.assumable = True
        text = " ".join(value.text for value in values)
        self.cause = Unknown(text[:60], None, "another program's exit status", self.here())

    def _shell(self, shell: launch.Shell) -> Flow | None:
        """``bash -c 'code'`` or ``bash script.sh``."""
        code = shell.code
        if code is None and shell.script is None:
            code = self.stdin
            if code is None or (code.chunks and all(chunk.is_unknown for chunk in code.chunks)):
                self._foreign(())
                return None
        outer_context, outer_zero, outer_file = self.context, self.zero, self.file_name
        outer_allocation = self.allocation

        def run() -> Flow | None:
            self.state.functions = {}
            self.state.options = {}
            self.state.vars = {name: var for name, var in self.state.vars.items() if var.exported}
            for name, value in shell.context.env.items():
                self.state.vars[name] = var = Var(value)
                var.exported = True
            self.context = shell.context
            if shell.code is not None:
                if shell.batch:
                    self.allocate(Source("", self.source.file), shell.allocation)
                self.state.positional = list(shell.arguments[1:])
                self.zero = shell.arguments[0] if shell.arguments else self.zero
                return self.evaluate_text(shell.code)
            if code is not None:
                self.state.positional = list(shell.arguments)
                if shell.batch:
                    self.allocate(Source(code.text, self.source.file), shell.allocation)
                return self.evaluate_text(code)
            assert shell.script is not None
            self.state.positional = list(shell.arguments)
            self.zero = self.file_name = shell.script
            return self.read_file(shell.script, "called", batch=shell.batch, asked=shell.allocation)

        self.assumable = True
        self.state.status = 0
        try:
            self.subshell(run)
        finally:
            self.context, self.zero, self.file_name = outer_context, outer_zero, outer_file
            self.allocation = outer_allocation
        self.opaque = self.opaque or self.quiet > 0
        return None

    def evaluate_text(self, code: Value) -> Flow | None:
        """``eval``: code that the script put together."""
        self.holes.extend(code.holes)
        self.spend(1 + len(code.text) // (2000 if len(code.text) < 16_000 else 20))
        if len(code.chunks) == 1 and code.chunks[0].is_unknown:
            self.report("R069", "warning", "code from another program's output is not evaluated", self.here())
            self._foreign([code])
            return None
        source: Source
        only = code.chunks[0] if len(code.chunks) == 1 else None
        if (
            only is not None
            and only.unknown is None
            and type(only.source) is Source
            and only.source.text.startswith(only.text, only.offset)
        ):
            return self.run_text(only.source, only.offset, only.offset + len(only.text))
        source = DerivedSource(code.chunks, self.source)
        return self.run_text(source)

    def read_file(
        self, path: Value, verb: str, *, batch: bool = False, asked: Mapping[str, Value] = NOTHING
    ) -> Flow | None:
        """Evaluate another file of the script's author, or one that the script has written."""

        body = self.bodies.get(normpath(path.text)) if path.known else None
        if body is not None:
            return self._read_written(path, body, batch=batch, asked=asked)
        name, text = path.text, None
        if self.read_sibling is not None:
            if path.known:
                text = self.read_sibling(name)
            else:
                known = 0
                for chunk in reversed(path.chunks):
                    if chunk.is_unknown:
                        break
                    known += len(chunk.text)
                name = name[len(name) - known :].lstrip("/") if known else ""
                text = self.read_sibling(name) if name else None
        if text is None:
            self.report(
                "R064", "warning", f"{path.text} is {verb}, but was not found", self.here(),
                "put the file beside the script, or pass what it sets with --set NAME=value",
            )  # fmt: skip
            self._foreign([path])
            return None
        if batch and name in self.reading:
            return None
        self.spend(10)
        self.file_depth += 1
        self.reading.append(name)
        if self.file_depth > 10:
            raise LimitError("files read each other more than 10 deep")
        outer_file, self.file_name = self.file_name, path
        mark = len(self.pending)
        try:
            source = Source(text.replace("\r\n", "\n"), name)
            if batch:
                self.allocate(source, asked)
            flow = self.run_text(source)
            self.settle_pending(mark, frozenset({"return"}))
        finally:
            self.file_name = outer_file
            self.file_depth -= 1
            self.reading.pop()
        return None if flow is not None and flow.kind == "return" else flow

    def _read_written(self, path: Value, body: Value, *, batch: bool, asked: Mapping[str, Value]) -> Flow | None:
        """Evaluate a file that the script has written."""
        self.file_depth += 1
        if self.file_depth > 10:
            raise LimitError("files read each other more than 10 deep")
        outer_file, self.file_name = self.file_name, path
        mark = len(self.pending)
        try:
            if batch:
                self.allocate(Source(body.text, self.source.file), asked)
            flow = self.evaluate_text(body)
            self.settle_pending(mark, frozenset({"return"}))
        finally:
            self.file_name = outer_file
            self.file_depth -= 1
        return None if flow is not None and flow.kind == "return" else flow

    def environment(self, extra: Mapping[str, Value]) -> dict[str, Word]:
        """What a program started here finds in its environment."""
        place = self.here()
        env: dict[str, Word] = {}
        for name, var in self.state.vars.items():
            if var.exported and var.array is None and var.value is not None and self.scheduler_set.get(name) is not var:
                env[name] = var.value.word(place)
        env.update((name, value.word(place)) for name, value in extra.items())
        return env

    def _launch(self, program: launch.Program) -> None:
        self._foreign([program.program])
        if self.quiet:
            return
        if len(self.launches) >= MAX_LAUNCHES:
            raise LimitError(f"more than {MAX_LAUNCHES} launches")
        place = self.here()
        env = self.environment(program.context.env)
        program = self._filled_in(program)
        found = launch.build(program, env, self.allocation, place)
        self.launches.append(found)
        self.spend(len(found.argv) // 8)
        self._remark((program.program, *program.arguments))

    def _filled_in(self, program: launch.Program) -> launch.Program:
        """The program with placeholders in one piece; bash would cut them into words that nobody means."""
        arguments, placeholders = join(program.arguments)
        for unknown in placeholders:
            message = f"{unknown.expression} is a placeholder, not a value"
            self.report("R071", "warning", message, unknown.place, PUT_IT_THERE)
        return replace(program, arguments=arguments) if placeholders else program

    def _remark(self, arguments: Sequence[Value]) -> None:
        """Findings on what expansion did to the arguments of a launch."""
        for unknown in self.holes:
            self._hole(unknown, None, "")
        self.holes.clear()
        option: Value | None = None
        for value in arguments:
            option = value if value.text.startswith("--") else option
            words = value.text if option is None or option is value else f"{option.text} {value.text}"
            for chunk in value.chunks:
                if chunk.flags & HOLE and chunk.unknown is not None:
                    behind = chunk is value.chunks[-1] and not value.text.endswith("=")
                    self._hole(chunk.unknown, option, f" {'after' if behind else 'in'} {words}")
                elif chunk.flags & SPLIT and chunk.unknown is None and ("'" in chunk.text or '"' in chunk.text):
                    self.report(
                        "R062", "warning", f"the quote characters in {chunk.text} reach the program", chunk.place(),
                        "make the option and its value two words, and quote the expansion",
                    )  # fmt: skip

    def _hole(self, unknown: Unknown, option: Value | None, where: str) -> None:
        name = unknown.name or unknown.expression
        message = f"{not_set([name])} and expands to nothing{where}"
        self.report("R061", "warning", message, unknown.place, supply(name), option=option.text if option else None)
