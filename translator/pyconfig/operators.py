"""Python's operators on plain values, bounded so that no operation makes something huge."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import libcst as cst

from translator.pyconfig.limits import OverLimitError

_MAX_BITS = 4096

BINARY: dict[type[Any], Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.Power: operator.pow,
    cst.LeftShift: operator.lshift,
    cst.RightShift: operator.rshift,
    cst.BitAnd: operator.and_,
    cst.BitOr: operator.or_,
    cst.BitXor: operator.xor,
}
AUGMENTED: dict[type[Any], type[Any]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.ModuloAssign: cst.Modulo,
    cst.PowerAssign: cst.Power,
    cst.LeftShiftAssign: cst.LeftShift,
    cst.RightShiftAssign: cst.RightShift,
    cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr,
    cst.BitXorAssign: cst.BitXor,
}
ORDER: dict[type[Any], Callable[[Any, Any], Any]] = {
    cst.LessThan: operator.lt,
    cst.LessThanEqual: operator.le,
    cst.GreaterThan: operator.gt,
    cst.GreaterThanEqual: operator.ge,
}
UNARY: dict[type[Any], Callable[[Any], Any]] = {
    cst.Minus: operator.neg,
    cst.Plus: operator.pos,
    cst.BitInvert: operator.invert,
}


def binary(kind: type[Any], left: Any, right: Any, items: int) -> object:
    """The result of a binary operator.

    Raises `OverLimitError` for results beyond ``items`` parts or 4096 bits, and whatever Python raises.
    """
    guard(kind, left, right, items)
    return BINARY[kind](left, right)


def guard(kind: type[Any], left: Any, right: Any, items: int) -> None:
    """Refuses an operation whose result is huge. Raises `OverLimitError`."""
    too_large = OverLimitError("R117", "an operation makes a value that is too large")
    if kind is cst.Power and isinstance(left, int) and isinstance(right, int):
        if abs(right) * max(left.bit_length(), 1) > _MAX_BITS:
            raise too_large
    elif kind is cst.LeftShift and isinstance(right, int) and right > _MAX_BITS:
        raise too_large
    elif kind is cst.Multiply:
        if isinstance(left, int) and isinstance(right, int):
            if left.bit_length() + right.bit_length() > 2 * _MAX_BITS:
                raise too_large
            return
        for sequence, count in ((left, right), (right, left)):
            is_repeated = isinstance(sequence, str | bytes | list | tuple) and isinstance(count, int)
            if is_repeated and len(sequence) * count > items:
                raise too_large
    elif kind is cst.Add and isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
        if len(left) + len(right) > items:
            raise too_large
    elif kind is cst.Modulo and isinstance(left, str | bytes) and wide(str(left)):
        raise too_large


def wide(spec: str) -> bool:
    """Whether a format asks for a width of four digits or more, or one that is computed."""
    import re

    return re.search(r"\d{4}|\*", spec) is not None
