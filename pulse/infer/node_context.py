"""A node as its translator sees it: inputs, attributes, and a way to wire ops."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Self

import numpy as np

from pulse.dim import SymbolScope, TDim
from pulse.errors import LoadError
from pulse.facts import Array, DType, Shape, TypedFact, dtype_name, is_symbolic, shape_text, symbolic_text
from pulse.graph import OutletId
from pulse.infer.file_node import FileNode
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.op import Op
from pulse.ops.shape import RemoveAxis, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.ops.source import Source
from pulse.support.budget import current_spending
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire


@record(eq=False)
class NodeContext(FileNode):
    """One node while it is translated.

    ``wire_name`` is the name of its first output, given to the last op of the translation.
    ``captures`` has the values around the node that its Subgraphs read, by their names.
    """

    outputs: tuple[str, ...]
    graph: TypedGraph
    scope: SymbolScope
    captures: Mapping[str, OutletId] = field(default_factory=dict[str, OutletId])

    def fact(self, slot: int) -> TypedFact:
        """Return the known facts of an input."""
        return self.graph.fact(self.input(slot))

    def size(self, slot: int, axis: int) -> TDim:
        """Return the size of an input along an axis; negative: from the end. Raises FactError: no such axis."""
        shape = self.fact(slot).shape
        return shape[self.axis(axis, len(shape))]

    def value(self, slot: int) -> Array | None:
        """Return the value of an input, an array of numbers or of TDim; None if unknown."""
        return self.fact(slot).value

    def numbers(self, slot: int, subject: str) -> Array:
        """Return the value of an input. Raises LoadError: it is not known, or depends on a symbol."""
        value = self.value(slot)
        if value is None:
            raise self.error(f"its {subject} is computed while running; only a constant is supported")
        if is_symbolic(value):
            raise self.error(
                f"its {subject} {symbolic_text(value)} depends on a length; only a constant is supported"
            )
        return value

    def scalar(self, slot: int, subject: str) -> Any:
        """Return the one number of an input. Raises LoadError: not a constant, or several numbers."""
        value = self.numbers(slot, subject)
        if value.size != 1:
            raise self.error(f"its {subject} must be one number, got shape {list(value.shape)}")
        return value.reshape(()).item()

    def integer_at(self, slot: int, subject: str) -> int:
        """Return the one number of an input. Raises LoadError: not a constant 64-bit integer."""
        number = self.scalar(slot, subject)
        if number != number or abs(number) >= 1 << 63 or number != int(number):
            raise self.error(f"its {subject} {number} is not a 64-bit integer")
        return int(number)

    def take_elements(self, size: int, subject: str) -> int:
        """Take elements that are to be computed while the model is read. Raises LoadError: they are too many."""
        if size < 0:
            raise self.error(f"its {subject} is {size}, which is negative")
        reason = current_spending().try_elements(size)
        if reason:
            raise self.error(f"its {subject} is {size}: {reason}")
        return size

    def try_take_elements(self, size: int) -> bool:
        """Return whether this many elements may be computed while the model is read; they are taken then."""
        return not current_spending().try_elements(size)

    def require_rank(self, slot: int, ranks: Sequence[int], subject: str) -> None:
        """Require a number of axes of an input. Raises LoadError: it has another one."""
        fact = self.fact(slot)
        if fact.rank not in ranks:
            raise self.error(
                f"its {subject} of shape {shape_text(fact.shape)} must have {' or '.join(map(str, ranks))} axes"
            )

    def require_floats(self, slot: int) -> None:
        """Require a float input. Raises LoadError: it has another type."""
        dtype = self.fact(slot).dtype
        if not np.issubdtype(dtype, np.floating):
            raise self.error(f"its input {slot} is {dtype_name(dtype)}; only floats are supported")

    def error(self, message: str) -> LoadError:
        """Return a LoadError that names the node, and earlier computations that exceeded the budget."""
        not_folded = current_spending().not_folded
        if not not_folded:
            return super().error(message)
        reads = [outlet for outlet in (*self.inputs, *self.captures.values()) if outlet is not None]
        names = (self.graph.nodes[node_id].name for node_id in self.graph.order(reads))
        reason = next((not_folded[name] for name in names if name in not_folded), None)
        return super().error(message if reason is None else f"{message}. {reason}")

    def integers(self, slot: int, subject: str) -> list[int]:
        """Return the integers of an input. Raises LoadError: not a constant."""
        return [int(number) for number in self.numbers(slot, subject).ravel().tolist()]

    def dims(self, slot: int, subject: str) -> Shape:
        """Return the integers of an input, which may depend on symbols. Raises LoadError: unknown, or not integers."""
        value = self.value(slot)
        if value is None:
            nodes = [self.graph.nodes[node_id] for node_id in self.graph.order([self.input(slot)])]
            data = [f"input {node.name}" for node in nodes if isinstance(node.op, Source)]
            cause = (
                f"from the values of {', '.join(data)}"
                if data
                else "while running (through floats, or from data)"
            )
            cache = "; give a cache its full size, and a mask of what is not there yet" if data else ""
            raise self.error(
                f"its {subject} is computed {cause}; only constants and integer arithmetic on shapes are "
                f"supported{cache}"
            )
        if not is_symbolic(value) and not np.issubdtype(value.dtype, np.integer):
            raise self.error(f"its {subject} must be integers")
        return tuple(TDim.of(dim) for dim in value.ravel().tolist())

    def end_amounts(self, slot: int, axes: int, subject: str) -> list[tuple[TDim, TDim]]:
        """Return what is added or cut before and after each axis, from an input.

        Raises LoadError: as in ``dims``, or they are not two for each axis, or one is negative
        """
        amounts = self.dims(slot, subject)
        if len(amounts) != 2 * axes:
            raise self.error(f"{len(amounts)} {subject} for {count_of(axes, 'axis', 'axes')}")
        if any(amount.prove_ge(0).no for amount in amounts):
            raise self.error(f"its {subject} are negative: {', '.join(map(str, amounts))}")
        return list(zip(amounts[::2], amounts[1::2]))

    def with_name(self, wire_name: str) -> Self:
        """Return the same node, with another name for its wires."""
        return replace(self, wire_name=wire_name)

    def wire(self, op: Op, inputs: Sequence[OutletId], suffix: str = "") -> OutletId:
        """Add an op with one output; the last op of a node has no suffix. Raises FactError: the inputs do not fit."""
        name = f"{self.wire_name}.{suffix}" if suffix else self.wire_name
        return wire(self.graph, name, op, inputs)[0]

    def apply(
        self, function: str, *operands: OutletId | float, suffix: str = "", params: Sequence[float] = ()
    ) -> OutletId:
        """Add an elementwise function; numbers become constants of the type of the last wire."""
        like = self.graph.fact([operand for operand in operands if isinstance(operand, OutletId)][-1])
        wires = [
            operand
            if isinstance(operand, OutletId)
            else self.scalar_constant(operand, like, f"{suffix or function}.number")
            for operand in operands
        ]
        return self.wire(Elementwise(function, tuple(params)), wires, suffix)

    def name_result(self, outlet: OutletId) -> OutletId:
        """Give the last wire of a translation the node's name, unless others already read it by its own."""
        producer = self.graph.node(outlet)
        around = (*self.inputs, *self.captures.values())
        if outlet not in around and len(producer.outputs) == 1 and producer.name != self.wire_name:
            self.graph.rename(producer.id, self.wire_name)
        return outlet

    def cast(self, x: OutletId, dtype: DType, suffix: str = "") -> OutletId:
        """Cast a wire to a type; return the wire itself if it has that type."""
        return x if self.graph.fact(x).dtype == dtype else self.wire(Cast(dtype), [x], suffix)

    def as_scalar(self, x: OutletId, subject: str) -> OutletId:
        """Return a wire of one element as a scalar. Raises LoadError: it has more or fewer elements."""
        fact = self.graph.fact(x)
        if fact.rank == 0:
            return x
        if any(dim != 1 for dim in fact.shape):
            raise self.error(f"its {subject} must be one value, got {fact}")
        return self.wire(Reshape(()), [x], subject)

    def transpose(self, x: OutletId, perm: Sequence[int], suffix: str = "") -> OutletId:
        """Transpose axes; return the wire itself if their order is unchanged."""
        return x if list(perm) == list(range(len(perm))) else self.wire(Transpose(tuple(perm)), [x], suffix)

    def remove_axes(self, x: OutletId, axes: Sequence[int] | None, rank: int) -> OutletId:
        """Remove the axes of size 1 that are listed, or all such axes if None; only the first ``rank`` axes count.

        Raises FactError: one is out of range; LoadError: one is named twice
        """
        if axes is None:
            axes = [axis for axis, dim in enumerate(self.graph.fact(x).shape[:rank]) if dim == 1]
        numbers = self.axes(axes, rank)
        for axis in reversed(numbers):
            x = self.wire(RemoveAxis(axis), [x], "" if axis == numbers[0] else f"axis{axis}")
        return x

    def entry(self, x: OutletId, axis: int, index: int, suffix: str = "") -> OutletId:
        """Return one entry of an axis, without the axis."""
        cut = self.wire(Slice(axis, TDim.of(index), TDim.of(index + 1)), [x], f"{suffix or 'entry'}_cut")
        return self.wire(RemoveAxis(axis), [cut], suffix)

    def clip(self, x: OutletId, low: float | OutletId, high: float | OutletId, suffix: str = "") -> OutletId:
        """Limit a wire to a range; ``high`` if that is below ``low``."""
        floor = self.apply("max", x, low, suffix=f"{suffix or 'clip'}.floor")
        return self.apply("min", floor, high, suffix=suffix)

    def condition(self, x: OutletId, by_rows: bool) -> OutletId:
        """Return the first input, which chooses elements of x; ``by_rows``: of one axis, it chooses its rows."""
        shape, rank = self.fact(0).shape, self.graph.fact(x).rank
        if not by_rows or len(shape) != 1 or rank <= 1:
            return self.input(0)
        return self.wire(Reshape((*shape, *(TDim.of(1),) * (rank - 1))), [self.input(0)], "rows")

    def complex_part(self, x: OutletId, part: int, suffix: str | None = None) -> OutletId:
        """Return the real (0) or imaginary (1) part of a wire whose last axis has the two."""
        return self.entry(x, self.graph.fact(x).rank - 1, part, f"part{part}" if suffix is None else suffix)

    def floor_quotient(self, x: OutletId, y: OutletId) -> OutletId:
        """Wire a quotient rounded down, which ONNX has no operator for but other formats have."""
        facts = [self.graph.fact(x), self.graph.fact(y)]
        if np.issubdtype(facts[0].dtype, np.floating):
            return self.apply("floor", self.apply("div", x, y, suffix="quotient"))
        if any(fact.value is not None and is_symbolic(fact.value) for fact in facts):
            return self.apply("div", x, y)  # of sizes, it rounds down
        remainder = self.apply("mod", x, y, suffix="remainder")
        return self.apply("div", self.apply("sub", x, remainder, suffix="multiple"), y)

    def constant(self, value: Array, suffix: str = "") -> OutletId:
        """Add a constant."""
        return add_constant(self.graph, f"{self.wire_name}.{suffix}" if suffix else self.wire_name, value)

    def dims_constant(self, dims: Sequence[TDim], suffix: str = "") -> OutletId:
        """Add a list of dims as an i64 constant; as plain numbers if it depends on no symbol."""
        if all(dim.is_const for dim in dims):
            numbers = [int(dim) for dim in dims]
            if any(abs(number) >= 1 << 63 for number in numbers):
                raise self.error(f"the sizes {numbers} do not fit into 64 bits")
            return self.constant(np.array(numbers, dtype=np.int64), suffix)
        value = np.empty(len(dims), dtype=object)
        value[:] = list(dims)
        return self.constant(value, suffix)

    def dim_constant(self, dim: TDim, suffix: str = "") -> OutletId:
        """Add one dim as an i64 constant; as a plain number if it depends on no symbol."""
        value: Array = np.array(int(dim), np.int64) if dim.is_const else np.array(dim, dtype=object)
        return self.constant(value, suffix)

    def scalar_constant(self, number: float, like: TypedFact, suffix: str) -> OutletId:
        """Add one number, of the type of another wire."""
        return self.constant(np.array(number, dtype=like.dtype), suffix)
