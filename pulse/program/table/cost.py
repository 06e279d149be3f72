"""The cost of an instruction: bytes of each memory that it touches, and multiply-adds, both from its declaration.

Bytes are counted once however often a kernel reads them, as in a run in the middle of a stream: what a kernel does at
the first pulse only (to load a state that an input gives) or beyond the ends of the stream is left out. So they are
the least that the memory must deliver. A multiply-add is one term of a sum of products; functions of single elements
count none.
"""

from math import prod

from pulse.program.table.emitted import Emitted
from pulse.program.table.memory import Region, Value
from pulse.record import record


@record
class Cost:
    """What one run touches and computes.

    weights      bytes of the shared weights, read; tables of offsets count among them
    state        bytes of the stream's memory, read and written
    arena        bytes of scratch, read and written
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
    """What is reported of an instruction: the node and the op that it belongs to, its kernel, what it costs."""

    node: str
    op: str
    kernel: str
    cost: Cost


def touched_bytes(value: Value) -> int:
    """Bytes of the elements of a tensor, those that a stride of zero repeats once."""
    sizes = [size for size, step in zip(value.shape, value.strides) if step or not size]
    return prod(sizes) * value.dtype.itemsize


def cost_of(row: Emitted) -> Cost:
    """What an instruction costs."""
    totals, parts = dict.fromkeys(Region, 0), row.instruction.touched_bytes()
    for name, spec, value in row.instruction.operands():
        assert isinstance(value, Value), f"{name} is not an operand"
        totals[value.buffer.region] += spec.touched * parts.get(name, touched_bytes(value))
    adds = row.instruction.multiply_adds()
    return Cost(totals[Region.WEIGHTS], totals[Region.STATE], totals[Region.ARENA], adds)
