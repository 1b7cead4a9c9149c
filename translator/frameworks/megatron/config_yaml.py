"""``model_config.yaml`` of Megatron-LM's functional tests: options as a mapping, made into words as their runner does.

Source: ``tests/functional_tests/shell_test_utils/_run_training.sh`` (core 0.18.0). Per entry it writes ``key:
value``, trims the value with ``xargs`` (which takes quotes and backslashes away), writes a piece of shell (a bare key
for ``true``, the value in double quotes when it holds spaces, bars or parentheses, without its brackets for ``[a
b]``) and has bash evaluate the pieces. ``false`` is a word like any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from translator.errors import SourceError
from translator.findings import Finding, Level, Place
from translator.shell.values import Unknown, Word

MAX_YAML_CHARACTERS = 1_000_000
# Aliases are followed one entry at a time, so a file of nested aliases stops here and not at the end of memory.
MAX_ENTRIES = 20_000
OPTIONS_KEY = "MODEL_ARGS"
ENVIRONMENT_KEY = "ENV_VARS"
MERGE_KEY = "<<"
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
# What bash would not take as plain characters, outside of quotes and between double quotes.
_SYNTAX = re.compile(r"[;&<>`'\"\\]|\$\(")
_QUOTED_SYNTAX = re.compile(r"[`\"\\]|\$\(")


@dataclass(frozen=True, slots=True)
class Options:
    """The words of one mapping of options, and where it stands."""

    name: str
    words: tuple[Word, ...]
    place: Place


@dataclass(slots=True)
class ConfigReading:
    """What a ``model_config.yaml`` says: one `Options` per run, the environment, and what there is to say."""

    runs: list[Options] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def read_config(path: str, text: str, variables: Mapping[str, str]) -> ConfigReading:
    """Read the file; ``variables`` are those that the runner's environment would hold.

    Raises `SourceError` when the text is no YAML mapping with ``MODEL_ARGS``, or too large.
    """
    return _Reader(path, dict(variables)).read(text)


class _Reader:
    def __init__(self, path: str, variables: dict[str, str]) -> None:
        self.path = path
        self.variables = variables
        self.result = ConfigReading()
        self.budget = MAX_ENTRIES

    def read(self, text: str) -> ConfigReading:
        root = self._compose(text)
        top = {key.value: value for key, value in self._entries(root)}
        if OPTIONS_KEY not in top or not _is_mapping(top[OPTIONS_KEY]):
            raise SourceError(f"{self.path} is YAML without a mapping {OPTIONS_KEY}")
        if ENVIRONMENT_KEY in top and _is_mapping(top[ENVIRONMENT_KEY]):
            self._read_environment(top[ENVIRONMENT_KEY])
        for name, node in top.items():
            if name == OPTIONS_KEY or (name.startswith(f"{OPTIONS_KEY}_") and _is_mapping(node)):
                words = tuple(self._words(node))
                self.result.runs.append(Options(name, words, self._place(node)))
            elif _is_mapping(node) and any(key.value.startswith("--") for key, _ in self._entries(node)):
                self._say("R030", Level.NOTE, f"the runner does not read the options of {name}", node)
        if not any(word.text.startswith("--") for run in self.result.runs for word in run.words):
            message = f"{self.path}: {OPTIONS_KEY} holds no options of Megatron-LM (none begins with --)"
            raise SourceError(message, place=self._place(top[OPTIONS_KEY]))
        return self.result

    def _compose(self, text: str) -> Any:
        import yaml

        if len(text) > MAX_YAML_CHARACTERS:
            raise SourceError(f"{self.path} is larger than any {OPTIONS_KEY} file ({MAX_YAML_CHARACTERS} characters)")
        try:
            root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = Place(self.path, mark.line + 1, mark.column + 1) if mark else None
            raise SourceError(f"not YAML: {error.problem or error.context}", place=place) from None
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise SourceError(f"{self.path} is not YAML: {reason}") from None
        if not _is_mapping(root):
            raise SourceError(f"{self.path} is no YAML mapping")
        return root

    def _entries(self, node: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
        """Keys and values of a mapping node, merged mappings (``<<``) included."""
        explicit = {key.value for key, _ in node.value if _is_scalar(key)}
        seen: set[str] = set()
        for key, value in node.value:
            self.budget -= 1
            if self.budget < 0 or depth > 20:
                raise SourceError(f"{self.path} expands to more than {MAX_ENTRIES} entries", place=self._place(node))
            if not _is_scalar(key):
                self._say("R030", Level.WARNING, "a key that is no plain word is not read", key)
            elif key.value == MERGE_KEY:
                for merged in value.value if value.id == "sequence" else [value]:
                    if _is_mapping(merged):
                        yield from (item for item in self._entries(merged, depth + 1) if item[0].value not in explicit)
            else:
                if key.value in seen:
                    self._say("R029", Level.WARNING, f"{key.value} stands twice", key, "remove one of them")
                seen.add(key.value)
                yield key, value

    def _read_environment(self, node: Any) -> None:
        for key, value in self._entries(node):
            if _is_scalar(value):
                self.result.environment[key.value] = self._substitute(value.value)
            else:
                self._say("R030", Level.WARNING, f"environment variable {key.value} is no plain value", value)
        for name, value in self.result.environment.items():
            self.variables.setdefault(name, value)

    def _words(self, node: Any) -> Iterator[Word]:
        for key, value in self._entries(node):
            text = self._text(value)
            if text is None:
                self._say("R030", Level.WARNING, f"{key.value} is a nested value, which the runner cannot pass", value)
            elif text == "" and value.tag.endswith(":str"):
                self._say("R031", Level.NOTE, f"{key.value} is empty, so the runner leaves it out", key)
            else:
                for line in f"{key.value}: {text}".split("\n"):
                    if line:
                        yield from self._line(line, key, value)

    def _text(self, node: Any) -> str | None:
        """The value as ``yq``'s ``tostring`` gives it; None for what it would spread over several lines."""
        if _is_scalar(node):
            return str(node.value)
        if node.id == "sequence" and node.flow_style and all(_is_scalar(item) for item in node.value):
            return "[" + ", ".join(str(item.value) for item in node.value) + "]"
        return None

    def _line(self, line: str, key: Any, value: Any) -> Iterator[Word]:
        """One line of the runner's loop, from ``key: value`` to the words of the command."""
        name = line.split(":", 1)[0]
        text = line.split(": ", 1)[1] if ": " in line else line
        trimmed = _xargs(self._substitute(text))
        place = self._place(value)
        yield Word(name, self._place(key))
        if trimmed is None:
            yield self._unsplit(name, text, "quotes do not match", value)
            return
        bracketed = re.fullmatch(r"\[[^]]+\]", trimmed)
        quoted = not bracketed and any(mark in trimmed for mark in " |()")
        if (_QUOTED_SYNTAX if quoted else _SYNTAX).search(trimmed):
            yield self._unsplit(name, text, "it holds shell syntax", value)
        elif bracketed:
            for word in trimmed[1:-1].split():
                yield self._expand(word, place)
        elif trimmed not in ("true", ""):
            yield self._expand(trimmed, place)

    def _unsplit(self, name: str, text: str, reason: str, value: Any) -> Word:
        self._say("R036", Level.WARNING, f"the value of {name} is not split into words: {reason}", value)
        place = self._place(value)
        return Word(text, place, (Unknown(text, None, reason, place),))

    def _substitute(self, text: str) -> str:
        """Put in the variables that are known (``envsubst``, then bash itself); others stay as they are."""

        def value(match: re.Match[str]) -> str:
            return self.variables.get(match[1] or match[2], match[0])

        return _VARIABLE.sub(value, text)

    def _expand(self, text: str, place: Place) -> Word:
        unknowns = []
        for match in _VARIABLE.finditer(text):
            name = match[1] or match[2]
            unknowns.append(Unknown(match[0], name, f"{name} comes from the runner's environment", place))
        return Word(text, place, tuple(unknowns))

    def _place(self, node: Any) -> Place:
        start, end = node.start_mark, node.end_mark
        return Place(self.path, start.line + 1, start.column + 1, end.line + 1, end.column + 1)

    def _say(self, code: str, level: Level, message: str, node: Any, fix: str = "") -> None:
        self.result.findings.append(Finding(code, level, message, fix, self._place(node)))


def _is_mapping(node: Any) -> bool:
    return node is not None and node.id == "mapping"


def _is_scalar(node: Any) -> bool:
    return bool(node.id == "scalar")


def _xargs(text: str) -> str | None:
    """What ``echo TEXT | xargs`` prints: words with one space between, quotes and backslashes gone.

    None when a quote is left open, where xargs stops.
    """
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        mark = text[at]
        if mark in " \t\n":
            if word is not None:
                words.append(word)
            word = None
        elif mark in "'\"":
            end = text.find(mark, at + 1)
            if end < 0:
                return None
            word = (word or "") + text[at + 1 : end]
            at = end
        elif mark == "\\" and at + 1 < len(text):
            word = (word or "") + text[at + 1]
            at += 1
        else:
            word = (word or "") + mark
        at += 1
    if word is not None:
        words.append(word)
    return " ".join(words)
