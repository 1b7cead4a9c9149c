"""Writes a DeepSpeed configuration: strict JSON, and what JSON cannot hold beside it.

``ds_config.json`` says what DeepSpeed knows, ``training_args.yaml`` what transformers' Trainer does (the two agree,
which transformers insists on), ``config.json`` the model, ``launch.sh`` how it is started. A comment of the YAML, or of
the script where there is no trainer, holds the facts of the launch, so that the folder reads back as it was written.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from translator.catalogue import history, load
from translator.compare import equal
from translator.frameworks.base import RenderContext, Rendered
from translator.frameworks.deepspeed import arguments
from translator.frameworks.deepspeed.arguments import PREFIX as HF
from translator.frameworks.deepspeed.bundle import CONFIG, LAUNCH, MAIN, MODEL, TRAINER, VARIABLE
from translator.frameworks.deepspeed.megatron_fork import forks
from translator.frameworks.deepspeed.values import Auto
from translator.native import ENVIRONMENT, GPUS_PER_NODE, NODES, PROGRAM, WORLD_SIZE
from translator.version import __version__

if TYPE_CHECKING:
    from jinja2 import Template

    from translator.mapping.views import Sink

FRAMEWORK = "deepspeed"
FACTS = {WORLD_SIZE: "world_size", NODES: "nodes", GPUS_PER_NODE: "gpus_per_node"}
# What a reader looks for first is written even where it is the default.
ALWAYS = frozenset(
    {
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "zero_optimization.stage",
        "bf16.enabled",
        "hf.per_device_train_batch_size",
        "hf.gradient_accumulation_steps",
        "hf.learning_rate",
        "hf.lr_scheduler_type",
        "hf.max_grad_norm",
        "hf.weight_decay",
        "hf.output_dir",
    }
)
ORDER = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "steps_per_print",
    "bf16",
    "fp16",
    "data_types",
    "communication_data_type",
    "optimizer",
    "scheduler",
    "zero_optimization",
    "tensor_parallel",
    "sequence_parallel_size",
)
_PARAMETERS = ("optimizer.params.", "scheduler.params.")


def default(address: str, version: str) -> Any:
    """The default of a key, of an argument of the trainer, or None."""
    if address.startswith(HF):
        name = address.removeprefix(HF)
        if name in arguments.SCRIPT or name in arguments.OLDER:
            return None
        return arguments.default_of(name)
    catalogue = load(FRAMEWORK, version)
    return catalogue.default(address) if address in catalogue else None


def must_state(address: str, value: Any, version: str) -> bool:
    """Whether a value differs from the default, or supported versions disagree about it.

    Arguments of optimizer and scheduler are always written: their defaults are those of a class that another key names.
    """
    if address.startswith("@"):
        return address in FACTS or address == PROGRAM
    if address in ALWAYS or address.startswith((CONFIG, *_PARAMETERS)) or address.endswith(".type"):
        return True
    if not address.startswith(HF) and history(FRAMEWORK).default_drifts(address):
        return True
    return not equal(value, default(address, version))


def spelling(address: str, version: str) -> str:
    """A key as it is; an argument of the trainer with two dashes."""
    _ = version
    if address.startswith(HF):
        return f"--{address.removeprefix(HF)}"
    return f"{MODEL}: {address.removeprefix(CONFIG)}" if address.startswith(CONFIG) else address


def render(sink: Sink, version: str, context: RenderContext) -> Rendered:
    """The JSON, the trainer's arguments, the model and a launch script."""
    values = _with_trainer(sink.values, version, context)
    chosen = {
        address: _typed(address, value, version)
        for address, value in values.items()
        if must_state(address, value, version)
    }
    keys: dict[str, Any] = {}
    trainer: dict[str, Any] = {}
    flags: dict[str, Any] = {}
    model: dict[str, Any] = {}
    for address, value in chosen.items():
        name = address.removeprefix(HF)
        if address.startswith(("@", "-")):
            continue
        if address.startswith(CONFIG):
            model[address.removeprefix(CONFIG)] = value
        elif name in arguments.SCRIPT and name != address:
            flags[name] = value
        elif name != address:
            trainer[name] = value
        else:
            keys[_written(address, version)] = value
    environment = sink.values.get(ENVIRONMENT) or {}
    stated = {address: text_of(address, value, version) for address, value in chosen.items()}
    if environment:
        stated[ENVIRONMENT] = " ".join(["export", *(f"{name}={value}" for name, value in environment.items())])
    files = {MAIN: _json(_nested(keys))}
    facts = _facts(sink, flags, version)
    if trainer:
        files[TRAINER] = _yaml(trainer, facts, context)
    if model:
        files[MODEL] = _json(model)
    files[LAUNCH] = _launch(sink, version, context, _program_flags(flags, trainer, model), "" if trainer else facts)
    needed = [name for name, said in ((TRAINER, trainer), (MODEL, model), (LAUNCH, flags)) if said]
    return Rendered(MAIN, {**files, **sink.files}, stated, tuple(needed))


