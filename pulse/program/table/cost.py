"""The cost of an instruction: the bytes of each memory that it touches, and its multiply-adds, from its declaration.

Each byte counts once, however often a kernel reads it. The cost is for a pulse in the middle of a stream, without
work at its ends, such as to load an initial state. So the bytes are the minimum that the memory must deliver. A
multiply-add is one term of a sum of products; elementwise functions have none.
"""

from math import prod

from pulse.program.table.emitted import EmittedInstruction
from pulse.program.table.memory import Region, TensorView
from pulse.support.record import record


@record
class Cost:
    """The memory that one run touches, and its multiply-adds.

    weights      bytes of the shared weights, read; includes tables of offsets
    state        bytes of the stream's memory, read and written
    arena        bytes of the arena, read and written
    multiply_adds  terms of sums of products
    """

    weights: int = 0
    state: int = 0
    arena: int = 0
    multiply_adds: int = 0

    @property
    def bytes(self) -> int:
        """The bytes of operands in all memories."""
        return self.weights + self.state + self.arena

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.weights + other.weights,
            self.state + other.state,
            self.arena + other.arena,
            self.multiply_adds + other.multiply_adds,
        )


@record
class RowNote:
    """An instruction in reports: its node and op, kernel and cost."""

    node: str
    op: str
    kernel: str
    cost: Cost


def touched_bytes(value: TensorView) -> int:
    """Return the bytes of a tensor's distinct elements; those repeated by a stride of zero count once."""
    sizes = [size for size, step in zip(value.shape, value.strides) if step or not size]
    return prod(sizes) * value.dtype.itemsize


def cost_of(row: EmittedInstruction) -> Cost:
    """Return the cost of an instruction."""
    totals, parts = dict.fromkeys(Region, 0), row.instruction.touched_bytes()
    for name, spec, value in row.instruction.operands():
        assert isinstance(value, TensorView), f"{name} is not an operand"
        totals[value.buffer.region] += spec.touched * parts.get(name, touched_bytes(value))
    adds = row.instruction.multiply_adds()
    state = totals[Region.STATE] + totals[Region.WINDOWS]
    return Cost(totals[Region.WEIGHTS], state, totals[Region.ARENA], adds)
