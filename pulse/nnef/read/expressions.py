"""Evaluate expressions of a document; two functions handle operators between tensors, and calls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pulse.dim import TDim
from pulse.errors import DimError
from pulse.nnef.read.arithmetic import apply_operator
from pulse.nnef.read.node import NnefValue, NnefWire
from pulse.nnef.read.position import Position
from pulse.nnef.syntax import (
    Binary,
    Call,
    Comprehension,
    Conditional,
    Expression,
    Name,
    Subrange,
    Subscript,
    Unary,
)
from pulse.support.budget import Spending
from pulse.support.printable import printable

BINARY_OPERATORS: Mapping[str, str] = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "^": "pow", "<": "lt", "<=": "le", ">": "gt", ">=": "ge",
    "==": "eq", "!=": "ne", "&&": "and", "||": "or",
}  # fmt: skip
"""Signs between tensors -> operators."""
UNARY_OPERATORS: Mapping[str, str] = {"-": "neg", "!": "not"}
"""Signs before a tensor -> operators."""

Operate: TypeAlias = Callable[[str, Sequence[NnefValue], Position], NnefValue]
"""(operator, operands, their position) -> the result."""
CallReader: TypeAlias = Callable[[Call, Position], NnefValue]


class Evaluator:
    """Values of expressions.

    symbols   the symbols of the file, which any expression may name
    spending  what lists unfold to is counted here
    operate, call  compute an operator between tensors, and a call
    """

    def __init__(
        self, symbols: Mapping[str, TDim], spending: Spending, operate: Operate, call: CallReader
    ) -> None:
        self._symbols, self._spending, self._operate, self._call = symbols, spending, operate, call

    def value(self, expression: Expression, position: Position) -> NnefValue:
        """Return the value of an expression. Raises LoadError: it has no value."""
        match expression:
            case bool() | int() | float() | str():
                return expression
            case Name():
                return self._name(expression.text, position)
            case list():
                return [self.value(part, position.part(index)) for index, part in enumerate(expression)]
            case tuple():
                return tuple(self.value(part, position.part(index)) for index, part in enumerate(expression))
            case Call():
                return self._call(expression, position)
            case Unary():
                return self._unary(expression, position)
            case Binary():
                return self._binary(expression, position)
            case Conditional():
                condition = self.value(expression.condition, position.part(0))
                if not isinstance(condition, bool):
                    raise position.error("the condition of if is not known before running; use select")
                return self.value(expression.value if condition else expression.other, position)
            case Subscript():
                return self._index(expression, position)
            case Subrange():
                return self._subrange(expression, position)
            case Comprehension():
                return self._comprehension(expression, position)

    def _name(self, name: str, position: Position) -> NnefValue:
        if name in position.scope:
            return position.scope[name]
        if name in self._symbols:
            return self._symbols[name]
        raise position.error(f"{printable(name)} is not known; it must be assigned above")

    def _integer(self, expression: Expression, position: Position) -> int:
        value = self.value(expression, position.part(1))
        if isinstance(value, bool) or not isinstance(value, int):
            raise position.error("an integer is expected")
        return value

    def _index(self, expression: Subscript, position: Position) -> NnefValue:
        values = self.value(expression.values, position.part(0))
        index = self._integer(expression.index, position)
        if not isinstance(values, list | tuple) or not -len(values) <= index < len(values):
            raise position.error(f"there is no entry {index}")
        return values[index]

    def _subrange(self, expression: Subrange, position: Position) -> NnefValue:
        values = self.value(expression.values, position.part(0))
        start, stop = (
            None if bound is None else self._integer(bound, position)
            for bound in (expression.start, expression.stop)
        )
        if not isinstance(values, list | tuple | str):
            raise position.error("only lists have ranges")
        return values[start:stop]

    def _unary(self, expression: Unary, position: Position) -> NnefValue:
        x, sign = self.value(expression.operand, position.part(0)), expression.sign
        if sign == "!" and isinstance(x, bool):
            return not x
        if isinstance(x, int | float | TDim) and not isinstance(x, bool) and sign in "+-":
            return -x if sign == "-" else x
        if isinstance(x, NnefWire) and sign in "+-!":
            return x if sign == "+" else self._operate(UNARY_OPERATORS[sign], [x], position)
        raise position.error(f"{sign} has no meaning before this")

    def _binary(self, expression: Binary, position: Position) -> NnefValue:
        left = self.value(expression.left, position.part(0))
        right = self.value(expression.right, position.part(1))
        sign = expression.sign
        if isinstance(left, NnefWire) or isinstance(right, NnefWire):
            if sign not in BINARY_OPERATORS:
                raise position.error(f"{sign} has no meaning between tensors")
            return self._operate(BINARY_OPERATORS[sign], [left, right], position)
        try:
            return apply_operator(left, sign, right)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError, DimError) as error:
            raise position.error(f"{sign} cannot be computed here ({printable(str(error))})") from error

    def _comprehension(self, expression: Comprehension, position: Position) -> list[NnefValue]:
        lists: list[list[NnefValue]] = []
        for _, iterable in expression.loops:
            items = self.value(iterable, position.part(0))
            if not isinstance(items, list):
                raise position.error("for iterates over lists")
            lists.append(items)
        if len({len(entries) for entries in lists}) != 1:
            raise position.error("the lists of a for have different lengths")
        results: list[NnefValue] = []
        for index, values in enumerate(zip(*lists)):
            self._spending.take_nodes(1, position.title)
            names = {name: value for (name, _), value in zip(expression.loops, values)}
            item = replace(position, scope={**position.scope, **names}).part(index)
            if expression.condition is not None:
                condition = self.value(expression.condition, item)
                if not isinstance(condition, bool):
                    raise position.error("the condition of a for must be true or false")
                if not condition:
                    continue
            results.append(self.value(expression.result, item))
        return results
