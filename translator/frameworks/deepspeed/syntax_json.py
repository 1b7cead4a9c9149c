"""The keys of a parsed DeepSpeed configuration as options, each with its place, typed by the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from translator.findings import Edit, Finding, Level, Place
from translator.frameworks.deepspeed.changes import NEVER, REFUSED, REFUSED_SINCE
from translator.frameworks.deepspeed.positions_json import (
    BRACES,
    COMMA,
    COMMENT,
    QUOTES,
    Bare,
    Document,
    Member,
    Node,
    Placeholder,
    plain,
    scalar,
)
from translator.frameworks.deepspeed.sections import (
    MOMENTUM,
    OPTIMIZER,
    SCHEDULER,
    STRICT,
    Sections,
    classes_of,
    parameter_entry,
    sections,
)
from translator.frameworks.deepspeed.settle import classes as torch_classes
from translator.frameworks.deepspeed.values import AUTO, NUMBERS, absurd, describe, takes_auto, typed
from translator.native import Given, Missing, Native

if TYPE_CHECKING:
    from translator.catalogue import Catalogue, Entry

_ODD_WORDS = {
    COMMENT: "comments",
    COMMA: "commas that are missing or too many",
    QUOTES: "keys or values without double quotes",
    BRACES: "no braces around the whole",
}
Where = tuple[Member | Node, str]
"""What a finding is about: a key or value, and its path."""
_TEMPLATE = "a template's variable"
_SHOWN = 60
_NEEDS_ENABLED = frozenset({"amp"})
_NULLABLE = frozenset(
    {"aio", "bf16", "checkpoint.writer", "zero_optimization.zenflow", "expert_parallel", OPTIMIZER, SCHEDULER}
)
# Sections that the catalogue has as one value, and that DeepSpeed takes apart also when they are null.
_NOT_NULL = frozenset({"compression_training", "sparse_attention", "progressive_layer_drop", "curriculum_learning"})
# Bounds of the search for nearest names: a text of nothing but unknown keys must not take long.
MAX_LOOKED_UP = 100
MAX_NAME = 200
# Keys that people use for remarks.
_REMARKS = ("_", "//", "#", "comment", "COMMENT", "note", "description")


def shown(value: object) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


class JsonReader:
    """One reading of one parsed configuration into a `Native`."""

    def __init__(
        self, native: Native, document: Document, place: Callable[[int, int], Place], variables: Mapping[str, str]
    ) -> None:
        from translator.catalogue import load

        self.native = native
        self.document = document
        self.at = place
        self.variables = variables
        self.catalogue: Catalogue = load("deepspeed", native.version)
        self.sections: Sections = sections(native.version)
        self.types = {"optimizer": "", "scheduler": ""}
        self.torch_adam = False
        self.offloaded = False
        self.looked_up = 0

    def read(self) -> None:
        """Every key, as an option or unknown; then what is beyond JSON."""
        root = self.document.root.members
        if root is None:
            self.say("R142", Level.ERROR, "a configuration is an object, not a list", (self.document.root, ""))
            return
        self._look_ahead(root)
        self.read_object("", root)
        self.beyond_json()

    def say(  # noqa: PLR0917
        self, code: str, level: Level, message: str, where: Where, fix: str = "", edits: tuple[Edit, ...] = ()
    ) -> None:
        """Add a finding about a key or a value."""
        item, option = where
        place = self.at(item.start, item.end)
        self.native.findings.append(Finding(code, level, message, fix, place, option or None, edits=edits))

    def _successor(self, entry: Entry, path: str, member: Member, value: object) -> tuple[Edit, ...]:
        """The edits that write what took the place of a deprecated key, where that says the same.

        A key that became a section is a switch: what it switches on is the section with the processor as its device
        (``runtime/zero/config.py:181-207``, DeepSpeed 0.19.2).
        """
        section, _, name = str(entry.const or "").rpartition(".")
        if not name or section != path.rpartition(".")[0]:
            return ()
        key = Edit(self.at(member.start, member.end), f'"{member.key}"', f'"{name}"')
        if entry.const not in self.sections.kinds:
            return (key,)
        node = member.node
        return (key, Edit(self.at(node.start, node.end), "true", '{"device": "cpu"}')) if value is True else ()

    def keep(self, path: str, member: Member) -> None:
        """Keep a value that is no usable option."""
        self.native.unknown.append(Given(path, plain(member.node), path, self.at(member.start, member.end)))

    def _look_ahead(self, root: list[Member]) -> None:
        """The types of optimizer and scheduler decide which arguments are known, wherever they stand."""
        for member in root:
            if member.key == "zero_optimization" and isinstance(zero := plain(member.node), dict):
                self.offloaded = bool(zero.get("offload_optimizer") or zero.get("cpu_offload"))
            if member.key in self.types and member.node.members is not None:
                inner = {item.key: item.node for item in member.node.members}
                if member.key == "scheduler":
                    self._scheduler_params(member, inner)
                kind = plain(inner["type"]) if "type" in inner else ""
                self.types[member.key] = kind if isinstance(kind, str) else ""
                params = plain(inner["params"]) if "params" in inner else {}
                self.torch_adam |= isinstance(params, dict) and params.get("torch_adam") is True

    def _scheduler_params(self, member: Member, inner: Mapping[str, Node]) -> None:
        """``scheduler(optimizer, **params)`` needs an object, even an empty one (runtime/engine.py:1440)."""
        kind = plain(inner["type"]) if "type" in inner else None
        if kind is not None and ("params" not in inner or plain(inner["params"]) is None):
            message = "the scheduler has no params, and the engine stops without an object (runtime/engine.py:1440)"
            self.say("S217", Level.ERROR, message, (member, "scheduler"), 'write "params": {}')

    def read_object(self, prefix: str, members: Iterable[Member]) -> None:
        """The members of a section."""
        last: dict[str, Member] = {}
        for member in members:
            if member.key in last:
                message = (
                    f"{member.key} stands twice; DeepSpeed refuses that (config_utils.py:205), others take the last"
                )
                self.say("R136", Level.ERROR, message, (member, f"{prefix}{member.key}"), "remove one of them")
            last[member.key] = member
        for member in last.values():
            self.member(f"{prefix}{member.key}", member)

    def member(self, path: str, member: Member) -> None:
        """One key: an option, a section, or neither."""
        section = path.rpartition(".")[0]
        if section in {OPTIMIZER, SCHEDULER}:
            self.parameter(section, path, member)
            return
        entry = self.sections.by_spelling.get(path)
        if entry is not None:
            self.option(entry, path, member)
        elif path in self.sections.kinds:
            self.section(path, member)
        else:
            self.unknown(section, path, member)

    def section(self, path: str, member: Member) -> None:
        """A section, which must be an object."""
        inner = member.node.members
        if inner is not None:
            if path in _NEEDS_ENABLED and all(item.key != "enabled" for item in inner):
                self.say("S222", Level.ERROR, f"{path} needs enabled", (member, path), "write it, or drop the section")
            if path == "checkpoint.writer" and not inner:
                message = "checkpoint.writer needs data_parallel, without which the engine stops"
                self.say(
                    "S218", Level.ERROR, message, (member, path), "write data_parallel: replica, socket or machine"
                )
            self.read_object(f"{path}.", inner)
            return
        value = member.node.value
        if path == "zero_optimization" and isinstance(value, bool):
            message = f"zero_optimization: {str(value).lower()} is the old way to say stage {int(value)}"
            self.say("R137", Level.WARNING, message, (member, path), f'write {{"stage": {int(value)}}}')
            address = "zero_optimization.stage"
            self.native.given[address] = Given(address, int(value), path, self.at(member.start, member.end))
            return
        if (value is None and self._null_is_absent(path)) or value == "auto":
            return
        self.keep(path, member)
        if isinstance(value, Placeholder):
            self._placeholder(value, member, path)
            return
        message = f"{path} is a section, not the value {shown(plain(member.node))}"
        self.say("R142", Level.ERROR, message, (member, path), "write an object")

    @staticmethod
    def _null_is_absent(path: str) -> bool:
        """Sections that may be null: optional models, and those whose reader asks for None."""
        return path in _NULLABLE or path.startswith("zero_optimization.offload_")

    def option(self, entry: Entry, path: str, member: Member) -> None:
        """A key of the catalogue."""
        where = self.at(member.start, member.end)
        value = self.resolve(entry.address, path, member)
        if isinstance(value, Missing):
            self.native.given[entry.address] = Given(entry.address, value, path, where)
            return
        if value == "auto" and not takes_auto(entry):
            self.native.given[entry.address] = Given(entry.address, AUTO, path, where)
            return
        found = typed(entry, value)
        if value is None and path in _NOT_NULL and self.native.version != REFUSED_SINCE:
            self.say("R142", Level.ERROR, f"{path} is a section, not the value None", (member, path), "write an object")
            return
        if path == "tensor_parallel.autotp_size" and isinstance(value, str) and not found.problem:
            why = "it is compared with 0 before it is read (deepspeed/__init__.py:196)"
            self.say("R133", Level.ERROR, f"{path} cannot be {shown(value)}: {why}", (member, path), "write a number")
        if found.problem:
            strict = self.sections.kind(path.rpartition(".")[0]) == STRICT
            refused = strict or bool(absurd(value))
            code, level = ("R133" if strict else "R134", Level.ERROR if refused else Level.WARNING)
            how = "" if refused else "; nothing checks it when the file is read"
            message = f"{path} cannot be {shown(value)}: {found.problem}{how}"
            self.say(code, level, message, (member, path), f"write {describe(entry)}")
            if refused:
                self.refuse(entry, path, value, member)
                return
        if entry.action == "deprecated":
            target = f"use {entry.const}" if entry.const else "it has no effect"
            edits = self._successor(entry, path, member, found.value)
            self.say("R137", Level.WARNING, f"{path} is deprecated", (member, path), target, edits)
        earlier = self.native.given.get(entry.address)
        if earlier is not None and earlier.written != path:
            message = f"{path} and {earlier.written} are the same key"
            self.say("R136", Level.ERROR, message, (member, path), "keep one of them")
        self.native.given[entry.address] = Given(entry.address, found.value, path, where)

    def refuse(self, entry: Entry, path: str, value: object, member: Member) -> None:
        """Leave an option open whose value nothing takes: its default is not what anybody means."""
        missing = Missing(shown(value), "no value that DeepSpeed can use", f"write {describe(entry)}")
        self.native.given[entry.address] = Given(entry.address, missing, path, self.at(member.start, member.end))

    def resolve(self, address: str, path: str, member: Member) -> object:
        """The value of a member; what a template leaves open is a `Missing`."""
        value = member.node.value
        if isinstance(value, Placeholder):
            if value.name is not None and value.name in self.variables:
                return scalar(self.variables[value.name])
            return self._placeholder(value, member, path)
        if isinstance(value, Bare):
            message = f"{path} has no quotes, so DeepSpeed takes the rest of the line: {shown(value.text)}"
            self.say("R141", Level.ERROR, message, (member.node, path), "write JSON: true, null, a number or a string")
        _ = address
        return plain(member.node)

    def _placeholder(self, value: Placeholder, member: Member, path: str) -> Missing:
        supply = f"--set {value.name}=..." if value.name else "fill it in"
        message = f"{path} is {value.expression}, which somebody fills in before the run"
        self.say("R140", Level.WARNING, message, (member.node, path), supply)
        return Missing(value.expression, _TEMPLATE, supply)

    def parameter(self, section: str, path: str, member: Member) -> None:
        """An argument of the optimizer's or scheduler's class."""
        kind = self.types[section.partition(".")[0]]
        classes = classes_of(section, kind, torch_adam=self.torch_adam)
        takes = self._torch_takes(section, kind)
        if section == OPTIMIZER and kind.lower() == "adagrad" and not self.offloaded:
            # torch's own, where the host does not step (runtime/engine.py:1828 at 0.19.2).
            classes, takes = (), torch_classes.OPTIMIZERS["Adagrad"]
        name = path.rpartition(".")[2]
        if not classes and takes is not None and name not in takes and path != f"{OPTIMIZER}.max_grad_norm":
            self.keep(path, member)
            message = f"torch's {kind} takes no {name}; the engine stops at it"
            self.say("R132", Level.ERROR, message, (member, path), f"it takes {', '.join(sorted(takes))}")
            return
        entry = parameter_entry(self.catalogue, path, classes) if classes else None
        where = self.at(member.start, member.end)
        if entry is None and not classes and path in self.catalogue:
            entry = self.catalogue.first(path)
        if entry is not None:
            value = self.resolve(path, path, member)
            if isinstance(value, list) and path in _PER_GROUP and all(isinstance(item, int | float) for item in value):
                missing = Missing(shown(value), "one rate for each of the program's groups", "write one number")
                self.native.given[path] = Given(path, missing, path, where)
                return
            is_auto = value == "auto"
            if not is_auto and not isinstance(value, Missing) and (problem := _argument_problem(entry, value)):
                # The class computes with its numbers when it is made, or at the first step.
                refused = bool(kind) and _computed_with(entry) and not isinstance(value, bool)
                refused = refused or bool(absurd(value))
                level = Level.ERROR if refused and not self._overwritten(path) else Level.WARNING
                message = f"{path} cannot be {shown(value)}: {problem}"
                self.say("R134", level, message, (member, path), f"write {describe(entry)}")
                if refused:
                    self.refuse(entry, path, value, member)
                    return
                if isinstance(value, bool) and entry.kind in NUMBERS:
                    value = int(value)  # as Python and the kernels count it
            self.native.given[path] = Given(path, AUTO if is_auto else value, path, where)
            return
        if path == MOMENTUM and kind.lower() == "sgd" and isinstance(member.node.value, int | float):
            self.native.given[path] = Given(path, member.node.value, path, where)
            return
        self.keep(path, member)
        if name == "max_grad_norm" and section == OPTIMIZER:
            return  # refused by the engine, with a reason of its own (settling says it)
        if not classes:
            self.say("R149", Level.NOTE, f"{path} goes to {kind or 'no class'} as it is", (member, path))
            return
        known = {entry.address for entry in self.catalogue.entries if entry.address.startswith(section)}
        near = self._near(path, sorted(known - {path}))
        self.say("R132", Level.ERROR, f"{kind} takes no {name}; the engine stops at it", (member, path), near)

    def _overwritten(self, path: str) -> bool:
        """Whether the scheduler sets the optimizer's rate before anything computes with it."""
        sets = self.types["scheduler"] in {"WarmupDecayLR", "OneCycle", "LRRangeTest"}
        return path == f"{OPTIMIZER}.lr" and sets and not self.torch_adam and not self.offloaded

    def _torch_takes(self, section: str, kind: str) -> frozenset[str] | None:
        """What torch's class takes, where that is what the type names."""
        if section == SCHEDULER:
            return torch_classes.scheduler_arguments(kind)
        return torch_classes.optimizer_arguments(kind, torch_adam=self.torch_adam)

    def unknown(self, section: str, path: str, member: Member) -> None:
        """A key that no section of this version has."""
        self.keep(path, member)
        kind = self.sections.kind(section)
        name = member.key
        if kind == "open":
            self.say("R149", Level.NOTE, f"{path} is handed on as it is", (member, path))
        elif self._other_version(path, member):
            pass
        elif kind != STRICT and name.startswith(_REMARKS):
            self.say("R148", Level.NOTE, f"{path} is a remark; DeepSpeed ignores it", (member, path))
        elif kind == STRICT:
            message = f"{section} has no key {name}, and DeepSpeed {self.native.version} stops at it"
            self.say(
                "R130", Level.ERROR, message, (member, path), self._near(path, self.sections.by_spelling) or "remove it"
            )
        else:
            near = f"write {NEVER[path]}" if path in NEVER else self._near(path, self._names())
            message = f"DeepSpeed {self.native.version} has no key {path} and ignores it"
            self.say(
                "R131",
                Level.WARNING,
                message,
                (member, path),
                near or "remove it, unless a program of your own reads it",
            )

    def _names(self) -> list[str]:
        return [*self.sections.by_spelling, *self.sections.kinds]

    def _other_version(self, path: str, member: Member) -> bool:
        from translator.catalogue import versions

        version = self.native.version
        if path in REFUSED and version == REFUSED_SINCE:
            message = f"{path} is gone since {REFUSED_SINCE}, which stops at it"
            self.say("R138", Level.ERROR, message, (member, path), REFUSED[path])
            return True
        known = [other for other in versions("deepspeed") if _knows(other, path)]
        if not known:
            return False
        strict = self.sections.kind(path.rpartition(".")[0]) == STRICT
        level = Level.ERROR if strict else Level.WARNING
        effect = "stops at it" if strict else "ignores it"
        named = ", ".join(known)
        self.say("R138", level, f"{path} is a key of DeepSpeed {named}; {version} {effect}", (member, path))
        return True

    def _near(self, path: str, pool: Iterable[str]) -> str:
        """The names most like a path, for the first so many that are looked for."""
        self.looked_up += 1
        if self.looked_up > MAX_LOOKED_UP or len(path) > MAX_NAME:
            return ""
        from rapidfuzz import fuzz, process

        hits = process.extract(path, [name for name in pool if name], scorer=fuzz.ratio, limit=3, score_cutoff=72)
        return "did you mean " + " or ".join(hit[0] for hit in hits) + "?" if hits else ""

    def beyond_json(self) -> None:
        """One finding per kind of thing that ``json.load`` would refuse."""
        seen: set[str] = set()
        for oddity in self.document.oddities:
            if oddity.what not in seen:
                seen.add(oddity.what)
                message = (
                    f"the file has {_ODD_WORDS[oddity.what]}: DeepSpeed itself reads that (hjson), "
                    "but transformers and accelerate take JSON only"
                )
                place = self.at(oddity.at, oddity.at + 1)
                edits = self._without_commas() if oddity.what == COMMA else ()
                self.native.findings.append(
                    Finding("R135", Level.WARNING, message, "write plain JSON", place, edits=edits)
                )

    def _without_commas(self) -> tuple[Edit, ...]:
        """The edits that take out commas with nothing behind them; none where others are missing."""
        odd = [oddity for oddity in self.document.oddities if oddity.what == COMMA]
        if not all(oddity.surplus for oddity in odd):
            return ()
        return tuple(Edit(self.at(oddity.at, oddity.at + 1), ",", "") for oddity in odd)


