"""Integer arithmetic of bash: 64 bits, C operators, ``**``, variables by name, assignments."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+#[0-9a-zA-Z@_]+|\d+)|([A-Za-z_]\w*)(\[[^\[\]]*\])?"
    r"|(<<=|>>=|\*\*|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[-+*/%<>=!~&|^?:(),]))"
)
_BINARY = {
    ",": 1, "||": 4, "&&": 5, "|": 6, "^": 7, "&": 8, "==": 9, "!=": 9, "<": 10, "<=": 10, ">": 10, ">=": 10,
    "<<": 11, ">>": 11, "+": 12, "-": 12, "*": 13, "/": 13, "%": 13, "**": 15,
}  # fmt: skip
_ASSIGN = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="})
MAX_TOKENS = 5_000
MAX_DEPTH = 60
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ@_"


class ArithmeticFaultError(Exception):
    """The expression is wrong; bash would print an error."""


Getter = Callable[[str, str | None], str]
Setter = Callable[[str, str | None, str], None]


def wrap(value: int) -> int:
    """The value as a signed 64-bit integer."""
    value &= 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >> 63 else value


def number(text: str) -> int:
    """An integer constant: decimal, 0 octal, 0x hexadecimal, base#digits. Raises `ArithmeticFaultError`."""
    text = text.strip()
    sign = 1
    if text[:1] in {"-", "+"}:
        sign, text = (-1 if text[0] == "-" else 1), text[1:]
    if len(text) > 200:
        raise ArithmeticFaultError("the number is too long")
    try:
        if "#" in text:
            base_text, digits = text.split("#", 1)
            return wrap(sign * _based(int(base_text), digits))
        if text[:2] in {"0x", "0X"}:
            return wrap(sign * int(text[2:], 16))
        if len(text) > 1 and text[0] == "0":
            return wrap(sign * int(text, 8))
        if not text.isascii() or not text.isdigit():
            raise ArithmeticFaultError(f"'{text}' is not an integer")
        return wrap(sign * int(text))
    except ValueError as error:
        raise ArithmeticFaultError(f"'{text}' is not an integer") from error


def _based(base: int, digits: str) -> int:
    if not 2 <= base <= 64:
        raise ArithmeticFaultError(f"{base} is not a base")
    total = 0
    for char in digits:
        digit = DIGITS.find(char.lower() if base <= 36 else char)
        if not 0 <= digit < base:
            raise ArithmeticFaultError(f"'{digits}' has no value in base {base}")
        total = wrap(total * base + digit)
    return total


def evaluate(text: str, get: Getter, put: Setter, depth: int = 0) -> int:
    """The value of an expression. ``get`` gives a variable's text, ``put`` sets one. Raises `ArithmeticFaultError`."""
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit():
        return number(stripped)
    if not stripped:
        return 0
    return _Evaluator(stripped, get, put, depth).run()


