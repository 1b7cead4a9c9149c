"""Small text programs that launch scripts use inside ``$(...)``, done here on text alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from translator.shell.calculator import calculate
from translator.shell.sed import edited
from translator.shell.state import slice_value
from translator.shell.values import Chunk, Value

if TYPE_CHECKING:
    from translator.shell.interp import Interpreter

Result = list[Chunk] | None


def run(interp: Interpreter, words: Sequence[Value]) -> bool:
    """Do what the program would; False when that is not known, for instance because its input is not."""
    if not words:
        return False
    handler = FILTERS.get(words[0].text)
    if handler is None or (interp.out is None and words[0].text not in {"cat", "tee"}):
        return False
    chunks = handler(interp, list(words[1:]))
    if chunks is None:
        return False
    interp.state.status = 0
    interp.assumable = False
    interp.emit(chunks)
    return True


def _text(interp: Interpreter, text: str, like: Value | None = None) -> list[Chunk]:
    first = like.chunks[0] if like is not None and like.chunks else None
    if first is None:
        return [Chunk(text, interp.source, interp.offset)]
    return [Chunk(text, first.source, first.offset)]


def _cat(interp: Interpreter, words: list[Value]) -> Result:
    operands = [word for word in words if word.text != "-"]
    if operands or interp.stdin is None:
        return None
    return list(interp.stdin.chunks)


def _tee(interp: Interpreter, words: list[Value]) -> Result:
    if interp.stdin is None or not interp.stdin.known:
        return None
    for word in words:
        if not word.text.startswith("-"):
            interp.write(word, interp.stdin)
    return list(interp.stdin.chunks)


def _basename(interp: Interpreter, words: list[Value]) -> Result:
    words = [w for w in words if w.text != "--"]
    if not words or not all(w.known for w in words) or words[0].text.startswith("-"):
        return None
    path = words[0].text.rstrip("/") or "/"
    start = path.rfind("/") + 1 if path != "/" else 0
    name = path[start:]
    suffix = words[1].text if len(words) > 1 else ""
    if suffix and name != suffix:
        name = name.removesuffix(suffix)
    return [*slice_value(words[0], start, start + len(name)), Chunk("\n", interp.source, interp.offset)]


def _dirname(interp: Interpreter, words: list[Value]) -> Result:
    words = [w for w in words if w.text != "--"]
    if len(words) != 1 or not words[0].known:
        return None
    path = words[0].text
    head = path.rstrip("/").rpartition("/")[0].rstrip("/")
    if not head:
        head = "/" if path.startswith("/") else "."
    return _text(interp, head + "\n", words[0])


def _seq(interp: Interpreter, words: list[Value]) -> Result:
    separator = "\n"
    if len(words) > 2 and words[0].text == "-s":
        separator, words = words[1].text, words[2:]
    if not 1 <= len(words) <= 3 or not all(re.fullmatch(r"-?\d{1,9}", w.text) for w in words):
        return None
    numbers = [int(w.text) for w in words]
    first = numbers[0] if len(numbers) > 1 else 1
    step = numbers[1] if len(numbers) == 3 else 1
    if step == 0 or abs(numbers[-1] - first) // abs(step) > 20_000:
        return None
    last = numbers[-1] + (1 if step > 0 else -1)
    texts = [str(n) for n in range(first, last, step)]
    interp.spend(len(texts))
    return _text(interp, separator.join(texts) + "\n" if texts else "")


def _expr(interp: Interpreter, words: list[Value]) -> Result:
    if not all(w.known for w in words):
        return None
    text = " ".join(w.text for w in words)
    if not re.fullmatch(r"[-+*/%()\d <>=!&|]*", text) or "=" in text:
        return None
    answer = calculate(text, 0)
    return None if answer is None else _text(interp, answer + "\n")


def _bc(interp: Interpreter, words: list[Value]) -> Result:
    if interp.stdin is None or not interp.stdin.known or any(w.text not in {"-l", "-q", "-lq"} for w in words):
        return None
    scale = 20 if any("l" in w.text for w in words) else 0
    answers: list[str] = []
    for statement in re.split(r"[;\n]", interp.stdin.text):
        assignment = re.fullmatch(r"\s*scale\s*=\s*(\d{1,2})\s*", statement)
        if assignment is not None:
            scale = int(assignment.group(1))
        elif statement.strip():
            answer = calculate(statement, scale)
            if answer is None:
                return None
            answers.append(answer)
    return _text(interp, "".join(f"{answer}\n" for answer in answers), interp.stdin)


def _tr(interp: Interpreter, words: list[Value]) -> Result:
    if interp.stdin is None or not interp.stdin.known or not words:
        return None
    delete = words[0].text == "-d"
    if delete:
        words = words[1:]
    sets = [_characters(w.text) for w in words]
    if any(s is None for s in sets) or len(sets) != (1 if delete else 2) or words[0].text.startswith("-"):
        return None
    first, second = sets[0] or "", (sets[1] or "") if not delete else ""
    if not delete and not second:
        return None
    table = {ord(c): None if delete else second[min(i, len(second) - 1)] for i, c in enumerate(first)}
    return _text(interp, interp.stdin.text.translate(table), interp.stdin)


def _characters(text: str) -> str | None:
    classes = {"[:upper:]": "A-Z", "[:lower:]": "a-z", "[:digit:]": "0-9", "[:space:]": " \t\n\r\v\f"}
    for name, replacement in classes.items():
        text = text.replace(name, replacement)
    if "[:" in text:
        return None
    text = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\\", "\\")
    return re.sub(
        r"(.)-(.)",
        lambda hit: "".join(map(chr, range(ord(hit.group(1)), min(ord(hit.group(2)), ord(hit.group(1)) + 256) + 1))),
        text,
        flags=re.DOTALL,
    )


def _cut(interp: Interpreter, words: list[Value]) -> Result:
    if interp.stdin is None or not interp.stdin.known:
        return None
    joined = " ".join(w.text if w.text != " " else "\x00" for w in words)
    separator, field = "\t", ""
    hit = re.search(r"-d ?(\S)", joined)
    if hit is not None:
        separator = hit.group(1).replace("\x00", " ")
    hit = re.search(r"-f ?(\d+)\Z|-f ?(\d+) ", joined)
    if hit is None:
        return None
    field = hit.group(1) or hit.group(2)
    lines = []
    for line in interp.stdin.text.splitlines():
        pieces = line.split(separator)
        index = int(field) - 1
        lines.append(line if len(pieces) == 1 else pieces[index] if 0 <= index < len(pieces) else "")
    return _text(interp, "".join(f"{line}\n" for line in lines), interp.stdin)


def _wc(interp: Interpreter, words: list[Value]) -> Result:
    if interp.stdin is None or not interp.stdin.known or len(words) != 1:
        return None
    text = interp.stdin.text
    counts = {"-w": len(text.split()), "-l": text.count("\n"), "-c": len(text.encode()), "-m": len(text)}
    count = counts.get(words[0].text)
    return None if count is None else _text(interp, f"{count}\n")


def _lines(first: bool) -> Callable[[Interpreter, list[Value]], Result]:
    def handler(interp: Interpreter, words: list[Value]) -> Result:
        hit = re.fullmatch(r"-n? ?(\d+)|", " ".join(w.text for w in words))
        if interp.stdin is None or not interp.stdin.known or hit is None:
            return None
        count = int(hit.group(1) or 10)
        lines = interp.stdin.text.splitlines(keepends=True)
        kept = lines[:count] if first else lines[max(len(lines) - count, 0) :]
        return _text(interp, "".join(kept), interp.stdin)

    return handler


def _sed(interp: Interpreter, words: list[Value]) -> Result:
    text = edited(interp, words)
    return None if text is None else _text(interp, text)


FILTERS: dict[str, Callable[[Interpreter, list[Value]], Result]] = {
    "cat": _cat, "tee": _tee, "basename": _basename, "dirname": _dirname, "seq": _seq, "expr": _expr, "bc": _bc,
    "tr": _tr, "cut": _cut, "wc": _wc, "head": _lines(True), "tail": _lines(False),
    "sed": _sed,
}  # fmt: skip
