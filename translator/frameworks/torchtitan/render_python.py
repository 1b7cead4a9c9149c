"""Writes a torchtitan 0.3.0 configuration: a Python module with one function, and its launch script.

The module imports public names only and is found from outside the package by ``--module`` (``config/manager.py:130``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from translator.catalogue import history, load
from translator.compare import equal
from translator.frameworks.base import RenderContext, Rendered
from translator.frameworks.torchtitan.addresses import MODEL_ARGUMENTS
from translator.frameworks.torchtitan.groups import EVERYTHING
from translator.frameworks.torchtitan.python_classes import DATACLASSES, ConfigClass, class_at, find, places
from translator.frameworks.torchtitan.python_names import import_lines, module_name
from translator.frameworks.torchtitan.python_text import WIDTH, Argument, Call, Code, layout, plain_comment
from translator.frameworks.torchtitan.render import (
    FACTS,
    LAUNCH,
    comment_on,
    exported,
    header_lines,
    launch_script,
    text_of,
)
from translator.native import ENVIRONMENT

if TYPE_CHECKING:
    from jinja2 import Environment

    from translator.mapping.views import Sink

TEMPLATE = "torchtitan/config.py.j2"
NAME, FLAVOR, BACKEND = "model_spec.name", "model_spec.flavor", "model_spec.attn_backend"
CONVERTERS, GROUPS = "model_spec.converters", "optimizer.param_groups"
MODEL_PREFIX = "model_spec."
# A run cannot do without these, or is read for them first.
ALWAYS = frozenset(
    {
        NAME,
        FLAVOR,
        MODEL_ARGUMENTS,
        GROUPS,
        "loss",
        "dataloader",
        "dataloader.dataset",
        "activation_checkpoint",
        "training.steps",
        "training.seq_len",
        "training.local_batch_size",
        "training.global_batch_size",
        "training.disable_cuda_graphs",
        "parallelism.data_parallel_shard_degree",
    }
)
# The order in which shipped configurations name the fields of Trainer.Config.
ORDER = (
    "model_spec",
    "hf_assets_path",
    "dump_folder",
    "tokenizer",
    "loss",
    "optimizer",
    "lr_scheduler",
    "training",
    "dataloader",
    "parallelism",
    "activation_checkpoint",
    "compile",
    "checkpoint",
    "validator",
    "metrics",
    "profiler",
    "comm",
    "debug",
    "override",
)
# What every registry means by nothing.
REGISTRY_DEFAULTS = {"moe_comm_backend": "standard", "tp_gemm_backend": "default"}
DEFAULT_COMMENT = "default of the source"
_ADAMW = {"betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}


def must_state(address: str, value: Any, version: str) -> bool:
    """Whether the value differs from its class's default, or supported versions disagree about the default."""
    if address.startswith("@") and address != MODEL_ARGUMENTS:
        return address in FACTS
    if address in ALWAYS or address.startswith(MODEL_PREFIX) or history("torchtitan").default_drifts(address):
        return True
    catalogue = load("torchtitan", version)
    return address not in catalogue or not equal(value, catalogue.default(address))


