"""Decimal arithmetic as ``bc`` does it: every division is cut off after ``scale`` digits."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"\s*(?:(\d+\.?\d*|\.\d+)|(\*\*|<=|>=|==|!=|&&|\|\||[-+*/%^()<>]))")
MAX_LENGTH = 500
MAX_DIGITS = 200

Number = tuple[int, int]
"""An integer and the number of its decimal places."""


class _WrongError(Exception):
    pass


def calculate(text: str, scale: int) -> str | None:
    """The printed value of an expression; None when it is not plain arithmetic."""
    if len(text) > MAX_LENGTH:
        return None
    tokens: list[str] = []
    at = 0
    text = text.strip()
    while at < len(text):
        hit = _TOKEN.match(text, at)
        if hit is None:
            return None
        tokens.append(hit.group(1) or hit.group(2))
        at = hit.end()
    try:
        calculation = _Calculation(tokens, scale)
        value = calculation.sum()
        if calculation.at != len(tokens):
            return None
    except (_WrongError, RecursionError):
        return None
    return shown(value)


def shown(value: Number) -> str:
    """As ``bc`` prints: no zero before the point."""
    number, places = value
    sign = "-" if number < 0 else ""
    digits = str(abs(number)).rjust(places + 1, "0")
    if not places:
        return sign + digits
    whole, fraction = digits[:-places], digits[-places:]
    if not int(whole) and not int(fraction):
        return "0"
    return sign + (whole if int(whole) else "") + "." + fraction


class _Calculation:
    def __init__(self, tokens: list[str], scale: int) -> None:
        self.tokens = tokens
        self.scale = scale
        self.at = 0
        self.level = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def sum(self) -> Number:
        left = self.product()
        while (operator := self.peek()) in {"+", "-"}:
            self.at += 1
            right = self.product()
            places = max(left[1], right[1])
            one, two = _scaled(left, places), _scaled(right, places)
            left = (one + two if operator == "+" else one - two, places)
        return left

    def product(self) -> Number:
        left = self.power()
        while (operator := self.peek()) in {"*", "/", "%"}:
            self.at += 1
            left = self._operate(operator, left, self.power())
        return left

    def _operate(self, operator: str, left: Number, right: Number) -> Number:
        if operator == "*":
            places = min(left[1] + right[1], max(self.scale, left[1], right[1]))
            return _cut_to((left[0] * right[0], left[1] + right[1]), places)
        if right[0] == 0:
            raise _WrongError
        quotient = _divide(left, right, self.scale)
        if operator == "/":
            return quotient
        places = max(self.scale + right[1], left[1])
        taken = (quotient[0] * right[0], quotient[1] + right[1])
        wide = max(places, taken[1])
        return _cut_to((_scaled(left, wide) - _scaled(taken, wide), wide), places)

    def power(self) -> Number:
        base = self.unit()
        if self.peek() in {"^", "**"}:
            self.at += 1
            exponent = self.power()
            if exponent[1] or not 0 <= exponent[0] <= 64 or len(str(base[0])) * exponent[0] > MAX_DIGITS:
                raise _WrongError
            places = min(base[1] * exponent[0], max(self.scale, base[1]))
            return _cut_to((base[0] ** exponent[0], base[1] * exponent[0]), places)
        return base

    def unit(self) -> Number:
        token = self.peek()
        self.at += 1
        self.level += 1
        if self.level > 200:
            raise _WrongError
        if token == "(":
            value = self.sum()
            if self.peek() != ")":
                raise _WrongError
            self.at += 1
            return value
        if token == "-":
            number, places = self.unit()
            return -number, places
        if not token or not (token[0].isdigit() or token[0] == "."):
            raise _WrongError
        whole, _, fraction = token.partition(".")
        return int((whole + fraction) or "0"), len(fraction)


def _scaled(value: Number, places: int) -> int:
    number: int = value[0] * 10 ** (places - value[1])
    return number


def _cut_to(value: Number, places: int) -> Number:
    number, old = value
    if old <= places:
        return number * 10 ** (places - old), places
    return _quotient(number, 10 ** (old - places)), places


def _divide(left: Number, right: Number, scale: int) -> Number:
    numerator = left[0] * 10 ** (scale + right[1])
    denominator = right[0] * 10 ** left[1]
    return _quotient(numerator, denominator), scale


def _quotient(numerator: int, denominator: int) -> int:
    size = abs(numerator) // abs(denominator)
    return size if (numerator < 0) == (denominator < 0) else -size