class _Evaluator:
    def __init__(self, text: str, get: Getter, put: Setter, depth: int) -> None:
        if depth > 20:
            raise ArithmeticFaultError("expressions refer to each other too deeply")
        self.get, self.put, self.depth = get, put, depth
        self.tokens: list[tuple[str, str, str | None]] = []
        at = 0
        while at < len(text):
            hit = _TOKEN.match(text, at)
            if hit is None:
                raise ArithmeticFaultError(f"syntax error at '{text[at : at + 20]}'")
            if hit.group(1) is not None:
                self.tokens.append(("number", hit.group(1), None))
            elif hit.group(2) is not None:
                index = hit.group(3)
                self.tokens.append(("name", hit.group(2), None if index is None else index[1:-1]))
            else:
                self.tokens.append(("op", hit.group(4), None))
            at = hit.end()
            if len(self.tokens) > MAX_TOKENS:
                raise ArithmeticFaultError("the expression is too long")
        self.at = 0
        self.level = 0
        self.live = True

    def run(self) -> int:
        value = self.expression(0)
        if self.at < len(self.tokens):
            raise ArithmeticFaultError(f"syntax error at '{self.tokens[self.at][1]}'")
        return value

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) and self.tokens[self.at][0] == "op" else ""

    def expression(self, floor: int) -> int:
        self.level += 1
        if self.level > MAX_DEPTH:
            raise ArithmeticFaultError("the expression is nested too deep")
        left = self.unary()
        while True:
            operator = self.peek()
            if operator == "?" and floor <= 3:
                left = self._ternary(left)
                continue
            power = _BINARY.get(operator, -1)
            if power < 0 or power < floor:
                break
            self.at += 1
            left = self._binary(operator, left, power)
        self.level -= 1
        return left

    def _ternary(self, condition: int) -> int:
        self.at += 1
        live = self.live
        self.live = live and condition != 0
        yes = self.expression(0)
        if self.peek() != ":":
            raise ArithmeticFaultError("':' expected")
        self.at += 1
        self.live = live and condition == 0
        no = self.expression(2)
        self.live = live
        return yes if condition else no

    def _binary(self, operator: str, left: int, power: int) -> int:
        live = self.live
        if operator == "&&":
            self.live = live and left != 0
        elif operator == "||":
            self.live = live and left == 0
        right = self.expression(power if operator == "**" else power + 1)
        self.live = live
        return self.apply(operator, left, right)

    def apply(self, operator: str, left: int, right: int) -> int:
        """One binary operation."""
        match operator:
            case "+":
                return wrap(left + right)
            case "-":
                return wrap(left - right)
            case "*":
                return wrap(left * right)
            case "/" | "%":
                return self._divide(operator, left, right)
            case "**":
                if right < 0:
                    raise ArithmeticFaultError("the exponent is negative")
                return wrap(pow(left, right, 1 << 64)) if right > 64 else wrap(left**right)
            case "<<":
                return wrap(left << (right & 63))
            case ">>":
                return wrap(left >> (right & 63))
            case "&":
                return left & right
            case "|":
                return left | right
            case "^":
                return left ^ right
            case ",":
                return right
            case "&&":
                return int(left != 0 and right != 0)
            case "||":
                return int(left != 0 or right != 0)
        return int(
            {"==": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right}.get(
                operator, left >= right
            )
        )

    def _divide(self, operator: str, left: int, right: int) -> int:
        if right == 0:
            if not self.live:
                return 0
            raise ArithmeticFaultError("division by zero")
        quotient = abs(left) // abs(right)
        if (left < 0) != (right < 0):
            quotient = -quotient
        return wrap(quotient if operator == "/" else left - quotient * right)

    def unary(self) -> int:
        if self.at >= len(self.tokens):
            raise ArithmeticFaultError("an operand is missing")
        kind, text, index = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return number(text)
        if kind == "name":
            return self._name(text, index)
        if text == "(":
            value = self.expression(0)
            if self.peek() != ")":
                raise ArithmeticFaultError("')' expected")
            self.at += 1
            return value
        if text in {"++", "--"}:
            return self._prefix(text)
        if text in {"-", "+", "!", "~"}:
            value = self.expression(16)
            return {"-": wrap(-value), "+": value, "!": int(value == 0), "~": wrap(~value)}[text]
        raise ArithmeticFaultError(f"syntax error at '{text}'")

    def _prefix(self, operator: str) -> int:
        if self.at < len(self.tokens) and self.tokens[self.at][0] == "name":
            _, name, index = self.tokens[self.at]
            self.at += 1
            value = wrap(self._value(name, index) + (1 if operator == "++" else -1))
            self._put(name, index, value)
            return value
        value = self.expression(16)
        return value if operator == "++" else wrap(-wrap(-value))

    def _name(self, name: str, index: str | None) -> int:
        operator = self.peek()
        if operator in _ASSIGN:
            self.at += 1
            old = 0 if operator == "=" else self._value(name, index)
            new = self.expression(2)
            value = new if operator == "=" else self.apply(operator[:-1], old, new)
            self._put(name, index, value)
            return value
        value = self._value(name, index)
        if operator in {"++", "--"}:
            self.at += 1
            self._put(name, index, wrap(value + (1 if operator == "++" else -1)))
        return value

    def _value(self, name: str, index: str | None) -> int:
        if not self.live:
            return 0
        return evaluate(self.get(name, index), self.get, self.put, self.depth + 1)

    def _put(self, name: str, index: str | None, value: int) -> None:
        if self.live:
            self.put(name, index, str(value))
