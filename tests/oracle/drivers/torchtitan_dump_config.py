"""Prints, as one JSON line, every field of the real torchtitan ``JobConfig`` and every model flavor.

Run by the Python that has torchtitan 0.1 or 0.2. Stands alone: it imports nothing of ttx. ``titan`` beside it lends the
one module that needs triton.
"""

import contextlib
import dataclasses
import importlib
import json
import sys

import titan


def plain(value):
    """A value as JSON, without the private fields of dataclasses."""
    if dataclasses.is_dataclass(value):
        fields = [field.name for field in dataclasses.fields(value) if not field.name.startswith("_")]
        return {name: plain(getattr(value, name)) for name in fields}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def leaves(config_class, prefix=""):
    """Type text and default of every leaf field, by dotted path."""
    found = {}
    for field in dataclasses.fields(config_class):
        if dataclasses.is_dataclass(field.type):
            found |= leaves(field.type, f"{prefix}{field.name}.")
        else:
            missing = field.default is dataclasses.MISSING
            default = field.default_factory() if missing else field.default
            name = field.type.__name__ if isinstance(field.type, type) and field.type in PLAIN else str(field.type)
            found[f"{prefix}{field.name}"] = {"type": name.replace("typing.", ""), "default": plain(default)}
    return found


PLAIN = (int, float, str, bool)


def job_config():
    """The class, wherever the version keeps it."""
    for name in ("torchtitan.config", "torchtitan.config_manager"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name).JobConfig
    raise SystemExit("no JobConfig")


def flavors(families):
    """The flavors of each family, with their class and all arguments."""
    found = {}
    for family in families:
        module = importlib.import_module(f"torchtitan.models.{family}")
        table = getattr(module, "llama3_configs", None) or module.get_train_spec().model_args
        found[family] = {name: {"args_class": type(item).__name__, "args": plain(item)} for name, item in table.items()}
    return found


def main(families):
    """Prints the document."""
    with contextlib.redirect_stdout(sys.stderr):
        titan.leave_out_triton()
        document = {"options": leaves(job_config()), "flavors": flavors(families)}
    print(json.dumps(document))


if __name__ == "__main__":
    main(sys.argv[1:])
