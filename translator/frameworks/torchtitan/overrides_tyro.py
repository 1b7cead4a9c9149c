"""Overrides of the command line as tyro takes them: ``--section.key=value``, flags, and the one subcommand.

What is accepted was asked of the real packages: hyphens and underscores are alike; a flag takes no value, and is
turned off by ``--section.no-key``; the last of several wins; a list of strings is one word with commas, a list of lists
several such words; ``None`` is a word for options that may be none; choices are enforced. At 0.3.0
``activation-checkpoint:full`` and its like swap the class of recomputation: its options stand behind it, and no others.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from translator.findings import Finding, Level, Place
from translator.frameworks.torchtitan.values import describe, near, shown
from translator.native import Given, Missing, Native

if TYPE_CHECKING:
    from translator.catalogue import Catalogue, Entry
    from translator.shell import Word

COMMAND_LINE = "command line"
_SLOT = "activation_checkpoint"
# tyro names the subcommands of a union by its classes (distributed/activation_checkpoint.py at 0.3.0).
_SUBCOMMANDS = {"selective": "SelectiveAC", "full": "FullAC", "memory-budget": "MemoryBudgetAC", "none": None}
_GROUPS = "optimizer.param_groups"
_ITEM = re.compile(r"--optimizer\.param_groups\.(\d+)\.(\w+)(?:\.(\w+))?$")
_OTHER_LAUNCH = frozenset({"--job.config_file", "--module", "--config"})


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    place: Place
    missing: Missing | None


def apply(native: Native, words: Sequence[str | Word], catalogue: Catalogue) -> None:
    """Put the words of a command line over what the configuration states; what tyro refuses becomes a finding."""
    _Overrides(native, [_word(item) for item in words], catalogue).run()


def _word(item: str | Word) -> _Word:
    if isinstance(item, str):
        return _Word(item, Place(COMMAND_LINE, 1, 1), None)
    if not item.unknowns:
        return _Word(item.text, item.place, None)
    reasons = "; ".join(dict.fromkeys(unknown.reason for unknown in item.unknowns))
    names = dict.fromkeys(unknown.name for unknown in item.unknowns if unknown.name)
    supply = " ".join(f"--set {name}=..." for name in names)
    return _Word(item.text, item.place, Missing(item.text, reasons, supply))


class _Overrides:
    """One command line."""

    def __init__(self, native: Native, words: list[_Word], catalogue: Catalogue) -> None:
        self.native = native
        self.words = words
        self.catalogue = catalogue
        self.at = 0
        self.behind = False
        self.has_subcommands = _SLOT in catalogue

    def say(self, code: str, message: str, word: _Word, fix: str = "") -> None:
        """Adds an error about a word."""
        self.native.findings.append(Finding(code, Level.ERROR, message, fix, word.place, word.text.split("=")[0]))

    def run(self) -> None:
        """Every word in order."""
        while self.at < len(self.words):
            word = self.words[self.at]
            self.at += 1
            if word.text.startswith("--") and len(word.text) > 2:
                self.option(word)
            elif self.has_subcommands and ":" in word.text:
                self.subcommand(word)
            else:
                self.say("R107", f"{shown(word.text)} belongs to no option, and torchtitan stops at it", word)
                self.keep(word, word.text)

    def keep(self, word: _Word, value: object) -> None:
        """Keeps a word that is no usable option."""
        name = word.text.split("=")[0].lstrip("-")
        self.native.unknown.append(Given(name, word.missing or value, word.text.split("=")[0], word.place))

    def subcommand(self, word: _Word) -> None:
        """``activation-checkpoint:full``: the class with its defaults; the one in force keeps its values."""
        slot, _, name = word.text.partition(":")
        known = name.lower() if name == "None" else name
        if slot.replace("_", "-") != "activation-checkpoint" or known not in _SUBCOMMANDS:
            choices = ", ".join(f"activation-checkpoint:{choice}" for choice in _SUBCOMMANDS)
            self.say("R107", f"torchtitan has no subcommand {word.text}", word, f"one of {choices}")
            self.keep(word, word.text)
            return
        wanted = _SUBCOMMANDS[known]
        given = self.native.given.get(_SLOT)
        present = given.value if given is not None else self.catalogue.default(_SLOT)
        if present != wanted:
            for address in [name for name in self.native.given if name.startswith(f"{_SLOT}.")]:
                del self.native.given[address]
        self.native.given[_SLOT] = Given(_SLOT, wanted, word.text, word.place)
        self.behind = True

    def option(self, word: _Word) -> None:
        """``--key=value``, ``--key value ...`` or a bare flag."""
        flag, equals, attached = word.text.partition("=")
        item = _ITEM.match(flag.replace("-", "_").replace("__", "--", 1)) if _GROUPS in self.catalogue else None
        if item is not None:
            self.group(word, item, attached if equals else None)
            return
        entry = self.catalogue.by_flag(flag)
        if entry is None or not entry.flags or not self.has_field(entry):
            self.unknown(word, flag, bool(equals))
            return
        self.misplaced(entry, word)
        if not entry.takes_value:
            if equals:
                negative = next((f"--no-{name}" for name in entry.negative_flags[:1]), "")
                self.say("R107", f"{flag} is a flag and takes no value", word, f"write {flag} or {negative[5:]}")
                self.keep(word, attached)
                return
            value: object = entry.value_of_flag(flag)
            self.give(entry, value, word)
            return
        texts = [_Word(attached, word.place, word.missing)] if equals else []
        texts += self.following(several=_several(entry)) if not equals or _several(entry) else []
        if not texts:
            self.say("R107", f"{flag} takes a value", word)
            return
        self.read(entry, word, texts)

    def has_field(self, entry: Entry) -> bool:
        """Whether the class in force has the field."""
        if entry.conditional is None or not self.has_subcommands:
            return True
        owner = entry.address.rpartition(".")[0]
        while owner and owner not in self.catalogue:
            owner = owner.rpartition(".")[0]
        given = self.native.given.get(owner)
        name = given.value if given is not None else self.catalogue.default(owner) if owner in self.catalogue else None
        return isinstance(name, Missing) or name in entry.conditional.split(" in ")[0].split("|")

    def misplaced(self, entry: Entry, word: _Word) -> None:
        """What tyro would refuse for its place alone."""
        if not self.has_subcommands:
            return
        inner = entry.address.startswith(f"{_SLOT}.")
        if inner and not self.behind:
            fix = "name the class first, as activation-checkpoint:selective"
            self.say(
                "R108", f"{word.text.split('=')[0]} stands before its subcommand, and torchtitan stops at it", word, fix
            )
        elif self.behind and not inner:
            fix = "put it before the subcommand"
            self.say(
                "R108", f"{word.text.split('=')[0]} stands behind a subcommand, and torchtitan stops at it", word, fix
            )

    def following(self, *, several: bool) -> list[_Word]:
        """The words that are the value of the option just read."""
        found: list[_Word] = []
        while self.at < len(self.words) and (several or not found):
            text = self.words[self.at].text
            if text.startswith("--") or (
                several and self.has_subcommands and text.startswith("activation-checkpoint:")
            ):
                break
            found.append(self.words[self.at])
            self.at += 1
        return found

    def read(self, entry: Entry, word: _Word, texts: list[_Word]) -> None:
        """The value of an option, by its type."""
        doubt = next((item.missing for item in texts if item.missing), None)
        if doubt is not None:
            self.give(entry, doubt, word)
            return
        try:
            value = _value(entry, [item.text for item in texts])
        except ValueError:
            text = " ".join(item.text for item in texts)
            self.say("R096", f"{entry.address} cannot be {shown(text)}: {describe(entry)} is expected", word)
            self.keep(word, text)
            return
        single = value if isinstance(value, list) else [value]
        if entry.choices is not None and value is not None and not all(item in entry.choices for item in single):
            self.say("R097", f"{entry.address} cannot be {shown(value)}", word, f"write {describe(entry)}")
            self.keep(word, value)
            return
        self.give(entry, value, word)

    def give(self, entry: Entry, value: object, word: _Word) -> None:
        """States an option, in place of what the configuration said."""
        self.native.given[entry.address] = Given(entry.address, value, word.text.split("=")[0], word.place)

    def unknown(self, word: _Word, flag: str, attached: bool) -> None:
        """An option that the command line does not have."""
        values = [] if attached else self.following(several=False)
        known = [name for entry in self.catalogue.entries if self.has_field(entry) for name in entry.flags]
        message = f"torchtitan {self.native.version} has no option {flag}, and stops at it"
        self.say("R090", message, word, near(flag, known))
        self.keep(word, word.text.partition("=")[2] or " ".join(item.text for item in values))

    def group(self, word: _Word, item: re.Match[str], attached: str | None) -> None:
        """``--optimizer.param_groups.0.optimizer_kwargs.lr=3e-4``: a part of a parameter group."""
        given = self.native.given.get(_GROUPS)
        texts = [_Word(attached, word.place, word.missing)] if attached is not None else self.following(several=False)
        groups = copy.deepcopy(given.value) if given is not None else None
        index, name, key = int(item[1]), item[2], item[3]
        box = groups[index] if isinstance(groups, list) and index < len(groups) else None
        if isinstance(box, dict) and key is not None:
            box, name = box.get(name), key
        if not isinstance(box, dict) or name not in box or not texts or isinstance(box[name], dict | list):
            self.say("R090", f"torchtitan has no option {word.text.split('=')[0]} here, and stops at it", word)
            self.keep(word, " ".join(text.text for text in texts))
            return
        if texts[0].missing is not None:
            self.native.given[_GROUPS] = Given(_GROUPS, texts[0].missing, word.text.split("=")[0], word.place)
            return
        if isinstance(box[name], tuple):
            more = self.following(several=True) if len(box[name]) > 1 else []
            texts = [*texts, *more][: len(box[name])]
        try:
            box[name] = _like(box[name], [text.text for text in texts])
        except ValueError:
            self.say("R096", f"{name} cannot be {shown(' '.join(text.text for text in texts))}", word)
            return
        self.native.given[_GROUPS] = Given(_GROUPS, groups, word.text.split("=")[0], word.place)


def _several(entry: Entry) -> bool:
    return str(entry.arity) == "**" or "OverrideImport" in entry.type_name


def _value(entry: Entry, texts: list[str]) -> object:
    """The value of an option. Raises `ValueError` for a text that is not of its type."""
    if "OverrideImport" in entry.type_name:
        return [_imported(text) for text in texts]
    if texts == ["None"] and entry.optional:
        return None
    if str(entry.arity) == "**":
        return [[_scalar(entry.kind, part) for part in text.split(",")] for text in texts]
    if str(entry.arity) in {"*", "+"}:
        return [_scalar(entry.kind, part) for part in texts[0].split(",")]
    return _scalar(entry.kind, texts[0])


def _scalar(kind: str, text: str) -> object:
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(text)
    if kind == "bool":
        if text not in {"True", "False"}:
            raise ValueError(text)
        return text == "True"
    if kind != "str":
        raise ValueError(kind)
    return text


def _imported(text: str) -> object:
    """A target of ``--override.imports``, with its keywords as JSON (``config/override.py`` at 0.3.0)."""
    import json

    target, equals, keywords = text.partition("=")
    return (target, json.loads(keywords)) if equals else target


def _like(old: object, texts: list[str]) -> object:
    """A value of the type that the old one has. Raises `ValueError`."""
    if isinstance(old, tuple):
        if len(texts) != len(old):
            raise ValueError
        return tuple(_like(item, [text]) for item, text in zip(old, texts, strict=True))
    if isinstance(old, bool):
        return _scalar("bool", texts[0])
    for kind, name in ((int, "int"), (float, "float"), (str, "str")):
        if isinstance(old, kind):
            return _scalar(name, texts[0])
    raise ValueError
