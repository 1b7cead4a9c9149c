"""Arguments of Hugging Face's Trainer, which complete a DeepSpeed configuration: names, types, older spellings.

Addresses are ``hf.<name>``. What `TrainingArguments` has comes from the catalogue of transformers 5.24.0; the arguments
of the usual training scripts, and those that only transformers 4 has, stand here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from translator.findings import Finding, Level, Place
from translator.frameworks.deepspeed.values import as_bool
from translator.native import Given, Missing, Native

if TYPE_CHECKING:
    from translator.catalogue import Catalogue
    from translator.shell import Word

TRANSFORMERS = "5.24.0"
PREFIX = "hf."
CONFIG_FLAGS = frozenset({"deepspeed", "deepspeed_config", "ds_config", "deepspeed_config_file"})
# Arguments that transformers 4 has and 5.24 has not, or under another name; the value of a rename is the new name.
RENAMED = {
    "evaluation_strategy": "eval_strategy",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "use_liger": "use_liger_kernel",
    "no_cuda": "use_cpu",
}
OLDER = {
    "warmup_ratio": "float",
    "adafactor": "bool",
    "group_by_length": "bool",
    "fp16_opt_level": "str",
    "half_precision_backend": "str",
    "overwrite_output_dir": "bool",
    "logging_dir": "str",
    "save_safetensors": "bool",
    "torchdynamo": "str",
    "ddp_find_unused_parameters": "bool",
}
# Arguments of the training scripts themselves that say something about the run.
SCRIPT = {
    "model_name_or_path": "str",
    "config_name": "str",
    "config_overrides": "str",
    "tokenizer_name": "str",
    "tokenizer_name_or_path": "str",
    "dataset_name": "str",
    "dataset": "str",
    "data_path": "str",
    "train_file": "str",
    "torch_dtype": "str",
    "dtype": "str",
    "attn_implementation": "str",
    "model_max_length": "int",
    "max_seq_length": "int",
    "max_seq_len": "int",
    "max_length": "int",
    "block_size": "int",
    "cutoff_len": "int",
    "sequence_len": "int",
    "max_source_length": "int",
    "lora_rank": "int",
    "lora_r": "int",
    "use_lora": "bool",
    "finetuning_type": "str",
    "sequence_parallel_size": "int",
}


@cache
def _catalogue() -> Catalogue:
    from translator.catalogue import load

    return load("transformers", TRANSFORMERS)


def kind_of(name: str) -> str | None:
    """The kind of an argument (``int float bool str dict``); None for a name that nothing knows."""
    address = PREFIX + name
    if address in _catalogue():
        entry = _catalogue().first(address)
        return "dict" if "dict" in entry.type_name else entry.kind
    return OLDER.get(name) or SCRIPT.get(name)


def default_of(name: str) -> object:
    """The default of a field of `TrainingArguments`. Raises KeyError for anything else."""
    if name == "optim":  # training_args.py:767 picks it by the installed torch
        return "adamw_torch_fused"
    return _catalogue().default(PREFIX + name)


def names() -> Iterator[str]:
    """All known names."""
    for address in _catalogue().addresses():
        yield address.removeprefix(PREFIX)
    yield from OLDER
    yield from SCRIPT


def convert(kind: str, text: object) -> object | None:
    """A value as the argument's type makes it; None when it cannot be."""
    if kind == "bool":
        return as_bool(text)
    if kind in {"int", "float"}:
        if isinstance(text, bool):
            return None
        try:
            if kind == "int":
                return int(text) if isinstance(text, int | str) else int(text) if text == int(str(text)) else None
            return float(text) if isinstance(text, int | float | str) else None
        except (ValueError, OverflowError):
            return None
    if isinstance(text, str) and text.startswith("{") and kind == "dict":
        return _object(text)
    return text


def _object(text: str) -> object | None:
    """JSON on a command line, as transformers takes it (training_args.py, _VALID_DICT_FIELDS)."""
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def note(native: Native, name: str, value: object, written: str, place: Place | None) -> bool:
    """Take an argument over; false when nothing knows its name."""
    name = name.replace("-", "_")
    if name in RENAMED:
        new = RENAMED[name]
        message = f"{written} is called {new} in transformers {TRANSFORMERS}; read as that"
        native.findings.append(Finding("R145", Level.NOTE, message, "", place, written))
        name = new
    kind = kind_of(name)
    if kind is None:
        return False
    address = PREFIX + name
    if not isinstance(value, Missing) and value is not None:
        converted = convert(kind, value)
        if converted is None:
            message = f"{written} cannot be {value!r}: it takes {kind}"
            native.findings.append(Finding("R146", Level.ERROR, message, "", place, written))
            native.unknown.append(Given(address, value, written, place))
            return True
        value = converted
    native.given[address] = Given(address, value, written, place)
    return True


def read_words(words: Sequence[Word], native: Native) -> Word | None:
    """The arguments of a command line; returns the word that names a DeepSpeed configuration, if one does."""
    config: Word | None = None
    strangers: list[str] = []
    for flag, values, place in _options(words):
        name = flag.lstrip("-").replace("-", "_")
        if name in CONFIG_FLAGS:
            config = values[0] if values else config
            continue
        value: object = True if not values else values[0].text if len(values) == 1 else [word.text for word in values]
        unknowns = [unknown for word in values for unknown in word.unknowns]
        if unknowns:
            first = unknowns[0]
            supply = f"--set {first.name}=..." if first.name else f"--set {name}=..."
            value = Missing(" ".join(word.text for word in values), first.reason, supply)
        if not note(native, name, value, flag, place):
            strangers.append(flag)
            shown = value.expression if isinstance(value, Missing) else value
            native.unknown.append(Given(flag, shown, flag, place))
    if strangers:
        listed = ", ".join(strangers[:8]) + (" ..." if len(strangers) > 8 else "")
        message = f"{len(strangers)} arguments are the program's own and are not read: {listed}"
        native.findings.append(Finding("R147", Level.NOTE, message, "", words[0].place if words else None))
    return config


def _options(words: Sequence[Word]) -> Iterator[tuple[str, list[Word], Place]]:
    """Flags with the words that follow them; words before the first flag are the program's own."""
    from translator.shell import Word

    flag: str | None = None
    place: Place | None = None
    values: list[Word] = []
    for word in words:
        if word.text.startswith("--") and len(word.text) > 2:
            if flag is not None and place is not None:
                yield flag, values, place
            flag, equals, rest = word.text.partition("=")
            place, values = word.place, []
            if equals:
                values = [Word(rest, word.place, word.unknowns)]
        elif flag is not None:
            values.append(word)
    if flag is not None and place is not None:
        yield flag, values, place


def read_variables(variables: Mapping[str, str], native: Native) -> None:
    """Values that the person gives by an argument's own name (``--set learning_rate=3e-4``)."""
    for name, text in variables.items():
        if kind_of(name) is not None and (PREFIX + name not in native.given or native.given[PREFIX + name].missing):
            note(native, name, text, f"--set {name}", None)
