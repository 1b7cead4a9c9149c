"""Bash's own commands, as far as they change variables, print text or end something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from translator.shell import conditions
from translator.shell.arithmetic import ArithmeticFaultError
from translator.shell.expand import UnknownArithmeticError
from translator.shell.flow import Flow
from translator.shell.output import echo, format_text
from translator.shell.state import Key, Var
from translator.shell.syntax import Assign
from translator.shell.tokens import DECLARATIONS
from translator.shell.values import Chunk, Source, Unknown, Value

if TYPE_CHECKING:
    from translator.shell.interp import Interpreter

Handler = Callable[["Interpreter", list[Value]], "Flow | None"]

_LONG_OPTIONS = {"e": "errexit", "u": "nounset", "a": "allexport", "f": "noglob"}


def _chunk(interp: Interpreter, text: str) -> Chunk:
    return Chunk(text, interp.source, interp.offset)


def _value(interp: Interpreter, text: str) -> Value:
    return Value((_chunk(interp, text),))


def _flow(kind: str, levels: int = 1) -> Flow:
    return Flow(kind, levels)


def _number(values: Sequence[Value], default: int) -> int:
    text = values[0].text if values else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default


# -- flow


def _exit(interp: Interpreter, values: list[Value]) -> Flow:
    interp.state.status = _number(values, 0)
    return _flow("exit")


def _return(interp: Interpreter, values: list[Value]) -> Flow:
    interp.state.status = _number(values, interp.state.status or 0)
    return _flow("return")


def _break(interp: Interpreter, values: list[Value]) -> Flow:
    return _flow("break", max(_number(values, 1), 1))


def _continue(interp: Interpreter, values: list[Value]) -> Flow:
    return _flow("continue", max(_number(values, 1), 1))


def _nothing(interp: Interpreter, values: list[Value]) -> None:
    return None


def _false(interp: Interpreter, values: list[Value]) -> None:
    interp.state.status = 1


# -- variables


def declare(interp: Interpreter, command: str, words: Sequence[object], source: Source) -> None:
    """``export``, ``declare``, ``local``, ``readonly``: words are as written, assignments not expanded twice."""
    on: set[str] = set()
    off: set[str] = set()
    interp.state.status = 0
    interp.assumable = False
    printing = False
    for word in words:
        if isinstance(word, Assign):
            _declare_one(interp, command, word.name, on, off, before=True)
            interp.apply(word, source)
            _declare_one(interp, command, word.name, on, off, before=False)
            continue
        for value in interp.expander.fields([word], source):  # type: ignore[list-item]
            text = value.text
            if text[:1] in {"-", "+"} and len(text) > 1:
                (on if text[0] == "-" else off).update(text[1:])
                printing = printing or text == "-p"
                continue
            name, equals, _ = text.partition("=")
            append = name.endswith("+")
            name = name.removesuffix("+")
            if not name.isidentifier() or not name.isascii():
                continue
            _declare_one(interp, command, name, on, off, before=True)
            if equals:
                from translator.shell.state import slice_value

                rest = slice_value(value, text.index("=") + 1, len(text))
                interp.assign(name, None, Value(rest), append=append)
            _declare_one(interp, command, name, on, off, before=False)
    if printing:
        interp.opaque = True


def _declare_one(interp: Interpreter, command: str, name: str, on: set[str], off: set[str], *, before: bool) -> None:
    state = interp.state
    local = command == "local" or (command in {"declare", "typeset"} and interp.locals and "g" not in on)
    if before:
        if command == "export" and "f" in on:
            return
        if local and interp.locals and name not in interp.locals[-1]:
            interp.declare_local(name)
            state.vars.pop(name, None)
        var = state.vars.get(name)
        wants_array = bool(on & {"a", "A"})
        if var is None and command != "export":
            var = Var(None, {} if wants_array else None)
        elif var is not None and wants_array and var.array is None:
            var = var.replaced(None, {} if var.value is None else {("0" if "A" in on else 0): var.value})
        elif var is not None:
            var = var.replaced(var.value, var.array)
        if var is None:
            return
        if "A" in on:
            var.assoc = True
        var.integer = ("i" in on) or (var.integer and "i" not in off)
        var.reference = var.reference or ("n" in on and command != "export")
        var.case = "upper" if "u" in on else "lower" if "l" in on else var.case
        state.vars[name] = var
        return
    var = state.vars.get(name)
    if var is None:
        if command != "export" or "n" in on or "f" in on:
            return
        var = Var(None)
    var = var.replaced(var.value, var.array)
    if (command == "export" and "n" not in on) or "x" in on:
        var.exported = True
    if (command == "export" and "n" in on) or "x" in off:
        var.exported = False
    if command == "readonly" or "r" in on:
        var.readonly = True
    state.vars[name] = var


def _unset(interp: Interpreter, values: list[Value]) -> None:
    functions = False
    for value in values:
        text = value.text
        if text.startswith("-"):
            functions = "f" in text
        elif functions:
            interp.state.functions.pop(text, None)
        elif text.endswith("]") and "[" in text:
            name, index = text[:-1].split("[", 1)
            var = interp.state.vars.get(name)
            if var is not None and var.array is not None:
                key = interp.key(var, _value(interp, index))
                interp.state.vars[name] = var.replaced(None, {k: v for k, v in var.array.items() if k != key})
        elif text in interp.state.vars:
            if not interp.state.vars[text].readonly:
                del interp.state.vars[text]
        else:
            interp.state.functions.pop(text, None)


def _set(interp: Interpreter, values: list[Value]) -> None:
    at = 0
    while at < len(values):
        text = values[at].text
        if text == "--":
            interp.state.positional = list(values[at + 1 :])
            return
        if text in {"-o", "+o"} and at + 1 < len(values):
            interp.state.options[values[at + 1].text] = text[0] == "-"
            at += 2
            continue
        if text[:1] in {"-", "+"} and len(text) > 1:
            for letter in text[1:]:
                if letter == "o" and at + 1 < len(values):
                    at += 1
                    interp.state.options[values[at].text] = text[0] == "-"
                else:
                    interp.state.options[_LONG_OPTIONS.get(letter, letter)] = text[0] == "-"
            at += 1
            continue
        interp.state.positional = list(values[at:])
        return


def _shift(interp: Interpreter, values: list[Value]) -> None:
    count = _number(values, 1)
    if count > len(interp.state.positional):
        interp.state.status = 1
        return
    interp.state.positional = interp.state.positional[count:]


def _let(interp: Interpreter, values: list[Value]) -> None:
    for value in values:
        try:
            interp.state.status = int(interp.expander.arithmetic(value) == 0)
        except UnknownArithmeticError as error:
            interp.set_verdict(error.unknown)
        except ArithmeticFaultError as error:
            interp.state.status = 1
            interp.report("R066", "error", f"let {value.text[:60]}: {error}", interp.here())


def _read(interp: Interpreter, values: list[Value]) -> None:
    """``read``: known text from a here-string or heredoc is split; anything else is unknown."""
    names, array, separators = [], "", None
    at = 0
    while at < len(values):
        text = values[at].text
        if text.startswith("-") and len(text) > 1:
            letter = text[-1]
            if letter in "apdnNtu" and at + 1 < len(values):
                at += 1
                array = values[at].text if letter == "a" else array
                separators = values[at].text if letter == "d" else separators
        else:
            names.append(text)
        at += 1
    interp.assumable = False
    if interp.stdin is None or not interp.stdin.known:
        cause = interp.stdin.unknowns[0] if interp.stdin is not None else None
        for name in names or [array or "REPLY"]:
            unknown = Unknown(f"${name}", name, "read from " + (cause.expression if cause else "input"), interp.here())
            interp.assign(name, None, Value((Chunk(f"${name}", interp.source, interp.offset, unknown),)))
        interp.state.status = None
        interp.cause = Unknown("read", None, "depends on input", interp.here())
        return
    text = interp.stdin.text
    line, newline, _ = text.partition("\n") if separators is None else (text, "", "")
    from translator.shell.state import slice_value
    from translator.shell.values import SPLIT

    head = slice_value(interp.stdin, 0, len(line))
    interp.stdin = Value(slice_value(interp.stdin, len(line) + len(newline), len(text)))
    interp.state.status = 0 if newline or (line and separators is not None) else 1
    fields: list[Value] = []
    interp.expander.split([chunk.flagged(SPLIT) for chunk in head], fields)
    if array:
        interp.state.vars[array] = Var(None, {k: Value([c.flagged(0) for c in v.chunks]) for k, v in enumerate(fields)})
        return
    for position, name in enumerate(names or ["REPLY"]):
        last = position == len(names) - 1
        if not names:
            interp.assign(name, None, Value(head))
        elif last and len(fields) > position:
            start = fields[position].chunks[0]
            offset = next(i for i, c in enumerate(head) if c.source is start.source and c.offset <= start.offset)
            skip = sum(len(c.text) for c in head[:offset]) + start.offset - head[offset].offset
            interp.assign(name, None, Value(slice_value(Value(head), skip, len(line.rstrip(" \t")))))
        else:
            interp.assign(name, None, fields[position] if position < len(fields) else Value(()))


def _mapfile(interp: Interpreter, values: list[Value]) -> None:
    name = "MAPFILE"
    trim = any(v.text == "-t" for v in values)
    if values and not values[-1].text.startswith("-"):
        name = values[-1].text
    if interp.stdin is None or not interp.stdin.known:
        unknown = Unknown(f"${{{name}[@]}}", name, "read from input", interp.here())
        interp.state.vars[name] = Var(None, {0: Value((Chunk(f"${{{name}[@]}}", interp.source, 0, unknown),))})
        return
    lines = interp.stdin.text.splitlines(keepends=not trim)
    interp.spend(len(lines))
    elements: dict[Key, Value] = {k: _value(interp, line) for k, line in enumerate(lines)}
    interp.state.vars[name] = Var(None, elements)


def _getopts(interp: Interpreter, values: list[Value]) -> None:
    """``getopts spec name``."""
    if len(values) < 2:
        interp.state.status = 1
        return
    spec, name = values[0].text, values[1].text
    arguments = values[2:] or interp.state.positional
    state = interp.state.vars
    index_var = state.get("OPTIND")
    index = _number([index_var.scalar] if index_var is not None and index_var.scalar is not None else [], 1)
    offset = int(interp.state.options.get("getopts_at", 0)) or 1
    word = arguments[index - 1].text if 0 < index <= len(arguments) else ""
    if len(word) < 2 or word[0] != "-" or word == "--":
        interp.assign("OPTIND", None, _value(interp, str(index + (word == "--"))))
        interp.assign(name, None, _value(interp, "?"))
        interp.state.status = 1
        return
    letter = word[offset]
    at = spec.find(letter) if letter != ":" else -1
    interp.state.vars.pop("OPTARG", None)
    following = offset + 1
    if at >= 0 and spec[at + 1 : at + 2] == ":":
        if following < len(word):
            interp.assign("OPTARG", None, _value(interp, word[following:]))
        elif index < len(arguments):
            interp.assign("OPTARG", None, arguments[index])
            index += 1
        else:
            letter = ":" if spec.startswith(":") else "?"
        following = len(word)
    elif at < 0:
        if spec.startswith(":"):
            interp.assign("OPTARG", None, _value(interp, letter))
        letter = "?"
    if following >= len(word):
        index, following = index + 1, 1
    interp.state.options["getopts_at"] = following  # type: ignore[assignment]
    interp.assign("OPTIND", None, _value(interp, str(index)))
    interp.assign(name, None, _value(interp, letter))


# -- text


def _echo(interp: Interpreter, values: list[Value]) -> None:
    if interp.out is not None:
        interp.emit(echo(values, interp.source, interp.offset))


def _printf(interp: Interpreter, values: list[Value]) -> None:
    target = ""
    if len(values) > 1 and values[0].text == "-v":
        target, values = values[1].text, values[2:]
    if values and values[0].text == "--":
        values = values[1:]
    if not values or (interp.out is None and not target):
        return
    chunks = format_text(values, interp.source, interp.offset)
    if chunks is None:
        text = values[0].text
        unknown = Unknown(f"printf {text}", None, "the format is not evaluated", interp.here())
        chunks = [Chunk(unknown.expression, interp.source, interp.offset, unknown)]
    if target:
        name, bracket, index = target.partition("[")
        interp.assign(name, index.removesuffix("]") if bracket else None, Value(chunks))
    else:
        interp.emit(chunks)


# -- code


def _eval(interp: Interpreter, values: list[Value]) -> Flow | None:
    chunks: list[Chunk] = []
    for value in values:
        if chunks:
            chunks.append(_chunk(interp, " "))
        chunks.extend(chunk.flagged(0) for chunk in value.chunks)
    return interp.evaluate_text(interp.bounded(Value(chunks)))


def _source(interp: Interpreter, values: list[Value]) -> Flow | None:
    if not values:
        return None
    if len(values) == 1:
        return interp.read_file(values[0], "sourced")
    outer = interp.state.positional
    interp.state.positional = list(values[1:])
    flow = interp.read_file(values[0], "sourced")
    interp.state.positional = outer
    return flow


def _test(interp: Interpreter, values: list[Value]) -> None:
    interp.set_verdict(conditions.test(interp, values))


def _bracket(interp: Interpreter, values: list[Value]) -> None:
    if values and values[-1].text == "]":
        values = values[:-1]
    interp.set_verdict(conditions.test(interp, values))


def _directory(interp: Interpreter, values: list[Value]) -> None:
    """``cd``, ``pushd``: assumed to succeed; where that is stays unknown."""
    interp.state.status = None
    interp.assumable = True
    interp.cause = Unknown("cd", None, "depends on the file system", interp.here())


def _exec(interp: Interpreter, values: list[Value]) -> Flow | None:
    if not values:
        return None
    interp.external([_value(interp, "exec"), *values])
    return _flow("exit") if interp.quiet == 0 else None


def _command(interp: Interpreter, values: list[Value]) -> Flow | None:
    """``command cmd`` runs it; ``command -v cmd`` asks whether it exists."""
    if values and values[0].text in {"-v", "-V"}:
        interp.opaque = True
        names = " ".join(v.text for v in values)
        interp.state.status = None
        interp.cause = Unknown(f"command {names}", None, "depends on what is installed", interp.here())
        return None
    return interp.command(values) if values else None


def _pwd(interp: Interpreter, values: list[Value]) -> None:
    found = interp.expander.params.lookup("PWD", interp.source, interp.offset, "$(pwd)")
    if found is not None:
        interp.emit(found.chunks)


BUILTINS: dict[str, Handler] = {
    "exit": _exit, "return": _return, "break": _break, "continue": _continue, ":": _nothing, "true": _nothing,
    "false": _false, "unset": _unset, "set": _set, "shift": _shift, "let": _let, "read": _read, "mapfile": _mapfile,
    "readarray": _mapfile, "getopts": _getopts, "echo": _echo, "printf": _printf, "eval": _eval, "source": _source,
    ".": _source, "test": _test, "[": _bracket, "cd": _directory, "pushd": _directory, "popd": _directory,
    "exec": _exec, "command": _command, "builtin": _command, "pwd": _pwd, "trap": _nothing, "wait": _nothing,
    "shopt": _nothing, "ulimit": _nothing, "umask": _nothing, "alias": _nothing, "unalias": _nothing,
    "sleep": _nothing, "disown": _nothing, "hash": _nothing, "bg": _nothing, "fg": _nothing,
}  # fmt: skip
"""Handlers by name; declarations (`declare`) are apart because their words are not expanded first."""

__all__ = ["BUILTINS", "DECLARATIONS", "declare"]
