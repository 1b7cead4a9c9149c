"""YAML files around DeepSpeed: accelerate's configuration, and the arguments of a Hugging Face trainer.

accelerate's own keys under ``deepspeed_config`` make a configuration as its plugin does
(``accelerate/utils/dataclasses.py:1302`` at 1.15.0); ``deepspeed_config_file`` names one instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from translator.errors import SourceError, UnsupportedError
from translator.findings import Finding, Level, Place
from translator.frameworks.deepspeed import arguments
from translator.frameworks.deepspeed.addresses import ACCELERATE, ACCELERATE_KEYS
from translator.frameworks.deepspeed.positions_json import Document, Member, Placeholder, plain
from translator.frameworks.deepspeed.values import AUTO
from translator.frameworks.deepspeed.yaml_nodes import YamlText
from translator.native import NODES, WORLD_SIZE, Given, Missing, Native

# Keys of gpt-neox, hyphens for underscores.
_NEOX = frozenset(
    {"num_layers", "hidden_size", "num_attention_heads", "pipe_parallel_size", "model_parallel_size", "train_iters"}
    | {"max_position_embeddings", "seq_length", "lr_decay_style", "pos_emb", "norm", "vocab_file", "data_path"}
    | {"checkpoint_activations", "data_impl", "lr_decay_iters", "init_method", "partition_activations"}
)
_NEOX_NEEDED = 3
_NEOX_KEY = re.compile(r"^\s*[\"']?(\w+)[\"']?\s*:", re.MULTILINE)
_ACCELERATE = frozenset(
    {"distributed_type", "deepspeed_config", "mixed_precision", "num_machines", "num_processes", "compute_environment"}
)
_PRECISIONS = frozenset({"fp16", "bf16", "fp8"})
_ZERO = "zero_optimization"
_PLUGIN = {
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_clipping": "gradient_clipping",
    "zero_stage": f"{_ZERO}.stage",
    "offload_optimizer_device": f"{_ZERO}.offload_optimizer.device",
    "offload_optimizer_nvme_path": f"{_ZERO}.offload_optimizer.nvme_path",
    "offload_param_device": f"{_ZERO}.offload_param.device",
    "offload_param_nvme_path": f"{_ZERO}.offload_param.nvme_path",
    "zero3_save_16bit_model": f"{_ZERO}.stage3_gather_16bit_weights_on_model_save",
}
# What the plugin takes where the file says nothing (dataclasses.py:1229-1256).
_PLUGIN_DEFAULTS: dict[str, object] = {
    "train_batch_size": AUTO,
    "train_micro_batch_size_per_gpu": AUTO,
    "gradient_accumulation_steps": AUTO,
    "gradient_clipping": AUTO,
    f"{_ZERO}.stage": 2,
}
# What fills these in as numbers where a command line gives them as words.
_NUMBERS = frozenset({"gradient_accumulation_steps", "gradient_clipping", "zero_stage"})


@dataclass(frozen=True, slots=True)
class Nested:
    """The DeepSpeed configuration that a YAML file holds or names."""

    document: Document | None
    file: str | None
    text: YamlText


def is_neox(text: YamlText) -> bool:
    """Whether a mapping is a configuration of gpt-neox."""
    keys = {member.key.replace("-", "_") for member in text.document.root.members or []}
    return len(keys & _NEOX) >= _NEOX_NEEDED or {"vocab_file", "data_path"} <= keys


def sniff(text: str) -> float:
    """How surely a YAML text belongs to DeepSpeed, from 0 to 1."""
    keys = set(_NEOX_KEY.findall(text.replace("-", "_")))
    if len(keys & _NEOX) >= _NEOX_NEEDED or {"vocab_file", "data_path"} <= keys:
        return 0.8  # gpt-neox: read_source says that it is not supported
    lines = {line.partition(":")[0].strip("\"' ,") for line in text.splitlines() if line[:1] not in {"", " ", "#"}}
    if {"deepspeed_config", "distributed_type"} & lines and "deepspeed" in text.lower():
        return 0.9
    if "deepspeed" in lines:
        return 0.85
    if sum(name in lines for name in ("per_device_train_batch_size", "learning_rate", "output_dir")) > 1:
        return 0.5
    return 0.0


def read(path: str, text: str, native: Native) -> Nested:
    """Read a YAML file; returns the DeepSpeed configuration in it, to be read by the caller.

    Raises `SourceError` for YAML that is none of these, gpt-neox's included.
    """
    yaml = YamlText(path, text)
    members = yaml.document.root.members or []
    if is_neox(yaml):
        raise UnsupportedError(
            f"{path} is a configuration of gpt-neox, which is not supported yet",
            place=yaml.places[0] if yaml.places else None,
        )
    keys = {member.key for member in members}
    if len(keys & _ACCELERATE) > 1:
        return _accelerate(yaml, members, native)
    return _trainer(yaml, members, native)


def _accelerate(yaml: YamlText, members: list[Member], native: Native) -> Nested:
    inner: list[Member] = []
    for member in members:
        value, place = plain(member.node), yaml.place(member.start, member.end)
        if member.key == "deepspeed_config":
            inner = member.node.members or []
        elif member.key in {"num_processes", "num_machines"} and isinstance(value, int) and not isinstance(value, bool):
            address = WORLD_SIZE if member.key == "num_processes" else NODES
            native.given[address] = Given(address, value, member.key, place)
        elif member.key == "mixed_precision" and str(value).lower() in _PRECISIONS:
            _mixed_precision(native, str(value).lower(), place)
        else:
            _own(native, member.key, value, place)
    named = next((plain(item.node) for item in inner if item.key == "deepspeed_config_file"), None)
    if isinstance(named, str):
        return Nested(None, named, yaml)
    _plugin(yaml, inner, native)
    return Nested(None, None, yaml)


def _own(native: Native, key: str, value: object, place: Place) -> bool:
    """Take over a key that concerns accelerate alone; one that it does not have stays unknown."""
    address = f"{ACCELERATE}{key}"
    if key in ACCELERATE_KEYS:
        native.given[address] = Given(address, value, key, place)
    else:
        native.unknown.append(Given(address, value, key, place))
    return key in ACCELERATE_KEYS


def read_flags(flags: Mapping[str, str], native: Native, place: Place) -> str | None:
    """Read the options of ``accelerate launch`` itself; returns the configuration that they name.

    They count before what its configuration file says (``accelerate/commands/launch.py:1020`` at 1.15.0).
    """
    precision = flags.get("mixed_precision", "").lower()
    if precision in _PRECISIONS:
        _mixed_precision(native, precision, place)
    if "deepspeed_config_file" in flags:
        return flags["deepspeed_config_file"]
    plugin = {key: value for key, value in flags.items() if key in _PLUGIN}
    if not flags.keys() & {"use_deepspeed", "config_file"}:
        return None
    for key, text in plugin.items():
        value = _flag_value(key, text)
        native.given[_PLUGIN[key]] = Given(_PLUGIN[key], value, f"--{key}", place)
    _plugin_defaults(native)
    return None


def _flag_value(key: str, text: str) -> object:
    if text == "auto":
        return AUTO
    try:
        if "$" not in text:
            return float(text) if key == "gradient_clipping" else int(text) if key in _NUMBERS else text
    except ValueError:
        pass
    name = text.strip("${}").partition(":")[0]
    return Missing(text, "the script does not say what it is", f"--set {name}=..." if "$" in text else f"--{key}")


def _plugin_defaults(native: Native) -> None:
    for address, default in _PLUGIN_DEFAULTS.items():
        native.given.setdefault(address, Given(address, default, f"accelerate's {address}"))


def _mixed_precision(native: Native, value: str, place: Place) -> None:
    for name in ("fp16", "bf16"):
        if value == name or (name == "bf16" and value == "fp8"):
            native.given[f"{name}.enabled"] = Given(f"{name}.enabled", True, "mixed_precision", place)
    if value == "fp16":
        native.given["fp16.auto_cast"] = Given("fp16.auto_cast", True, "mixed_precision", place)


def _plugin(yaml: YamlText, inner: list[Member], native: Native) -> None:
    for member in inner:
        place, value = yaml.place(member.start, member.end), plain(member.node)
        address = _PLUGIN.get(member.key)
        if address is None:
            if not _own(native, member.key, value, place):
                message = f"accelerate has no key deepspeed_config.{member.key}"
                native.findings.append(Finding("R131", Level.WARNING, message, "remove it", place, member.key))
            continue
        written = f"deepspeed_config.{member.key}"
        if value in ("none", None) and address.endswith("nvme_path"):
            continue
        native.given[address] = Given(address, AUTO if value == "auto" else value, written, place)
    _plugin_defaults(native)


def _trainer(yaml: YamlText, members: list[Member], native: Native) -> Nested:
    nested = Nested(None, None, yaml)
    known = 0
    for member in members:
        value, place = member.node.value, yaml.place(member.start, member.end)
        if member.key in arguments.CONFIG_FLAGS:
            known += 1
            if member.node.members is not None:
                nested = Nested(Document(member.node), None, yaml)
            elif isinstance(value, str):
                nested = Nested(None, value, yaml)
            continue
        if isinstance(value, Placeholder):
            value = Missing(value.expression, "a template's variable", f"--set {value.name or member.key}=...")
        elif not isinstance(value, str | int | float | bool | None):
            value = plain(member.node)
        if arguments.note(native, member.key, value, member.key, place):
            known += 1
        else:
            native.unknown.append(Given(member.key, plain(member.node), member.key, place))
    if known < 2:
        raise SourceError(f"{yaml.path} is YAML, but neither accelerate's nor a trainer's arguments")
    return nested


ReadSibling = Callable[[str], str | None]