@dataclass
class _Writer:
    """One configuration on its way to text: what is stated, and what must be imported."""

    sink: Sink
    version: str
    context: RenderContext
    stated: dict[str, str] = field(default_factory=dict)
    imports: dict[str, set[str]] = field(default_factory=dict)

    def value(self, address: str) -> Any:
        return self.sink.values.get(address)

    def comment(self, address: str) -> str:
        return comment_on(address, self.sink, self.context) or ""

    def need(self, module: str, *names: str) -> None:
        self.imports.setdefault(module, set()).update(names)

    def construct(self, known: ConfigClass) -> Call:
        self.need(known.module, known.imported)
        return Call(known.call)

    def construct_by_name(self, name: str) -> Call:
        known = find(name)
        assert known is not None
        return self.construct(known)

    def state(self, address: str) -> None:
        self.stated[address] = text_of(address, self.value(address))

    # -- the configuration ------------------------------------------------------------------------------------

    def configuration(self, has_model: bool) -> Call:
        """The call of Trainer.Config with everything that is written."""
        call = self.construct_by_name("Trainer")
        heads = {address.partition(".")[0] for address in self.written()}
        known = [name for name in ORDER if name in heads]
        for name in [*known, *sorted(heads.difference(ORDER))]:
            if name == "model_spec":
                if has_model:
                    call.add(name, Code("model_spec"))
            elif name == "optimizer":
                call.arguments.append(self.optimizer())
            elif name in DATACLASSES or name in places():
                argument = self.section(name)
                call.arguments += [argument] if argument is not None else []
            else:
                self.state(name)
                call.add(name, self.value(name), self.comment(name))
        return call

    def written(self) -> Iterator[str]:
        """The addresses that are written, in the order of the rows."""
        for address, value in self.sink.values.items():
            if not address.startswith("@") and self.must_state(address, value):
                yield address

    def must_state(self, address: str, value: Any) -> bool:
        path, _, name = address.rpartition(".")
        known = class_at(path, self.sink.values) if path in places() else None
        usual = self.sink.values.get(path, places().get(path)) == places().get(path)
        if known is not None and not usual and name in known.fields and address not in ALWAYS:
            return not equal(value, known.fields[name])
        return must_state(address, value, self.version)

    def section(self, path: str) -> Argument | None:
        """A section, or a class that stands at a place where others could; None when nothing of it is written."""
        comment = ""
        if path in self.sink.values:
            self.state(path)
            comment = self.comment(path)
            # Its fields say so themselves.
            comment = "" if comment == DEFAULT_COMMENT else comment
            if self.sink.values[path] is None:
                return Argument(path.rpartition(".")[2], None, comment)
        known = class_at(path, self.sink.values)
        if known is None:
            return None
        call = self.construct(known)
        inner = f"{path}."
        order = list(known.fields)
        # A field of another class that could stand here has no place in this one.
        fields = {f"{inner}{name}" for name in order}
        mine = [address for address in self.written() if address in fields]
        for address in sorted(mine, key=lambda address: _place(address.removeprefix(inner), order)):
            rest = address.removeprefix(inner)
            if address in places():
                continue
            self.state(address)
            call.add(rest, self.field_value(address), self.comment(address))
        for nested in places():
            if nested.startswith(inner) and any(address.startswith(nested) for address in self.sink.values):
                argument = self.section(nested)
                call.arguments += [argument] if argument is not None else []
        return Argument(path.rpartition(".")[2], call, comment)

    def field_value(self, address: str) -> Any:
        if address.endswith("global_vocab_size") and NAME in self.sink.values:
            self.need("torchtitan.models.common.config_utils", "decoder_vocab_size")
            return Code("decoder_vocab_size(model_spec)")
        return self.value(address)

    def optimizer(self) -> Argument:
        """The optimizer: `default_adamw` where it is one group of AdamW, groups otherwise."""
        groups = self.value(GROUPS) or []
        others = [address for address in self.written() if address.startswith("optimizer.") and address != GROUPS]
        if GROUPS in self.sink.values:
            self.state(GROUPS)
        single = groups[0] if len(groups) == 1 and not others else None
        plain = single is not None and single["pattern"] == EVERYTHING and single["optimizer_name"] == "AdamW"
        if plain and single is not None and "lr" in single["optimizer_kwargs"]:
            self.need("torchtitan.components.optimizer", "default_adamw")
            call = Call("default_adamw")
            for name, value in single["optimizer_kwargs"].items():
                if name not in _ADAMW or not equal(_ADAMW[name], value):
                    call.add(name, value)
            return Argument("optimizer", call, self.comment(GROUPS))
        call = self.construct_by_name("OptimizersContainer")
        items = [self.group(item) for item in groups]
        call.add("param_groups", items)
        for address in others:
            self.state(address)
            call.add(address.removeprefix("optimizer."), self.value(address), self.comment(address))
        return Argument("optimizer", call, self.comment(GROUPS))

    def group(self, item: Mapping[str, Any]) -> Call:
        self.need("torchtitan.components.optimizer", "ParamGroupConfig")
        call = Call("ParamGroupConfig")
        for name, value in item.items():
            call.add(name, value)
        return call

    # -- the model --------------------------------------------------------------------------------------------

    def model(self, environment: Environment) -> tuple[str, list[str]]:
        """Functions that build the model, and the lines that make its specification."""
        if NAME not in self.sink.values:
            return "", []
        name, flavor = self.value(NAME), self.value(FLAVOR)
        for address in (NAME, FLAVOR, CONVERTERS, MODEL_ARGUMENTS):
            if address in self.sink.values:
                self.state(address)
        converters = [self.converter(item) for item in self.value(CONVERTERS) or []]
        facts = self.value(MODEL_ARGUMENTS)
        if facts is None:
            return "", self.registry(name, flavor, converters)
        from translator.frameworks.torchtitan.custom_python import build

        usual = "varlen" if name == "gpt_oss" else "flex"
        backend, comm = self.value(BACKEND) or usual, self.value("model_spec.moe_comm_backend") or "standard"
        built = build(name, flavor, facts, backend=backend, comm_backend=comm, environment=environment)
        for module, names in built.imports.items():
            self.need(module, *names)
        lines = _assigned("model_spec", built.specification)
        if converters:
            lines += ["for converter in [", *_listed(converters), "]:"]
            lines += ["    model_spec.model = converter.build().convert(model_spec.model)"]
        return built.text, lines

    def registry(self, name: str, flavor: str, converters: Sequence[Call]) -> list[str]:
        self.need(f"torchtitan.models.{name}", "model_registry")
        call = Call("model_registry", positional=[flavor])
        accepted = registry_parameters(name)
        for address in self.sink.values:
            rest = address.removeprefix(MODEL_PREFIX)
            if address.startswith(MODEL_PREFIX) and address not in (NAME, FLAVOR, CONVERTERS):
                value = self.value(address)
                if rest in accepted and not (rest in REGISTRY_DEFAULTS and value == REGISTRY_DEFAULTS[rest]):
                    self.state(address)
                    call.add(rest, value, self.comment(address))
        if converters:
            call.add("converters", list(converters))
        comment = self.comment(FLAVOR)
        return _assigned("model_spec", call, comment)

    def converter(self, item: Mapping[str, Any]) -> Call:
        known = find(item.get("class"))
        if known is None:
            return Call(str(item.get("class")))
        call = self.construct(known)
        for name, value in item.items():
            if name != "class" and not equal(value, known.fields.get(name)):
                call.add(name, value)
        return call


