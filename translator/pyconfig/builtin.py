"""Python's own names: which are evaluated, which methods of plain values, and which run code."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from translator.pyconfig.values import Call, ClassValue, Function, Method, ModuleValue, Node, Partial, Symbol, Unknown

PLAIN = (str, bytes, int, float, bool, complex, type(None))
TYPES: dict[str, type] = {
    "int": int, "float": float, "str": str, "bool": bool, "list": list, "dict": dict, "tuple": tuple, "set": set,
    "frozenset": frozenset, "bytes": bytes, "complex": complex,
}  # fmt: skip
FUNCTIONS = frozenset(
    {
        "abs", "all", "any", "divmod", "enumerate", "filter", "getattr", "hasattr", "isinstance", "iter", "len", "map",
        "max", "min", "pow", "print", "range", "repr", "reversed", "round", "setattr", "sorted", "sum", "type", "zip",
        "callable", "id", "issubclass", "next",
    }
)  # fmt: skip
DYNAMIC = frozenset({"exec", "eval", "compile", "__import__", "globals", "locals", "vars", "delattr", "breakpoint"})
OUTSIDE = frozenset({"open", "input"})
NAMES: dict[str, object] = {
    "True": True,
    "False": False,
    "None": None,
    "NotImplemented": Symbol("builtins.NotImplemented"),
    "Ellipsis": ...,
    "__file__": Symbol("builtins.__file__"),
    **{
        name: Symbol(f"builtins.{name}")
        for name in (
            *TYPES, *FUNCTIONS, *DYNAMIC, *OUTSIDE, "object", "property", "staticmethod", "classmethod", "super",
            "Exception", "ValueError", "TypeError", "RuntimeError", "KeyError", "ImportError", "ModuleNotFoundError",
            "NotImplementedError", "AssertionError", "AttributeError", "OSError", "IndexError", "BaseException",
            "StopIteration", "FileNotFoundError", "Warning", "DeprecationWarning", "UserWarning", "slice", "hash",
        )
    },
}  # fmt: skip
CONSTANTS: dict[str, object] = {
    "math.pi": math.pi,
    "math.e": math.e,
    "math.inf": math.inf,
    "math.nan": math.nan,
    "math.tau": math.tau,
    "sys.maxsize": 2**63 - 1,
    "typing.TYPE_CHECKING": False,
    "sys.platform": "linux",
}
MATH: dict[str, Callable[..., Any]] = {
    f"math.{name}": getattr(math, name)
    for name in (
        "acos", "asin", "atan", "atan2", "ceil", "cos", "degrees", "exp", "fabs", "floor", "fmod", "gcd", "hypot",
        "isclose", "isfinite", "isinf", "isnan", "isqrt", "lcm", "log", "log10", "log1p", "log2", "pow", "prod",
        "radians", "remainder", "sin", "sqrt", "tan", "trunc",
    )
}  # fmt: skip
OUTSIDE_MODULES = frozenset(
    {"os", "sys", "time", "datetime", "random", "socket", "platform", "getpass", "uuid", "secrets", "subprocess",
     "pathlib", "glob", "json", "yaml", "toml", "tomllib", "requests", "urllib", "importlib"}
)  # fmt: skip

CHANGING: dict[type, frozenset[str]] = {
    list: frozenset({"append", "extend", "insert", "pop", "remove", "clear", "reverse", "sort"}),
    dict: frozenset({"update", "pop", "setdefault", "clear", "popitem"}),
    set: frozenset({"add", "update", "discard", "remove", "clear", "pop"}),
}
READING: dict[type, frozenset[str]] = {
    list: frozenset({"copy", "index", "count"}),
    dict: frozenset({"get", "items", "keys", "values", "copy", "fromkeys"}),
    set: frozenset({"copy", "union", "intersection", "difference", "issubset", "issuperset"}),
    frozenset: frozenset({"union", "intersection", "difference", "issubset", "issuperset"}),
    tuple: frozenset({"index", "count"}),
    str: frozenset(
        {
            "join", "split", "rsplit", "splitlines", "strip", "lstrip", "rstrip", "lower", "upper", "title",
            "capitalize", "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "find",
            "rfind", "index", "count", "isdigit", "isalpha", "isnumeric", "isidentifier", "casefold", "swapcase",
        }
    ),
    int: frozenset({"bit_length"}),
    float: frozenset({"is_integer"}),
}  # fmt: skip
BOUNDED = frozenset({"replace", "format"})


def is_plain(value: object) -> bool:
    """Whether a value is made of Python's own types only, all the way down."""
    if isinstance(value, PLAIN):
        return True
    if isinstance(value, list | tuple | set | frozenset):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(is_plain(key) and is_plain(item) for key, item in value.items())
    return isinstance(value, range)


def has_method(owner: object, name: str) -> bool:
    """Whether a method of a plain value is evaluated."""
    kind = type(owner)
    return name in CHANGING.get(kind, ()) or name in READING.get(kind, ()) or (kind is str and name in BOUNDED)


def changes(owner: object, name: str) -> bool:
    """Whether a method changes its owner."""
    return name in CHANGING.get(type(owner), ())


def describe(value: object) -> str:
    """A value in a few words, for messages."""
    if isinstance(value, Node):
        return f"a {value.cls}"
    if isinstance(value, Symbol | Function | ClassValue | ModuleValue):
        return value.name
    if isinstance(value, Call | Partial):
        return f"{value.callee}(...)"
    if isinstance(value, Method):
        return f"method {value.name}"
    if isinstance(value, Unknown):
        return value.text
    return type(value).__name__
