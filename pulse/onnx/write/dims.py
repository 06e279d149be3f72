"""Lengths as integer arithmetic on ONNX scalars."""

from collections.abc import Callable, Sequence

import numpy as np

from pulse.dim import TDim
from pulse.dim.atoms import Broadcast, Div, Eq, Ge, Max, Min
from pulse.dim.tdim import Atom, Symbol
from pulse.errors import WriteError
from pulse.onnx.write.graph import GraphWriter
from pulse.support.bounds import FAR_END


class DimWriter:
    """Writes dims as nodes; equal subexpressions only once.

    symbol   the wire, an i64 scalar, with the value of a symbol
    """

    def __init__(self, graph: GraphWriter, symbol: Callable[[Symbol], str]) -> None:
        self._graph = graph
        self._symbol = symbol
        self._names: dict[str, str] = {}

    def length(self, dim: TDim) -> str:
        """Compute a length as an i64 scalar; return its name. Raises WriteError: it may overflow."""
        if _largest_number(dim) >= 1 << 63:
            raise WriteError(
                f"the length {dim} may overflow 64 bits; give the model a length that is linear in time"
            )
        return self._dim(dim)

    def number(self, value: int) -> str:
        """Store an i64 scalar; return its name."""
        return self._graph.constant(np.array(value, np.int64), f"number.{value}")

    def add_op(self, op_type: str, inputs: Sequence[str], text: str) -> str:
        """Add a node, once for each ``text``; return its output."""
        if text not in self._names:
            name = self._graph.names.new(f"time.{text.replace('time.', '')}")
            self._graph.add(op_type, inputs, [name])
            self._names[text] = name
        return self._names[text]

    def _dim(self, dim: TDim) -> str:
        total = self._sum([(self._monomial(atoms), factor, _text(atoms)) for atoms, factor in dim.terms])
        if total is None:
            return self.number(dim.const)
        name, text = total
        return name if dim.const == 0 else self._plus(name, text, dim.const)

    def _plus(self, name: str, text: str, const: int) -> str:
        if const < 0:
            return self.add_op("Sub", [name, self.number(-const)], f"{text}{const}")
        return self.add_op("Add", [name, self.number(const)], f"{text}+{const}")

    def _sum(self, terms: Sequence[tuple[str, int, str]]) -> tuple[str, str] | None:
        """Return the sum of the terms, negative ones last."""
        total: tuple[str, str] | None = None
        for name, factor, text in sorted(terms, key=lambda term: term[1] < 0):
            size = abs(factor)
            if size != 1:
                text = f"{size}*{text}"
                name = self.add_op("Mul", [name, self.number(size)], text)
            if total is None:
                total = (name, text) if factor > 0 else (self.add_op("Neg", [name], f"-{text}"), f"-{text}")
            else:
                sign, op_type = ("+", "Add") if factor > 0 else ("-", "Sub")
                expression = f"{total[1]}{sign}{text}"
                total = (self.add_op(op_type, [total[0], name], expression), expression)
        return total

    def _monomial(self, atoms: Sequence[Atom]) -> str:
        name = self._atom(atoms[0])
        for count in range(1, len(atoms)):
            name = self.add_op("Mul", [name, self._atom(atoms[count])], _text(atoms[: count + 1]))
        return name

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Symbol():
                return self._symbol(atom)
            case Div():
                return self._quotient(atom)
            case Min() | Max():
                op_type = "Min" if isinstance(atom, Min) else "Max"
                return self.add_op(op_type, [self._dim(option) for option in atom.options], atom.text)
            case Broadcast():
                return self._broadcast(atom)
            case Ge():
                return self._truth("GreaterOrEqual", atom.diff, atom.text)
            case Eq():
                return self._truth("Equal", atom.diff, atom.text)
            case _:
                raise WriteError(f"the length {atom.text} cannot be expressed in ONNX")

    def _quotient(self, atom: Div) -> str:
        """Return a floored quotient: ONNX rounds towards zero, so a negative numerator first becomes a multiple."""
        over, under = self._dim(atom.num), self.number(atom.k)
        minimum = atom.num.bounds()[0]
        if minimum is None or minimum < 0:
            remainder = self.add_op("Mod", [over, under], f"({atom.num})%{atom.k}")
            over = self.add_op("Sub", [over, remainder], f"({atom.num})-%{atom.k}")
        return self.add_op("Div", [over, under], atom.text)

    def _broadcast(self, atom: Broadcast) -> str:
        """Return the largest option, or 0 if one is 0: of sizes that are 1 or agree."""
        sizes = [self._dim(option) for option in atom.options]
        small, large = (self.add_op(op_type, sizes, f"{op_type}.{atom.text}") for op_type in ("Min", "Max"))
        nothing = self._as_integer(
            self.add_op("Greater", [small, self.number(0)], f"{atom.text}>0"), f"{atom.text}>0"
        )
        return self.add_op("Mul", [large, nothing], atom.text)

    def _truth(self, op_type: str, diff: TDim, text: str) -> str:
        condition = self.add_op(op_type, [self._dim(diff), self.number(0)], f"{text}?")
        return self._as_integer(condition, text)

    def _as_integer(self, condition: str, text: str) -> str:
        return self.add_op("Where", [condition, self.number(1), self.number(0)], f"{text}:1")


def _text(atoms: Sequence[Atom]) -> str:
    return "*".join(atom.text for atom in atoms)


def _largest_number(dim: TDim) -> int:
    """Return a bound of all intermediate numbers, with symbols of at most FAR_END."""
    total = abs(dim.const)
    for atoms, factor in dim.terms:
        size = abs(factor)
        for atom in atoms:
            size *= FAR_END if isinstance(atom, Symbol) else max([1, *map(_largest_number, atom.args)])
        total += size
    return total
