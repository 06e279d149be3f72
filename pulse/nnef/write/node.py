"""A node of ONNX as its writer sees it: identifiers and facts of its inputs, and a way to add assignments."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pulse.errors import WriteError
from pulse.facts import F32, I64, Array, DType, dtype_name
from pulse.nnef.syntax import Call, Expression, Name
from pulse.nnef.write.graph import Scope, SizeTexts
from pulse.support.record import record
from pulse.support.wording import spell


@record(eq=False)
class OperationWriter:
    """One node while it is written.

    scope            the scope to which it adds assignments
    name, op_type    its name and its operator in ONNX
    inputs, outputs  names in ONNX; empty if omitted
    attributes       attributes by name, as Python values; a body as its GraphProto
    """

    scope: Scope
    name: str
    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]

    def error(self, reason: str, advice: str) -> WriteError:
        """Return a WriteError that names the node."""
        return WriteError(f"{self.name} ({self.op_type}): NNEF and tract {reason}; {advice}")

    def attribute(self, name: str, default: Any) -> Any:
        """Return an attribute, or the default if the node has none."""
        return self.attributes.get(name, default)

    def has(self, slot: int) -> bool:
        """Return whether an optional input is present."""
        return slot < len(self.inputs) and bool(self.inputs[slot])

    def has_output(self, slot: int) -> bool:
        """Return whether an optional output is used."""
        return slot < len(self.outputs) and bool(self.outputs[slot])

    def sizes(self, slot: int = 0) -> tuple[int, ...]:
        """Return the shape of an input. Raises WriteError: it depends on a symbol."""
        return self._numbers(self.scope.fact(self.inputs[slot])[1])

    def size(self, axis: int, slot: int = 0) -> int:
        """Return the size of one axis of an input. Raises WriteError: it depends on a symbol."""
        return self._numbers(self.scope.fact(self.inputs[slot])[1][axis : axis + 1])[0]

    def rank(self, slot: int = 0) -> int:
        """Return the number of axes of an input."""
        return len(self.scope.fact(self.inputs[slot])[1])

    def dtype(self, slot: int = 0) -> DType:
        """Return the type of an input."""
        return self.scope.fact(self.inputs[slot])[0]

    def output_shape(self) -> tuple[int, ...]:
        """Return the shape of the first output. Raises WriteError: it depends on a symbol."""
        return self._numbers(self.scope.fact(self.outputs[0])[1])

    def output_rank(self, slot: int = 0) -> int:
        """Return the number of axes of an output."""
        return len(self.scope.fact(self.outputs[slot])[1])

    def _numbers(self, sizes: SizeTexts) -> tuple[int, ...]:
        numbers = tuple(size for size in sizes if isinstance(size, int))
        if len(numbers) < len(sizes):
            raise self.error("need a size that depends on a symbol", f"fix the length with {spell('inputs')}")
        return numbers

    def known_value(self, slot: int) -> Array | None:
        """Return the value of an input if it is stored."""
        return self.scope.constants.get(self.inputs[slot]) if self.has(slot) else None

    def integers(self, slot: int, subject: str) -> list[int]:
        """Return the stored integers of an input. Raises WriteError: they are computed."""
        value = self.known_value(slot)
        if value is None:
            raise self.error(f"take {subject} as constants only", f"give the model a constant for {subject}")
        return [int(number) for number in value.ravel()]

    def x(self, slot: int = 0) -> Name:
        """Return the identifier of an input."""
        return self.scope.wire(self.inputs[slot])

    def emit(self, operator: str, *inputs: Expression, suffix: str = "", **attributes: Expression) -> Name:
        """Add an assignment with one target; without a suffix it is named after the node's first output."""
        return self.assign(Call(operator, inputs, tuple(attributes.items())), suffix)

    def apply(self, operator: str, *operands: Expression, suffix: str = "") -> Name:
        """Add a function of elements; numbers get the type of the node's first input."""
        dtype = self.dtype()
        inputs = [
            self.number(operand, dtype)
            if isinstance(operand, int | float) and not isinstance(operand, bool)
            else operand
            for operand in operands
        ]
        return self.emit(operator, *inputs, suffix=suffix)

    def assign(self, call: Call, suffix: str = "") -> Name:
        """Add an assignment of an existing call; see ``emit``."""
        target = self.scope.shared.identifier(f"{self.name}.{suffix}" if suffix else self.outputs[0])
        self.scope.assign(target, call)
        return Name(target)

    def emit_all(
        self, operator: str, inputs: Sequence[Expression], suffixes: Sequence[str], **attributes: Expression
    ) -> list[Name]:
        """Add an assignment with several targets; an empty suffix means the output of that slot."""
        names = [
            f"{self.name}.{suffix}" if suffix else self.outputs[slot] for slot, suffix in enumerate(suffixes)
        ]
        targets = tuple(self.scope.shared.identifier(name) for name in names)
        call = Call(operator, tuple(inputs), tuple(attributes.items()))
        self.scope.assign(targets[0] if len(targets) == 1 else targets, call)
        return [Name(target) for target in targets]

    def tensor(self, value: Array, suffix: str) -> Name:
        """Store a tensor; return its name."""
        return self.scope.tensor(value, f"{self.name}.{suffix}")

    def number(self, value: float, dtype: DType, suffix: str = "number") -> Expression:
        """Return one number: in the text if exact there, otherwise store it."""
        entry = np.array(value).astype(dtype)
        return literal(entry) if is_writable(entry) else self.tensor(entry, suffix)

    def operand(self, slot: int, rank: int) -> Expression:
        """Return an input with leading axes of size 1 up to this rank: NNEF aligns the first axes, ONNX the last."""
        value = self.known_value(slot)
        if value is not None:
            if value.size == 1 and is_writable(value):
                return literal(value)
            return self.scope.tensor(
                value.reshape((1,) * (rank - value.ndim) + value.shape), self.inputs[slot]
            )
        missing = rank - self.rank(slot)
        x = self.x(slot)
        return self.add_axes(x, range(missing), f"operand{slot}") if missing > 0 else x

    def operands(self) -> list[Expression]:
        """Return the inputs, which broadcast to the first output."""
        rank = self.output_rank()
        operands = [self.operand(slot, rank) for slot in range(len(self.inputs))]
        if all(not isinstance(operand, Name) for operand in operands):
            value = self.known_value(0)
            assert value is not None
            operands[0] = self.scope.tensor(value, self.inputs[0])
        return operands

    # what several writers need

    def reshape(self, x: Expression, sizes: Sequence[int], suffix: str = "") -> Name:
        """Reshape: the same elements in another shape."""
        if 0 in sizes:
            raise self.error("have no tensors without elements", "give the model inputs that are not empty")
        return self.emit("reshape", x, suffix=suffix, shape=[int(size) for size in sizes])

    def add_axes(self, x: Expression, axes: Sequence[int], suffix: str = "") -> Name:
        """Insert axes of size 1."""
        return self.emit("unsqueeze", x, suffix=suffix, axes=list(axes))

    def remove_axes(self, x: Expression, axes: Sequence[int], suffix: str = "") -> Name:
        """Remove axes of size 1."""
        return self.emit("squeeze", x, suffix=suffix, axes=list(axes))

    def cast(self, x: Expression, dtype: DType, suffix: str = "") -> Name:
        """Convert to another type, as tract does."""
        return self.emit("tract_core_cast", x, suffix=suffix, to=dtype_name(dtype))

    def crop(self, x: Expression, axis: int, start: int, stop: int, suffix: str = "") -> Name:
        """Crop an axis to some frames."""
        return self.emit("slice", x, suffix=suffix, axes=[axis], begin=[start], end=[stop])

    def axis(self, default: int, rank: int) -> int:
        """Return the attribute ``axis``, not negative."""
        return int(self.attribute("axis", default)) % max(rank, 1)


def is_writable(value: Array) -> bool:
    """Return whether one entry can be written in the text: NNEF reads it in the type of the other operand."""
    if value.size != 1:
        return False
    return value.dtype == I64 or (value.dtype == F32 and bool(np.isfinite(value).all()))


def literal(value: Array) -> Expression:
    """Return the entry of a tensor of one element. A bare integer is a dimension in tract, so it gets its type."""
    entry = value.reshape(()).item()
    return float(entry) if value.dtype == F32 else Call("tract_core_cast", (int(entry),), (("to", "i64"),))