def _with_trainer(values: Mapping[str, Any], version: str, context: RenderContext) -> dict[str, Any]:
    """The values to write. A configuration of DeepSpeed's that had no trainer gets none, and "auto" stays "auto"."""
    native = context.native
    if native is None or forks.reads(native):
        return dict(values)
    found = dict(values)
    if not any(address.startswith(HF) for address in native.given):
        found = {address: value for address, value in found.items() if not address.startswith(HF)}
    catalogue = load(FRAMEWORK, version)
    for address, value in native.explicit_values().items():
        if address not in found and address in catalogue and catalogue.first(address).action != "deprecated":
            found[address] = value
    for address, given in native.given.items():
        left = given.missing is not None and given.missing.expression == "auto"
        if (left or isinstance(given.value, Auto)) and address in catalogue:
            found[address] = "auto"
    return found


# Entries of rotary scaling that are floats, whose classes check types strictly.
_FLOATS = frozenset({"factor", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow", "mscale"})


def _typed(address: str, value: Any, version: str) -> Any:
    """A number as the key takes it: 1.0 and 1 are one value, and not one text."""
    if address.startswith(CONFIG):
        from translator.frameworks.deepspeed.hf_models import is_float

        if isinstance(value, dict):
            return {key: _as(value[key], key in _FLOATS or key.startswith("mscale")) for key in value}
        return _as(value, is_float(address.removeprefix(CONFIG)))
    if address.startswith(HF):
        kind = arguments.kind_of(address.removeprefix(HF))
        usual = default(address, version)
        return _as(value, kind == "float" and not (isinstance(usual, int) and not isinstance(usual, bool)))
    catalogue = load(FRAMEWORK, version)
    if address not in catalogue:
        return value
    return _as(value, catalogue.first(address).kind == "float" or address in _RATES)


_RATES = frozenset({"scheduler.params.warmup_max_lr", "optimizer.params.weight_decay"})


def _as(value: Any, real: bool) -> Any:
    if isinstance(value, list):
        return [_as(item, real or isinstance(item, float)) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if real:
        return float(value)
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def text_of(address: str, value: Any, version: str) -> str:
    """An address and its value in one line."""
    shown = json.dumps(_plain(value), default=str)
    return f"{FACTS.get(address, spelling(address, version))} = {shown}"


def _written(address: str, version: str) -> str:
    """The key as the version spells it."""
    catalogue = load(FRAMEWORK, version)
    if address not in catalogue or address.startswith(_PARAMETERS):
        return address
    flags = catalogue.first(address).flags
    return flags[0] if flags else address


def _nested(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as objects, sections in the order in which people write them."""
    root: dict[str, Any] = {}
    rank = {name: position for position, name in enumerate(ORDER)}
    for path in sorted(keys, key=lambda path: rank.get(path.split(".")[0], len(ORDER))):
        *parents, last = path.split(".")
        node = root
        for parent in parents:
            inner = node.get(parent)
            if not isinstance(inner, dict):
                inner = node[parent] = {}
            node = inner
        node[last] = _plain(keys[path])
    return root


def _plain(value: Any) -> Any:
    """A value as JSON has it; strict JSON has no infinity, and hjson reads one as text."""
    if isinstance(value, Auto):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(_plain(dict(document)), indent=2, ensure_ascii=False, allow_nan=False, default=str) + "\n"


def _scalar(value: Any) -> str:
    """A YAML 1.1 scalar or flow collection: floats with a point, for ``1e-05`` is a text there."""
    value = _plain(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        text = repr(value)
        mantissa, e, exponent = text.partition("e")
        if not e:
            return text
        sign = "" if exponent[0] in "+-" else "+"
        return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{sign}{exponent}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {_scalar(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_scalar(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=True, default=str)


def _facts(sink: Sink, flags: Mapping[str, Any], version: str) -> str:
    """What neither file has a key for, as a comment that is read back."""
    facts = [f"{name}={sink.values[address]}" for address, name in FACTS.items() if sink.values.get(address)]
    facts += [f"{HF}{name}={_quoted(str(_plain(value)))}" for name, value in flags.items()]
    environment = sink.values.get(ENVIRONMENT) or {}
    facts += [f"{VARIABLE}{name}={_quoted(value)}" for name, value in environment.items()]
    if sink.values.get(PROGRAM):
        facts.append(f"program={_quoted(str(sink.values[PROGRAM]))}")
    return "# ttx: " + " ".join([f"version={version}", *facts])


def _yaml(trainer: Mapping[str, Any], facts: str, context: RenderContext) -> str:
    title = f" ({context.source_title})" if context.source_title else ""
    lines = [
        f"# TrainingArguments of transformers {arguments.TRANSFORMERS}, which agree with {MAIN};",
        f"# written by ttx {__version__} from {_line(context.source_name)}{_line(title)}.",
        facts,
        f"deepspeed: {MAIN}",
    ]
    for name, value in trainer.items():
        text = f"{name}: {_scalar(value)}"
        origin = context.origin_of.get(f"{HF}{name}", "")
        lines.append(f"{text.ljust(44)}  # {_line(origin)}" if origin else text)
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="/:,@+")


def _line(text: str) -> str:
    """A comment may not hold control characters."""
    return "".join(char if char.isprintable() else " " for char in text)


def _program_flags(flags: Mapping[str, Any], trainer: object, model: object) -> dict[str, Any]:
    """What the training program is given by name."""
    named: dict[str, Any] = {"config": TRAINER} if trainer else {"deepspeed_config": MAIN}
    named |= flags
    if model and "config_name" not in named and "model_name_or_path" not in named:
        named["config_name"] = MODEL
    return named


def _launch(sink: Sink, version: str, context: RenderContext, flags: Mapping[str, Any], facts: str) -> str:
    nodes, gpus, world = (sink.values.get(address) for address in (NODES, GPUS_PER_NODE, WORLD_SIZE))
    if world and not (nodes and gpus):
        gpus = min(int(world), 8)
        nodes = int(world) // gpus
    environment = sink.values.get(ENVIRONMENT) or {}
    return _template().render(
        version=version,
        ttx_version=__version__,
        source_name=_line(context.source_name),
        source_title=_line(context.source_title),
        notes=list(_notes(nodes, "config" in flags)),
        facts=facts,
        exports=[f"export {name}={shlex.quote(value)}" for name, value in environment.items() if name.isidentifier()],
        nodes=nodes,
        gpus=gpus,
        program='"${PROGRAM:-train.py}"',
        flags=[f"--{name} {shlex.quote(str(_plain(value)))}" for name, value in flags.items()],
    )


def _notes(nodes: Any, trainer: bool) -> Iterable[str]:
    if trainer:
        yield "PROGRAM is a training program around transformers' Trainer that takes its arguments from a YAML file"
        yield "and further ones by name (--config, as TRL's do)."
    else:
        yield "PROGRAM is a training program that hands its --deepspeed_config to deepspeed.initialize."
    if nodes and int(nodes) > 1:
        yield "Several nodes need a hostfile (/job/hostfile, or --hostfile FILE)."


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from translator.resources import template_dir

    environment = Environment(
        loader=FileSystemLoader(template_dir()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return environment.get_template("deepspeed/launch.sh.j2")
