"""From the object that a configuration function returns to options: every stated field at its dotted address.

A field that holds a component's configuration has the component's short name as its value (``activation_checkpoint`` =
``SelectiveAC``), and the component's own fields below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from translator.catalogue.classes import DEFAULTS, Classes
from translator.findings import Finding, Level, Place
from translator.frameworks.torchtitan import addresses
from translator.frameworks.torchtitan.python_helpers import ASKED, CONVERTED, FAMILY, MODEL_SPEC, flavor_model
from translator.frameworks.torchtitan.values import UNUSABLE, describe, near, shown, typed
from translator.native import Given, Missing, Native
from translator.pyconfig.values import MISSING, Call, ClassValue, Function, Node, Partial, Symbol, Unknown, same

if TYPE_CHECKING:
    from translator.catalogue import Catalogue, Entry

MODEL = "model_spec"
CONVERTERS = "model_spec.converters"
# Values of these are what the helper functions and classes that stand in them make of them.
_UNCHECKED = frozenset({"override.imports", CONVERTERS})
_PLAIN = (bool, int, float, str)


class Options:
    """Writes the options of one configuration object into a `Native`."""

    def __init__(self, native: Native, facts: Classes, catalogue: Catalogue) -> None:
        self.native = native
        self.facts = facts
        self.catalogue = catalogue

    def read(self, root: Node) -> None:
        """Every stated field of a ``Trainer.Config``."""
        self.fields(root, "")

    def say(self, code: str, level: Level, message: str, where: tuple[Place, str], fix: str = "") -> None:
        """Adds a finding about an option, which is at a place."""
        self.native.findings.append(Finding(code, level, message, fix, *where))

    def keep(self, address: str, value: object, place: Place) -> None:
        """Keeps a value that is no usable option."""
        self.native.unknown.append(Given(address, plain(value), address, place))

    def give(self, address: str, value: object, place: Place) -> None:
        """States an option."""
        written = f"{MODEL}.model" if address == addresses.MODEL_ARGUMENTS else address
        self.native.given[address] = Given(address, value, written, place)

    def fields(self, node: Node, prefix: str) -> None:
        """The stated fields of a node; what only stands by default has a place of its own and is left out."""
        known = self.known_fields(node)
        for name, value in node.fields.items():
            place = node.places.get(name, node.place)
            if name.startswith("@") or place.file == DEFAULTS:
                continue
            address = f"{prefix}{name}"
            if known is not None and name not in known:
                self.unknown(node, name, address, known)
            elif isinstance(value, Node):
                self.node(address, value, place)
            else:
                self.value(address, value, place)

    def known_fields(self, node: Node) -> set[str] | None:
        """The names of a node's fields; None when its class is not known."""
        classes = [name for name in (node.cls, *node.bases) if self.facts.is_config(name)]
        return {field for name in classes for field in self.facts.fields(name)} if classes else None

    def unknown(self, node: Node, name: str, address: str, known: set[str]) -> None:
        """A field that the class does not have: upstream's dataclasses have slots, and so stop at it."""
        place = node.places.get(name, node.place)
        self.keep(address, node.fields[name], place)
        if node.bases or not self.facts.is_config(node.cls):
            message = f"{address} is a field of {node.cls.rpartition('.')[2]}, a class of its own; it is kept as it is"
            self.say("R104", Level.NOTE, message, (place, address))
            return
        parts = node.cls.split(".")
        message = f"{'.'.join(parts[-2:] if parts[-1] == 'Config' else parts[-1:])} has no field {name}"
        self.say("R090", Level.ERROR, message, (place, address), near(name, known))

    def node(self, address: str, node: Node, place: Place) -> None:
        """A nested configuration object."""
        if address == MODEL:
            self.model(node)
            return
        name = self.component(node)
        entry = self.catalogue.first(address) if address in self.catalogue else None
        if entry is not None and entry.kind == "class" and node.place.file != DEFAULTS:
            self.give(address, name, node.place)
            if entry.choices is not None and name not in entry.choices:
                message = f"what {name} does at {address} is not known; it is read as it is"
                self.say("R105", Level.WARNING, message, (node.place, address))
            self.own_defaults(address, node, name)
        elif entry is not None and entry.kind != "class":
            self.value(address, node, place)
            return
        self.fields(node, f"{address}.")

    def component(self, node: Node) -> str:
        """The short name of the nearest known class."""
        for name in (node.cls, *node.bases):
            if self.facts.is_config(name):
                return self.facts.component(name)
        return node.cls.removesuffix(".Config").rpartition(".")[2]

    def own_defaults(self, address: str, node: Node, name: str) -> None:
        """What the class says by default, where it is not what stands at that place by default."""
        if address not in self.catalogue or self.catalogue.default(address) != name:
            return
        for field in self.facts.fields(node.cls):
            inner = f"{address}.{field}"
            default = self.facts.default(node.cls, field)
            if inner not in self.catalogue or field in node.fields or not isinstance(default, (*_PLAIN, type(None))):
                continue
            if not same(default, self.catalogue.default(inner)):
                self.give(inner, default, node.place)

    def value(self, address: str, value: object, place: Place) -> None:
        """A field with a plain value."""
        doubt = open_part(value)
        if doubt is not None and not (isinstance(value, Unknown) and value.default is not MISSING):
            self.give(address, missing(doubt), place)
            return
        found = plain(value.default if isinstance(value, Unknown) else value)
        if address not in self.catalogue:
            if address == MODEL and found is None:
                return
            self.native.unknown.append(Given(address, found, address, place))
            return
        entry = self.catalogue.first(address)
        if self.fits(entry, address, found, place):
            self.give(address, self.read_as(entry, address, found), place)

    def read_as(self, entry: Entry, address: str, value: object) -> object:
        """A value that fits, as the option's type has it."""
        if value is None or entry.kind in {"list", "dict", "custom"} or address in _UNCHECKED:
            return value
        checked = typed(entry, list(value) if isinstance(value, tuple) else value)
        return value if checked.exact else checked.value

    def fits(self, entry: Entry, address: str, value: object, place: Place) -> bool:
        """Whether a value can be used; says what is wrong with it."""
        if entry.kind in {"list", "dict", "custom"} or address in _UNCHECKED:
            return True
        if value is None:
            fine = entry.optional
            checked = None
        elif entry.kind == "class":
            fine, checked = False, None
        else:
            checked = typed(entry, list(value) if isinstance(value, tuple) else value)
            fine = checked.value is not UNUSABLE
        wanted = "a configuration object" if entry.kind == "class" else describe(entry)
        if not fine:
            message = f"{address} cannot be {shown(value)}: {wanted} is expected"
            self.say("R096", Level.ERROR, message, (place, address), f"write {wanted}")
        elif checked is not None and not checked.known:
            message = f"{address} cannot be {shown(value)}; torchtitan does not notice it when the configuration loads"
            self.say("R097", Level.ERROR, message, (place, address), f"write {wanted}")
            fine = False
        elif checked is not None and not checked.exact:
            message = f"{address} is {shown(value)}, where {wanted} is expected"
            # A string is no number for Python, where true is 1.
            level = Level.ERROR if isinstance(value, str) else Level.WARNING
            self.say("R095", level, message, (place, address), f"write {wanted}")
        if not fine:
            self.keep(address, value, place)
        return fine

    # -- the model --------------------------------------------------------------------------------------------

    def model(self, spec: Node) -> None:
        """A model of a registry, or one that is built by hand."""
        for name in ("name", "flavor"):
            value = spec.fields.get(name, MISSING)
            if value is not MISSING:
                self.value(f"{MODEL}.{name}", value, spec.places.get(name, spec.place))
        if spec.cls != MODEL_SPEC:
            self.say("R105", Level.WARNING, f"the model is a {spec.cls}, which is not read", (spec.place, MODEL))
            return
        model = spec.fields.get("model")
        asked = spec.fields.get(ASKED)
        converters: list[object] = []
        if isinstance(asked, Mapping):
            converters += self.registered(spec, asked)
            self.unchanged(spec, model)
        elif isinstance(model, Node):
            self.custom(spec, model)
        elif isinstance(model, Unknown | Call):
            self.give(addresses.MODEL_ARGUMENTS, missing(model), spec.places.get("model", spec.place))
        applied = model.fields.get(CONVERTED) if isinstance(model, Node) else None
        converters += applied if isinstance(applied, list) else []
        if converters:
            self.value(CONVERTERS, converters, spec.place)

    def registered(self, spec: Node, asked: Mapping[str, object]) -> list[object]:
        """What ``model_registry`` was asked for; the converters."""
        parameters = self.parameters(str(spec.fields.get("name")))
        for name, value in asked.items():
            address = f"{MODEL}.{name}"
            if parameters is not None and name not in parameters:
                self.keep(address, value, spec.place)
                message = f"model_registry of {spec.fields.get('name')} takes no {name}"
                self.say("R090", Level.ERROR, message, (spec.place, address), near(name, parameters))
            elif name != "converters":
                self.value(address, value, spec.place)
        found = asked.get("converters")
        if isinstance(found, Unknown | Call):
            self.give(CONVERTERS, missing(found), spec.place)
        return list(found) if isinstance(found, list | tuple) else []

    def parameters(self, family: str) -> set[str] | None:
        """The parameters of a family's registry; None for an unknown family."""
        try:
            return set(self.facts.parameters(f"torchtitan.models.{family}.model_registry"))
        except KeyError:
            return None

    def unchanged(self, spec: Node, model: object) -> None:
        """Says when the model of a flavor is changed after the registry made it."""
        flavor = spec.fields.get("flavor")
        if not isinstance(model, Node) or not isinstance(flavor, str):
            return
        fresh = flavor_model(self.facts, str(spec.fields.get("name")), flavor, spec.place)
        kept = Node(model.cls, {k: v for k, v in model.fields.items() if k != CONVERTED}, {}, model.place)
        if isinstance(fresh, Node) and kept.fields.get(FAMILY) and not same(kept, fresh):
            message = f"the model is changed after model_registry made it; it is read as the flavor {flavor} says"
            self.say("R105", Level.WARNING, message, (spec.place, MODEL), "build the model from its classes instead")

    def custom(self, spec: Node, model: Node) -> None:
        """The plain facts of a model that is built from its classes."""
        from translator.frameworks.torchtitan.python_model import CannotReadError, model_facts

        try:
            facts, backend, comm = model_facts(self.facts, model)
        except CannotReadError as error:
            place = error.place or spec.place
            self.say("R105", Level.WARNING, f"the model cannot be read: {error}", (place, MODEL), "name a flavor")
            self.give(addresses.MODEL_ARGUMENTS, Missing("model", str(error), "a named flavor"), place)
            return
        place = spec.places.get("model", spec.place)
        self.give(addresses.MODEL_ARGUMENTS, facts, place)
        for name, value in (("attn_backend", backend), ("moe_comm_backend", comm)):
            if value is not None:
                self.give(f"{MODEL}.{name}", value, place)


