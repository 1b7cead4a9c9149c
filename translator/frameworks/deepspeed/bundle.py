"""A folder that holds a whole run: the JSON, the trainer's arguments that name it, the model, a launch script.

A JSON alone is read alone. Where ``training_args.yaml`` beside it names it, both are read, with the model's
``config.json``; comments of the YAML (``# ttx: key=value ...``) hold the world size, nodes, GPUs per node, environment
variables (``env:NAME=value``) and arguments of the training program (``hf.NAME=value``), percent-encoded.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from translator.findings import Place
from translator.frameworks.deepspeed import arguments
from translator.frameworks.deepspeed.syntax import Companion, is_object
from translator.native import ENVIRONMENT, GPUS_PER_NODE, NODES, PROGRAM, WORLD_SIZE, Given, Native
from translator.source import HINT, Source, hints

MAIN, TRAINER, MODEL, LAUNCH = "ds_config.json", "training_args.yaml", "config.json", "launch.sh"
CONFIG = "model_config."
VARIABLE = "env:"
_SIZES = {"world_size": WORLD_SIZE, "nodes": NODES, "gpus_per_node": GPUS_PER_NODE}
_NAMED = re.compile(r"^deepspeed:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


class Bundle(NamedTuple):
    """What is read for a source: a name and text to begin with, the model beside it, and where hints stand."""

    name: str
    text: str
    model: Companion | None
    hinted: str = ""


def gather(source: Source) -> Bundle:
    """The source itself, or the trainer's arguments that name it, with their model."""
    beside = source.name.rsplit("/", 1)[-1]
    if beside == TRAINER:
        return Bundle(source.name, source.text, _model(source))
    if not is_object(source.text):
        return Bundle(source.name, source.text, None)
    trainer = source.read_sibling(TRAINER)
    named = _NAMED.search(trainer) if trainer else None
    if trainer is None or named is None or named.group(1).rsplit("/", 1)[-1] != beside:
        launch = source.read_sibling(LAUNCH) or ""
        ours = f"--deepspeed_config {beside}" in launch and HINT in launch
        return Bundle(source.name, source.text, _model(source) if ours else None, launch if ours else "")
    return Bundle(TRAINER, trainer, _model(source))


def _model(source: Source) -> Companion | None:
    text = source.read_sibling(MODEL)
    return Companion(MODEL, text) if text is not None and is_object(text) else None


def read_hints(native: Native, bundle: Bundle) -> None:
    """Environment, program and its arguments, from the comments of the trainer's arguments."""
    from urllib.parse import unquote

    environment: dict[str, str] = {}
    place = Place(bundle.name, 1, 1)
    for key, values in hints(bundle.hinted or bundle.text).items():
        value = unquote(values[-1])
        if bundle.hinted and key in _SIZES and value.isdecimal() and 0 < len(value) < 10:
            stated = native.given.get(_SIZES[key])
            if stated is None or stated.missing is not None:
                native.given[_SIZES[key]] = Given(_SIZES[key], int(value), f"# ttx: {key}", place)
        if key.startswith(VARIABLE):
            environment[key.removeprefix(VARIABLE)] = value
        elif key == "program":
            native.given[PROGRAM] = Given(PROGRAM, value, "# ttx: program", place)
        elif key.startswith(arguments.PREFIX) and key.removeprefix(arguments.PREFIX) in arguments.SCRIPT:
            arguments.note(native, key.removeprefix(arguments.PREFIX), value, f"# ttx: {key}", place)
    if environment:
        native.given[ENVIRONMENT] = Given(ENVIRONMENT, environment, "# ttx: env:", place)
