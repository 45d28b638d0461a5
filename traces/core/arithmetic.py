"""The exact value of a written sum, within bounds; nothing is executed.

Grammar, with the usual precedence (`-2^2` is -4, powers group to the right):

    sum     = product (("+" | "-" | "−") product)*
    product = signed (("*" | "×" | "/" | "÷") signed)*
    signed  = ("+" | "-" | "−") signed | power
    power   = atom (("**" | "^") signed)?
    atom    = digits ["." digits] | "." digits | "(" sum ")"

Digits are ASCII. Thousands separators, units, percent signs, exponents such as 1e3, names and
calls are not part of it: "1,200" may mean 1200 or 1.2, so such a text has no value here.
"""

from __future__ import annotations

import re
from fractions import Fraction

LONGEST_EXPRESSION = 500
"""Characters."""

DEEPEST_NESTING = 40
"""Parentheses, signs and powers inside one another."""

LARGEST_BITS = 4096
"""Of numerator and of denominator, of every intermediate result."""

_TOKEN = re.compile(r"[ \t\r\n]*(?:([0-9]+(?:\.[0-9]*)?|\.[0-9]+)|(\*\*|[-+*/^()×÷−]))")
_SPELLINGS = {"−": "-", "×": "*", "÷": "/", "**": "^"}
_END = ""


def value_of_expression(text: str) -> Fraction | None:
    """The value, or None where the text is no expression, has no value or leaves the bounds."""
    if len(text) > LONGEST_EXPRESSION:
        return None
    tokens = _tokens_of(text.strip(" \t\r\n"))
    if tokens is None:
        return None
    try:
        return _Parser(tokens).value()
    except _NoValueError:
        return None


def fraction_text(value: Fraction) -> str:
    """For people: "1200", "0.125", and "1/3" where no finite decimal exists."""
    rest = value.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    places = max(twos, fives)
    if rest != 1 or places > _MOST_PLACES:
        return f"{value.numerator}/{value.denominator}"
    scaled = abs(value.numerator) * 10**places // value.denominator
    digits = str(scaled).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    if not places:
        return sign + digits
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


_MOST_PLACES = 30


class _NoValueError(Exception):
    """The text has no value within the bounds."""


def _tokens_of(text: str) -> list[str] | None:
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        number, symbol = match.groups()
        tokens.append(number if number is not None else _SPELLINGS.get(symbol, symbol))
        at = match.end()
    tokens.append(_END)
    return tokens


class _Parser:
    """Recursive descent over at most LONGEST_EXPRESSION tokens, DEEPEST_NESTING levels deep."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def value(self) -> Fraction:
        result = self._sum()
        if self._next() != _END:
            raise _NoValueError
        return result

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _sum(self) -> Fraction:
        result = self._product()
        while (sign := self._peek()) in ("+", "-"):
            self._at += 1
            operand = self._product()
            result = _bounded(result + operand if sign == "+" else result - operand)
        return result

    def _product(self) -> Fraction:
        result = self._signed()
        while (sign := self._peek()) in ("*", "/"):
            self._at += 1
            operand = self._signed()
            if sign == "*":
                result = _bounded(result * operand)
            elif operand:
                result = _bounded(result / operand)
            else:
                raise _NoValueError
        return result

    def _signed(self) -> Fraction:
        self._depth += 1
        if self._depth > DEEPEST_NESTING:
            raise _NoValueError
        sign = self._peek()
        if sign in ("+", "-"):
            self._at += 1
            operand = self._signed()
            result = -operand if sign == "-" else operand
        else:
            result = self._power()
        self._depth -= 1
        return result

    def _power(self) -> Fraction:
        base = self._atom()
        if self._peek() != "^":
            return base
        self._at += 1
        return _power_of(base, self._signed())

    def _atom(self) -> Fraction:
        symbol = self._next()
        if symbol == "(":
            result = self._sum()
            if self._next() != ")":
                raise _NoValueError
            return result
        if symbol[:1].isdigit() or symbol[:1] == ".":
            return _bounded(Fraction(symbol))
        raise _NoValueError


def _bounded(value: Fraction) -> Fraction:
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LARGEST_BITS:
        raise _NoValueError
    return value


def _power_of(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or (exponent < 0 and not base):
        raise _NoValueError
    if base in (0, 1):
        return Fraction(1) if not exponent else base
    if base == -1:
        return Fraction(-1 if exponent % 2 else 1)
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if (bits - 1) * abs(exponent) > LARGEST_BITS:
        raise _NoValueError
    return _bounded(base**exponent.numerator)