def open_part(value: object) -> Unknown | Call | None:
    """The first part of a value that is not known."""
    if isinstance(value, Unknown | Call):
        return value
    items: Any = ()
    if isinstance(value, Node):
        items = [item for name, item in value.fields.items() if not name.startswith("@")]
    elif isinstance(value, Mapping):
        items = value.values()
    elif isinstance(value, list | tuple):
        items = value
    for item in items:
        found = open_part(item)
        if found is not None and not (isinstance(found, Unknown) and found.default is not MISSING):
            return found
    return None


def missing(value: Unknown | Call) -> Missing:
    """An open value as the rest of the program knows it."""
    if isinstance(value, Call):
        return Missing(f"{value.callee}(...)", f"{value.callee} is not known", "")
    supply = f"--set {value.variable}=VALUE" if value.variable else ""
    return Missing(value.text, value.reason, supply)


def plain(value: object) -> object:
    """A value without objects of the evaluator: an instance as its class and fields, a function as its name."""
    if isinstance(value, Node):
        name = value.cls.removesuffix(".Config").rpartition(".")[2]
        fields = {key: plain(item) for key, item in value.fields.items() if not key.startswith("@")}
        return fields if name == "ParamGroupConfig" else {"class": name, **fields}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, Function | ClassValue):
        return value.dotted
    if isinstance(value, Partial):
        return f"{value.callee}(...)"
    if isinstance(value, Unknown):
        return value.text if value.default is MISSING else plain(value.default)
    if isinstance(value, Call):
        return f"{value.callee}(...)"
    return value