def registry_parameters(name: str) -> frozenset[str]:
    """What the ``model_registry`` of a family takes besides the flavor."""
    from translator.catalogue.classes import classes

    try:
        return frozenset(classes("torchtitan", "0.3.0").parameters(f"torchtitan.models.{name}.model_registry"))
    except KeyError:
        return frozenset()


def _place(name: str, order: Sequence[str]) -> int:
    """Where a class has a field; at the end for what it does not declare."""
    return order.index(name) if name in order else len(order)


def _assigned(name: str, call: Call, comment: str = "") -> list[str]:
    text = layout(call, "    ", len(name) + 3).splitlines()
    if len(text) == 1 and len(text[0]) + len(name) + len(comment) + 9 > WIDTH:
        comment = ""
    lines = [f"{name} = {text[0]}", *(line.removeprefix("    ") for line in text[1:])]
    if comment:
        lines[0] += f"  # {plain_comment(comment)}"
    return lines


def _listed(items: Sequence[Call]) -> list[str]:
    return [
        line.removeprefix("    ") for item in items for line in f"        {layout(item, '        ', 1)},".splitlines()
    ]


def environment() -> Environment:
    """Templates hold layout only: what they are given is text of Python already."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from translator.resources import template_dir

    return Environment(
        loader=FileSystemLoader(template_dir()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(sink: Sink, version: str, context: RenderContext) -> Rendered:
    """A module ``NAME.py`` with the function ``NAME``, and ``launch.sh`` that runs it."""
    writer = _Writer(sink, version, context)
    model_name = f"{sink.values.get(NAME, 'model')}_{sink.values.get(FLAVOR, '')}"
    name = module_name(context.source_name, model_name)
    templates = environment()
    model, body = writer.model(templates)
    configuration = layout(writer.configuration(bool(body)), "    ", 7)
    text = "\n".join([model, *body, configuration])
    header = header_lines(sink, version, context)
    module = templates.get_template(TEMPLATE).render(
        header=["".join(char if char.isprintable() else " " for char in line) for line in header],
        imports=import_lines(_used(writer.imports, text)),
        model=model,
        function=name,
        body=body,
        configuration=configuration,
    )
    for address in FACTS:
        if address in sink.values:
            writer.state(address)
    variables = sink.values.get(ENVIRONMENT)
    if variables:
        writer.stated[ENVIRONMENT] = exported(variables)
    files = {f"{name}.py": module, **sink.files}
    files[LAUNCH] = launch_script(sink, version, f"{name}.py", f"--module {name} --config {name}")
    return Rendered(f"{name}.py", files, writer.stated)


def _used(imports: Mapping[str, set[str]], text: str) -> dict[str, set[str]]:
    """The imports that the text makes use of, and the class that the function returns."""
    import re

    words = set(re.findall(r"[A-Za-z_]\w*", text)) | {"Trainer"}
    found = {module: names & words for module, names in imports.items()}
    return {module: names for module, names in found.items() if names}
