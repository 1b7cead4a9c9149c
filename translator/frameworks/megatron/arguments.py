"""Megatron-LM's argument parser, over our catalogue: words in, typed options out.

It reproduces ``argparse`` with ``allow_abbrev=False`` (``megatron/training/arguments.py:130``, core 0.18.0) word for
word, with one difference: where argparse stops, it records a finding and goes on. Words whose text is not determined
give `Missing` values instead of guesses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from translator.catalogue.model import Catalogue, Entry, History, history, load, nearest
from translator.errors import UsageError
from translator.findings import Edit, Finding, Level, Place
from translator.frameworks.megatron.converters import CONVERTERS
from translator.native import Given, Missing

if TYPE_CHECKING:
    from translator.shell.values import Word

FRAMEWORK = "megatron"
HELP_FLAGS = ("-h", "--help")
# How alike two spellings must be (0 to 100) for the unknown one to count as a slip of the pen.
MISSPELT_SCORE = 88.0

# Renamed flags whose destinations have nothing in common; the release notes and the parser's own advice say so.
RENAMED_FLAGS = (
    ("--muon-use-nesterov", "--muon-nesterov"),
    ("--use-custom-fsdp", "--use-megatron-fsdp"),
    ("--cuda-graph-scope", "--cuda-graph-modules"),
)

# A value that says of a bare flag what the flag says alone.
_SAYS_YES = frozenset({"true", "1", "yes", "on"})
_PLAIN = re.compile(r"[\w.,:/+|*-]+")  # means to a shell what it is

OPTION, VALUE, SEPARATOR, OPEN = "O", "A", "-", "?"


def parse_arguments(words: Sequence[Word], catalogue: Catalogue) -> tuple[dict[str, Given], list[Given], list[Finding]]:
    """What a sequence of words means to the argument parser of one version.

    Returns the options by ``dest`` (the last one wins), what the catalogue does not have (in order, with the words that
    followed it), and the findings. Never raises for bad words.
    """
    parser = _Parser(words, catalogue)
    parser.run()
    return parser.given, parser.unknown, parser.findings


def is_negative_number(text: str) -> bool:
    """Whether argparse takes a word for a negative number: ``-1``, ``-0.5``, ``-.5``, but not ``-1e-5``."""
    body = text[1:]
    if not text.startswith("-") or not body.isascii():
        return False
    whole, point, fraction = body.partition(".")
    if not point:
        return whole.isdigit()
    return fraction.isdigit() and (not whole or whole.isdigit())


def missing_value(words: Sequence[Word]) -> Missing:
    """The `Missing` for a value that contains undetermined words."""
    unknowns = [unknown for word in words for unknown in word.unknowns]
    reasons = dict.fromkeys(unknown.reason for unknown in unknowns)
    names = dict.fromkeys(unknown.name for unknown in unknowns if unknown.name)
    supply = " ".join(f"--set {name}=..." for name in names)
    return Missing(" ".join(word.text for word in words), "; ".join(reasons), supply)


class _Parser:
    def __init__(self, words: Sequence[Word], catalogue: Catalogue) -> None:
        self.words = words
        self.catalogue = catalogue
        self.given: dict[str, Given] = {}
        self.unknown: list[Given] = []
        self.findings: list[Finding] = []
        self.kinds = self._classify()

    def run(self) -> None:
        at = 0
        while at < len(self.words):
            kind = self.kinds[at]
            if kind == OPTION:
                at = self._option(at)
            else:
                if kind == OPEN:
                    self._open_word(at)
                else:
                    self._stray(at)
                at += 1

    def _classify(self) -> list[str]:
        kinds: list[str] = []
        only_values = False  # after a `--`, everything is a value
        for word in self.words:
            kinds.append(VALUE if only_values else self._kind(word))
            only_values = only_values or kinds[-1] == SEPARATOR
        return kinds

    def _kind(self, word: Word) -> str:
        text = word.text
        if word.unknowns:
            flag, equals, _ = text.partition("=")
            return OPTION if equals and self.catalogue.by_flag(flag) else OPEN
        if text == "--":
            return SEPARATOR
        if len(text) < 2 or text[0] != "-":
            return VALUE
        if self.catalogue.by_flag(text) or text in HELP_FLAGS:
            return OPTION
        flag, equals, _ = text.partition("=")
        if equals and self.catalogue.by_flag(flag):
            return OPTION
        return VALUE if is_negative_number(text) or " " in text else OPTION

    def _option(self, at: int) -> int:
        word = self.words[at]
        entry, flag, attached = self.catalogue.by_flag(word.text), word.text, None
        if entry is None:
            flag, equals, rest = word.text.partition("=")
            entry, attached = self.catalogue.by_flag(flag), rest if equals else None
        if entry is None:
            return self._unknown_option(at, flag, attached)
        if attached is not None:
            self._attached(entry, flag, attached, word)
            return at + 1
        end = at + 1
        limit = _most(entry)
        while end < len(self.words) and end - at - 1 < limit and self.kinds[end] in (VALUE, OPEN):
            end += 1
        values = self.words[at + 1 : end]
        if len(values) < _least(entry):
            self._say("R017", Level.ERROR, f"{flag} expects {_expected_count(entry)}", word, "give the value", flag)
            self._store(entry, flag, Missing(flag, "no value follows the option", flag + " VALUE"), word)
            return end
        self._take(entry, flag, values, word)
        return end

    def _attached(self, entry: Entry, flag: str, text: str, word: Word) -> None:
        if not entry.takes_value:
            message = f"{flag} takes no value, {text!r} is refused"
            edits = _replaced(word, flag) if text.lower() in _SAYS_YES else ()
            self._say("R018", Level.ERROR, message, word, f"write {flag} alone", flag, edits)
            self._store(entry, flag, Missing(word.text, "a bare flag was given a value", flag), word)
        elif _least(entry) > 1:
            fix = f"write {flag} and its values as words of their own"
            self._say("R017", Level.ERROR, f"{flag} expects {_expected_count(entry)}", word, fix, flag)
            self._store(entry, flag, Missing(word.text, "too few values", flag + " VALUE ..."), word)
        elif word.unknowns:
            self._store(entry, flag, missing_value([word]), word)
        else:
            value = self._convert(entry, flag, text, word)
            self._store(entry, flag, [value] if _many(entry) and not isinstance(value, Missing) else value, word)

    def _take(self, entry: Entry, flag: str, values: Sequence[Word], word: Word) -> None:
        if not entry.takes_value:
            self._store(entry, flag, entry.value_of_flag(flag), word)
            return
        if any(value.unknowns for value in values):
            self._store(entry, flag, missing_value(values), word)
            return
        if not values and entry.arity == "?":
            self._store(entry, flag, entry.const, word)
            return
        converted = [self._convert(entry, flag, value.text, value) for value in values]
        bad = next((item for item in converted if isinstance(item, Missing)), None)
        if bad is not None:
            self._store(entry, flag, bad, word)
        else:
            self._store(entry, flag, converted if _many(entry) else converted[0], word, (word, *values))

    def _convert(self, entry: Entry, flag: str, text: str, word: Word) -> Any:
        if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
            message, inner = f"the value of {flag} is {text}, quotes included", text[1:-1]
            edits = _replaced(word, inner) if _PLAIN.fullmatch(inner) else ()
            self._say("R026", Level.WARNING, message, word, f"write {inner}", flag, edits)
        try:
            value = _converter(entry)(text)
        except ValueError as error:
            self._say("R015", Level.ERROR, f"{flag} takes {error}, not {text!r}", word, f"write {error}", flag)
            return Missing(text, f"not {error}", f"{flag} VALUE")
        if entry.choices is not None and value not in entry.choices:
            choices = ", ".join(str(choice) for choice in entry.choices)
            fix = _nearest_choice(text, entry.choices)
            self._say("R016", Level.ERROR, f"{flag} takes one of {choices}, not {text!r}", word, fix, flag)
            return Missing(text, f"not one of {choices}", f"{flag} VALUE")
        return value

    def _store(self, entry: Entry, flag: str, value: object, word: Word, words: Sequence[Word] = ()) -> None:
        before = self.given.get(entry.address)
        if before is not None and before.value == value and not isinstance(value, Missing):
            message = f"{flag} stands twice with the same value"
            edits = _removed(words or (word,)) if _on_one_line(before.place, word) else ()
            self._say("R039", Level.NOTE, message, word, "remove one of them", flag, edits)
        elif before is not None:
            self._say(
                "R020",
                Level.WARNING,
                f"{flag} replaces an earlier {before.written} of another value"
                + (f" ({before.place})" if before.place else ""),
                word,
                "remove one of them",
                flag,
            )
        self.given[entry.address] = Given(entry.address, value, flag, word.place)

    def _stray(self, at: int) -> None:
        word = self.words[at]
        flag = word.text.split(" ", 1)[0]
        if self.kinds[at] == SEPARATOR:
            message, fix = "-- ends the options, and there is nothing after them", "remove it"
        elif " " in word.text and self.catalogue.by_flag(flag):
            message = f"{word.text!r} is one word: the parser takes it for a value that belongs to no option"
            fix = "split it into words"
        elif at and (entry := self.catalogue.by_flag(self.words[at - 1].text)) and not entry.takes_value:
            message = f"{word.text!r} follows {self.words[at - 1].text}, which takes no value"
            fix = f"write {self.words[at - 1].text} alone, or leave it out"
        elif before := next((self.words[i].text for i in range(at - 1, -1, -1) if self.kinds[i] == OPTION), ""):
            message = f"{word.text!r} belongs to no option: {before} before it has its value already"
            fix = "remove it, or quote the value and its expansion, so that it is one word"
        else:
            message, fix = f"{word.text!r} belongs to no option", "remove it"
        self._say("R019", Level.ERROR, message, word, fix)
        self.unknown.append(Given(word.text, None, word.text, word.place))

    def _open_word(self, at: int) -> None:
        word = self.words[at]
        missing = missing_value([word])
        self._say(
            "R021",
            Level.WARNING,
            f"{word.text} may hold further options: {missing.reason}",
            word,
            missing.supply,
            word.text,
        )
        self.unknown.append(Given(word.text, missing, word.text, word.place))

    def _unknown_option(self, at: int, flag: str, attached: str | None) -> int:
        word, end = self.words[at], at + 1
        if flag in HELP_FLAGS:
            self._say("R034", Level.ERROR, f"{flag} prints the options and ends", word, "remove it", flag)
        else:
            while attached is None and end < len(self.words) and self.kinds[end] in (VALUE, OPEN):
                end += 1
            self.findings.append(explain_unknown(flag, self.catalogue, word))
        rest = self.words[at + 1 : end]
        value: object = attached
        if any(item.unknowns for item in rest):
            value = missing_value(rest)
        elif rest:
            value = rest[0].text if len(rest) == 1 else [item.text for item in rest]
        self.unknown.append(Given(flag, value, flag, word.place))
        return end

    def _say(  # noqa: PLR0917
        self,
        code: str,
        level: Level,
        message: str,
        word: Word,
        fix: str,
        option: str | None = None,
        edits: tuple[Edit, ...] = (),
    ) -> None:
        self.findings.append(Finding(code, level, message, fix, word.place, option, edits=edits))


def _replaced(word: Word, text: str) -> tuple[Edit, ...]:
    """The edit that writes ``text`` for a word; it is only made where the word stands in the file as it is."""
    return () if word.unknowns else (Edit(word.place, word.text, text),)


def _removed(words: Sequence[Word]) -> tuple[Edit, ...]:
    """The edit that takes out words that stand one behind the other."""
    first, last = words[0].place, words[-1].place
    place = replace(first, end_line=last.end_line, end_column=last.end_column)
    known = not any(word.unknowns for word in words)
    return (Edit(place, " ".join(word.text for word in words), ""),) if known else ()


def _on_one_line(before: Place | None, word: Word) -> bool:
    """Whether nothing can come between two words: no branch, loop or function."""
    place = word.place
    return before is not None and before != place and (before.file, before.line) == (place.file, place.line)


def _many(entry: Entry) -> bool:
    return entry.arity in ("+", "*") or (isinstance(entry.arity, int) and entry.arity > 0)


def _least(entry: Entry) -> int:
    """How few words the option may take."""
    if isinstance(entry.arity, int):
        return entry.arity
    return 0 if entry.arity in ("?", "*") else 1


def _most(entry: Entry) -> float:
    """How many words the option may take."""
    if isinstance(entry.arity, int):
        return entry.arity
    return 1 if entry.arity in (None, "?") else float("inf")


def _expected_count(entry: Entry) -> str:
    if isinstance(entry.arity, int):
        return f"{entry.arity} values"
    return "one or more values" if entry.arity == "+" else "a value"


def _nearest_choice(text: str, choices: Sequence[object]) -> str:
    from rapidfuzz import fuzz, process

    names = [str(choice) for choice in choices]
    hit = process.extractOne(text, names, scorer=fuzz.ratio, score_cutoff=60)
    return f"write {hit[0]}" if hit else "write one of these, or leave the option out"


def _converter(entry: Entry) -> Any:
    kind = entry.kind if entry.kind != "custom" else entry.type_name
    return CONVERTERS.get(kind, str)


def explain_unknown(flag: str, catalogue: Catalogue, word: Word) -> Finding:
    """Why this version has no such option: removed, added later, renamed, misspelt, or never there."""
    place, version = word.place, catalogue.version
    past = _history()
    if past is not None and past.knows_flag(flag):
        since, removed = past.flag_span(flag)
        name = _renamed(flag, catalogue, past)
        if name is not None:
            message = f"{flag} is called {name} in {version}"
            rest = word.text[len(flag) :]
            edits = _replaced(word, f"{name}{rest}") if _takes_the_same(flag, name, catalogue, past) else ()
            return Finding("R014", Level.ERROR, message, f"write {name}", place, flag, edits=edits)
        if removed is not None and _version(removed) <= _version(version):
            message = f"{flag} was removed in {removed}"
            return Finding("R012", Level.ERROR, message, "remove it, or name an older version", place, flag)
        if _version(since) > _version(version):
            message = f"{flag} came in {since}, this is {version}"
            return Finding("R013", Level.ERROR, message, f"read the file as megatron@{since}", place, flag)
    near = nearest(flag, catalogue)
    if near and _alike(flag, near[0]):
        message = f"Megatron-LM {version} has no option {flag}"
        return Finding("R011", Level.ERROR, message, f"did you mean {' or '.join(near)}?", place, flag)
    fix = f"nearest: {', '.join(near)}" if near else "remove it, unless the program adds it to the parser"
    return Finding("R010", Level.WARNING, f"Megatron-LM {version} has no option {flag}", fix, place, flag)


def _renamed(flag: str, catalogue: Catalogue, past: History) -> str | None:
    """The spelling in this catalogue of an option that had another name in another version."""
    address = flag.lstrip("-").replace("-", "_")
    pairs = [(old, new) for old, (new, _) in past.renames.items()]
    names = [new for old, new in pairs if old == address] + [old for old, new in pairs if new == address]
    spellings = [spelling for name in names for entry in catalogue.by_address(name) for spelling in entry.flags]
    known = [*spellings, *(b if a == flag else a for a, b in RENAMED_FLAGS if flag in (a, b))]
    return next(
        (name for name in known if catalogue.by_flag(name) and _switches_off(name) == _switches_off(flag)), None
    )


def _switches_off(flag: str) -> bool:
    """Whether a flag says no to what its name is about: such a switch has not become one that says yes to it."""
    return flag.startswith(("--no-", "--disable-"))


def _takes_the_same(flag: str, name: str, catalogue: Catalogue, past: History) -> bool:
    """Whether an option takes under its name here what it took under the other name where that was known."""
    here = catalogue.by_flag(name)
    others = (load(FRAMEWORK, version).by_flag(flag) for version in reversed(past.versions))
    there = next((entry for entry in others if entry is not None), None)
    if here is None or there is None or (here.arity, here.kind) != (there.arity, there.kind):
        return False
    if not here.takes_value:
        return not there.takes_value and here.value_of_flag(name) == there.value_of_flag(flag)
    return here.choices is None or (there.choices is not None and set(there.choices) <= set(here.choices))


def _alike(flag: str, known: str) -> bool:
    from rapidfuzz import fuzz

    # argparse would have taken an unambiguous prefix, were abbreviations allowed: people write them.
    return known.startswith(flag) or fuzz.ratio(flag.replace("_", "-"), known) >= MISSPELT_SCORE


def _history() -> History | None:
    try:
        return history(FRAMEWORK)
    except (UsageError, OSError):
        return None


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
