"""Plain argument text: words without a script around them."""

from __future__ import annotations

from translator.errors import SourceError
from translator.shell.flow import LimitError
from translator.shell.lexer import Lexer, Lit, Param
from translator.shell.tokens import plain_words
from translator.shell.values import Chunk, Source, Unknown, Value, Word


def plain(text: str, file: str) -> tuple[Word, ...]:
    """The words of the text; expansions stay unknown."""
    source = Source(text.replace("\r\n", "\n"), file)
    words: list[Word] = []
    try:
        raw_words = plain_words(Lexer(source), 0, len(source.text))
    except LimitError as error:
        raise SourceError(f"{file}: {error}") from error
    for raw in raw_words:
        chunks: list[Chunk] = []
        for part in raw.parts:
            if isinstance(part, Lit):
                chunks.append(Chunk(part.text, source, part.start))
                continue
            expression = source.text[part.start : part.end]
            name = part.name if isinstance(part, Param) else None
            place = source.place(part.start)
            chunks.append(Chunk(expression, source, part.start, Unknown(expression, name, "not a script", place)))
        start = source.place(raw.start, raw.end)
        value = Value(chunks)
        words.append(Word(value.text, start, value.unknowns))
    return tuple(words)
