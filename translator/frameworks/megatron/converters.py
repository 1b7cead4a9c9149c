"""The conversions that Megatron-LM's argparse applies to the text of a value.

Each raises `ValueError` where the real one refuses; the message says what was expected. Only what the real parser
accepts is accepted: ``int`` refuses ``1e5``, ``bool`` takes every non-empty text for true.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

# A layer pattern is a Python expression upstream; ours is evaluated with a bound, since `[0]*9999999999` is legal
# Python.
MAX_PATTERN_ITEMS = 100_000
MAX_PATTERN_CHARACTERS = 10_000
_PATTERN_CHARACTERS = frozenset(",0123456789[]()+*")


def evaluate_pattern(text: str) -> Any:
    """A layer pattern such as ``([1]*3+[0]*1)*3`` as the list that it denotes.

    Source: ``_eval_pattern``, ``megatron/training/arguments.py:255`` (core 0.18.0). Raises `ValueError`.
    """
    if len(text) > MAX_PATTERN_CHARACTERS or not _PATTERN_CHARACTERS.issuperset(text):
        raise ValueError("a list expression of digits, commas, brackets, + and *")
    try:
        return _evaluate(ast.parse(text, mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError("a list expression such as ([1]*3+[0]*1)*3") from error


def _evaluate(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.List(elts=items):
            return [_evaluate(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_evaluate(item) for item in items)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _evaluate(operand)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _evaluate(left), _evaluate(right)
            if type(first) is type(second) and _size(first) + _size(second) <= MAX_PATTERN_ITEMS:
                return first + second
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            first, second = _evaluate(left), _evaluate(right)
            if isinstance(first, int):
                first, second = second, first
            if isinstance(second, int) and _size(first) * max(_size(second), second) <= MAX_PATTERN_ITEMS:
                return first * second
    raise ValueError(f"a list expression of at most {MAX_PATTERN_ITEMS} layers")


def _size(value: Any) -> int:
    return value if isinstance(value, int) else len(value)


def frequency(text: str) -> Any:
    """An integer ratio, or a list expression with one entry per layer.

    Source: ``moe_freq_type``, ``megatron/training/arguments.py:337`` (core 0.18.0), and its two siblings.
    """
    return evaluate_pattern(text) if "[" in text else integer(text)


def int_tuple(text: str) -> tuple[int, ...]:
    """``1,2,3`` or ``(1,2,3)``. Source: ``tuple_type``, ``megatron/training/arguments.py:387`` (core 0.18.0)."""
    try:
        return tuple(int(item) for item in text.strip("()").split(","))
    except ValueError:
        raise ValueError("integers with commas between, such as 128,0") from None


def integer(text: str) -> int:
    """An integer as Python's ``int()`` reads it."""
    try:
        return int(text)
    except ValueError:
        raise ValueError("an integer (no exponent, no decimal point)") from None


def number(text: str) -> float:
    """A number as Python's ``float()`` reads it."""
    try:
        return float(text)
    except ValueError:
        raise ValueError("a number") from None


CONVERTERS: dict[str, Callable[[str], Any]] = {
    "int": integer,
    "float": number,
    "str": str,
    "bool": bool,
    "moe_freq_type": frequency,
    "no_rope_freq_type": frequency,
    "la_freq_type": frequency,
    "tuple_type": int_tuple,
    "_parse_cuda_graph_modules_arg": str,
}