def _argument_problem(entry: Entry, value: object) -> str:
    """What is wrong with an argument of a class; betas are two numbers, whatever the catalogue can tell of them."""
    if entry.address.endswith(".betas") and value is not None:
        pair = value if isinstance(value, list) else []
        numbers = [item for item in pair if isinstance(item, int | float) and not isinstance(item, bool)]
        return "" if len(pair) == len(numbers) == 2 and not absurd(pair) else "a list of two numbers is expected"
    if value is None and _computed_with(entry) and entry.address != f"{SCHEDULER}.warmup_max_lr":
        return f"null is not {describe(entry) if entry.kind in NUMBERS else 'a number'}"
    if entry.kind == "custom" and entry.address in _RATES and not isinstance(value, int | float | list):
        return "a number is expected" if value is not None else ""
    return typed(entry, value).problem


# Arguments that the catalogue cannot type, as they have no default or several types.
_RATES = frozenset(
    f"{SCHEDULER}.{name}" for name in ("total_num_steps", "cycle_min_lr", "cycle_max_lr", "warmup_max_lr")
)

# Rates of which there may be one for each parameter group (runtime/lr_schedules.py:708).
_PER_GROUP = frozenset(f"{SCHEDULER}.{name}" for name in ("warmup_min_lr", "warmup_max_lr", "lr_range_test_min_lr"))


def _computed_with(entry: Entry) -> bool:
    """Whether a class computes with an argument when it is made, or at the first step."""
    return entry.kind in NUMBERS or entry.address.endswith(".betas") or entry.address in _RATES


def _knows(version: str, path: str) -> bool:
    found = sections(version)
    return path in found.by_spelling or path in found.kinds
