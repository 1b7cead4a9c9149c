"""Prints, as one JSON line, every action of the real Megatron-LM argument parser.

Run by the Python that has torch: ``megatron_dump_parser.py SOURCE``, where SOURCE holds ``megatron/training``.
Stands alone, so that it runs on any version of the package. Before Python 3.12 ``typing.override`` is lent from
typing_extensions; without triton, which CPU builds of torch may lack, the one module that needs it is a placeholder.
"""

import argparse
import contextlib
import enum
import importlib.util
import json
import os
import sys
import types
import typing

NEEDS_TRITON = "megatron.core.transformer.moe.paged_stash"


class Absent(types.ModuleType):
    """A module whose every name is a placeholder."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def plain(value):
    """A value as JSON; enum members by name."""
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, (list, tuple, range)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def action_name(action):
    """The name that ``add_argument`` takes for an action object."""
    known = {"_StoreAction": "store", "_StoreTrueAction": "store_true", "_StoreFalseAction": "store_false"}
    known |= {"_StoreConstAction": "store_const", "_AppendAction": "append", "_ExtendAction": "extend"}
    name = type(action).__name__
    return known.get(name, name)


def describe(action):
    """One action as JSON."""
    return {
        "flags": list(action.option_strings),
        "dest": action.dest,
        "action": action_name(action),
        "default": plain(action.default),
        "nargs": action.nargs,
        "const": plain(action.const),
        "choices": None if action.choices is None else plain(list(action.choices)),
        "type": getattr(action.type, "__name__", None),
        "required": action.required,
    }


def actions_of(parser, known):
    """The actions of a parser that are not in ``known`` and are not its help."""
    found = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    return [describe(action) for action in found if id(action) not in known]


def main(source):
    """Builds the parser and prints its actions and what an empty command line gives."""
    for name in ("WORLD_SIZE", "LOCAL_RANK", "RANK"):
        os.environ.pop(name, None)
    sys.path.insert(0, source)
    if not hasattr(typing, "override"):
        import typing_extensions

        typing.override = typing_extensions.override
    if importlib.util.find_spec("triton") is None:
        sys.modules[NEEDS_TRITON] = Absent(NEEDS_TRITON)
    with contextlib.redirect_stdout(sys.stderr):
        from megatron.training import arguments

        parser = arguments.add_megatron_arguments(argparse.ArgumentParser(allow_abbrev=False))
        core = actions_of(parser, set())
        extra = []
        path = os.path.join(source, "megatron", "post_training", "arguments.py")
        if os.path.exists(path):
            known = {id(action) for action in parser._actions}
            spec = importlib.util.spec_from_file_location("post_training_arguments", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            module.add_modelopt_args(parser)
            extra = actions_of(parser, known)
        namespace = {name: plain(value) for name, value in vars(parser.parse_args([])).items()}
    print(json.dumps({"core": core, "modelopt": extra, "defaults": namespace}))


if __name__ == "__main__":
    main(sys.argv[1])
