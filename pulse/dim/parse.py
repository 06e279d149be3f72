"""Parse dims from text in the form that ``str`` writes."""

from __future__ import annotations

import re
from collections.abc import Callable

from pulse.dim.canonical import broadcast, dim_max, dim_min, eq, ge, gt
from pulse.dim.names import RESERVED, SYMBOL_NAME
from pulse.dim.tdim import DimScope, Symbol, TDim
from pulse.errors import DimError

FUNCTIONS: dict[str, Callable[..., TDim]] = dict(zip(RESERVED, (dim_min, dim_max, broadcast)))
RELATIONS: dict[str, Callable[[TDim, TDim], TDim]] = {
    ">=": ge,
    ">": gt,
    "<=": lambda a, b: ge(b, a),
    "<": lambda a, b: gt(b, a),
    "==": eq,
    "!=": lambda a, b: 1 - eq(a, b),
}
MAX_NESTING = 64
"""Maximum depth of brackets, calls and signs; no dim that a person writes has as many."""
MAX_DIGITS = 18
"""A longer number is an error: it would not fit into 64 bits."""
TOKEN = re.compile(rf"\s*(\d+|{SYMBOL_NAME.pattern}|`[^`]+`|//|>=|<=|==|!=|[-+*/%()<>,]|\Z)")


def parse(text: str, scope: DimScope) -> TDim:
    """Parse an expression; ``/`` and ``//`` are floor division. Raises DimError: it is not one."""
    reader = _Reader(text, scope)
    dim = reader.relation()
    if reader.token:
        raise reader.fault("an operator or the end")
    return dim


class _Reader:
    """A recursive descent parser of one text."""

    def __init__(self, text: str, scope: DimScope) -> None:
        self.text, self.scope = text, scope
        self.start = self.end = self.nested = 0
        self.token = ""
        self.advance()

    def fault(self, expected: str) -> DimError:
        token = repr(self.token) if self.token else "the end"
        return DimError(f"cannot read {self.text!r}: found {token} at {self.start}, expected {expected}")

    def advance(self) -> str:
        previous = self.token
        match = TOKEN.match(self.text, self.end)
        if match is None:
            remaining_text = self.text[self.end :].lstrip()
            raise DimError(f"cannot read {self.text!r}: {remaining_text[:12]!r} is not part of a dimension")
        self.token, self.start, self.end = match[1], match.start(1), match.end()
        return previous

    def expect(self, token: str) -> None:
        if self.token != token:
            raise self.fault(repr(token))
        self.advance()

    def relation(self) -> TDim:
        left = self.sum()
        if self.token in RELATIONS:
            sign = self.advance()
            left = RELATIONS[sign](left, self.sum())
        return left

    def sum(self) -> TDim:
        total = self.product()
        while self.token in ("+", "-"):
            sign = self.advance()
            term = self.product()
            total = total + term if sign == "+" else total - term
        return total

    def product(self) -> TDim:
        value = self.read_signed()
        while self.token in ("*", "/", "//", "%"):
            sign = self.advance()
            right = self.read_signed()
            value = value * right if sign == "*" else value % right if sign == "%" else value // right
        return value

    def read_signed(self) -> TDim:
        self.nested += 1
        if self.nested > MAX_NESTING:
            raise self.fault(f"no more than {MAX_NESTING} brackets and signs inside each other")
        if self.token in ("-", "+"):
            value = -self.read_signed() if self.advance() == "-" else self.read_signed()
        else:
            value = self.primary()
        self.nested -= 1
        return value

    def primary(self) -> TDim:
        if self.token == "(":
            self.advance()
            value = self.relation()
            self.expect(")")
            return value
        if self.token.isdigit():
            if len(self.token) > MAX_DIGITS:
                raise self.fault(f"a number of at most {MAX_DIGITS} digits")
            return TDim.of(int(self.advance()))
        if self.token in FUNCTIONS:
            return self.call(FUNCTIONS[self.advance()])
        if self.token.startswith("`") or SYMBOL_NAME.fullmatch(self.token):
            return TDim.of(self.symbol(self.advance()))
        raise self.fault("a number, a symbol or '('")

    def symbol(self, token: str) -> Symbol:
        return self.scope.symbol(token.strip("`"))

    def call(self, function: Callable[..., TDim]) -> TDim:
        self.expect("(")
        args = [self.relation()]
        while self.token == ",":
            self.advance()
            args.append(self.relation())
        self.expect(")")
        return function(*args)
