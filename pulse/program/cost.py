"""What an instruction costs by its arguments: bytes of each memory that it touches, and multiply-adds.

Bytes are counted once however often a kernel reads them, as of a run in the middle of a stream: what a kernel does at
the first pulse only (to load a state that an input gives) or beyond the ends of the stream is left out. So they are
the least that the memory must deliver. A multiply-add is one term of a sum of products; functions of single elements
count none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from pulse.program.kernels.elementwise import OPERAND_WORDS, OPERANDS
from pulse.program.lowering import Instruction, Operand
from pulse.program.memory import Region, Value

Arguments: TypeAlias = Sequence[Operand]
Count: TypeAlias = Callable[[Arguments], int]


@dataclass(frozen=True)
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
        """Of all memories."""
        return self.weights + self.state + self.arena

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.weights + other.weights,
            self.state + other.state,
            self.arena + other.arena,
            self.multiply_adds + other.multiply_adds,
        )


@dataclass(frozen=True)
class Rule:
    """How the arguments of a kernel tell its cost.

    operands       the places of operands that it reads or writes, once for each: a place that is read and written
                   stands twice
    multiply_adds  from the arguments
    parts          bytes touched of an operand, where that is not all of it
    """

    operands: Sequence[int] | Callable[[Arguments], Iterable[int]]
    multiply_adds: Count = lambda arguments: 0
    parts: Mapping[int, Count] | None = None

    def cost(self, arguments: Arguments) -> Cost:
        """The cost of a row with these arguments."""
        totals = dict.fromkeys(Region, 0)
        parts = self.parts or {}
        for place in self.operands(arguments) if callable(self.operands) else self.operands:
            value = arguments[place]
            assert isinstance(value, Value), f"argument {place} is no operand"
            totals[value.buffer.region] += parts[place](arguments) if place in parts else touched(value)
        return Cost(
            totals[Region.WEIGHTS], totals[Region.STATE], totals[Region.ARENA], self.multiply_adds(arguments)
        )


def touched(value: Value) -> int:
    """Bytes of the elements of a tensor, those that a stride of zero repeats once."""
    sizes = [size for size, step in zip(value.shape, value.strides) if step or not size]
    return prod(sizes) * value.dtype.itemsize


def cost_of(row: Instruction) -> Cost | None:
    """What an instruction costs; None where its kernel has no rule, as those of plugins may have none."""
    rule = COSTS.get(row.kernel)
    return None if rule is None else rule.cost(row.arguments)


def _numbers(arguments: Arguments, *places: int) -> list[int]:
    found = [arguments[place] for place in places]
    numbers = [number for number in found if isinstance(number, int)]
    assert len(numbers) == len(found), f"arguments {places} are not all numbers"
    return numbers


def _of(*places: int) -> Count:
    """The product of some arguments."""
    return lambda arguments: prod(_numbers(arguments, *places))


def _times(factor: int, count: Count) -> Count:
    return lambda arguments: factor * count(arguments)


def _chain(arguments: Arguments) -> Iterable[int]:
    (inputs,) = _numbers(arguments, OPERANDS - 2)
    return range(OPERANDS, OPERANDS + OPERAND_WORDS * (inputs + 1), OPERAND_WORDS)


def _fill_ends(arguments: Arguments) -> Iterable[int]:
    """The two registers only, where frames stay in their place."""
    x, y = arguments[0], arguments[1]
    assert isinstance(x, Value) and isinstance(y, Value)
    in_place = x.buffer is y.buffer and x.offset == y.offset
    return (2, 3) if in_place else (0, 1, 2, 3)


def _frames_of_ends(arguments: Arguments) -> int:
    pulse, run, size, keep = _numbers(arguments, 4, 9, 10, 18)
    return (pulse + keep) * run * size


def _attended(arguments: Arguments) -> int:
    batches, pulse, depth, width, band = _numbers(arguments, 8, 14, 19, 20, 21)
    return batches * pulse * band * (depth + width)


def _transformed(arguments: Arguments) -> int:
    """Both rounds, folded, and the complex turns between them, for each of P columns."""
    rows, n1, n2, columns = _numbers(arguments, 3, 7, 8, 9)
    bins, has_im, wants_im = _numbers(arguments, 16, 20, 21)
    first = n1 * n2 * (1 + has_im)
    second = n2 * min(-(-bins // n1), n2 // 2 + 1) * (1 + wants_im)
    return rows * columns * (first + 4 * n2 + second)


def _recurrent(gates: int, *further: int) -> Rule:
    """The head of all recurrent rows: x, weights, y, h (read and written), clock, end; T*B*H rows of H."""
    return Rule((0, 1, 2, 3, 3, 5, 6, *further), _times(gates, _of(8, 9, 10, 10)))


PACKED = {
    "product": Rule((0, 1, 2, 3, 5, 6, 8), _of(4, 7, 9, 10)),
    "rnn": _recurrent(1),
    "gru": _recurrent(3, 23),
    "gru_reset": _recurrent(3, 23, 24, 24),
    "lstm": _recurrent(4, 26, 26, 29),
}
"""Kernels whose weights may also be of bf16, or of int8 with scales as further operands, the last ones."""


def _scaled(name: str, rule: Rule) -> Rule:
    assert not callable(rule.operands)
    scales = {"gru_reset": (-1, -2), "product": (12,)}.get(name, (-1,))
    return Rule((*rule.operands, *scales), rule.multiply_adds)


COSTS: dict[str, Rule] = {
    **PACKED,
    **{f"{name}_bf16": rule for name, rule in PACKED.items()},
    **{f"{name}_int8": _scaled(name, rule) for name, rule in PACKED.items()},
    "depthwise": Rule((0, 1, 2, 3, 5, 6, 8), _of(4, 7, 9)),
    "fourier": Rule((0, 1, 2, 2, 4, 5, *range(10, 16), 17, 18, 19), _transformed),
    "matmul": Rule((0, 1, 2, 4, 5, 6), _of(3, 7, 8, 9)),
    "band_attention": Rule((0, 1, 2, 3, 4, 5, 5, 6, 7, 9, 10, 11, 12, 13), _attended),
    "chain": Rule(_chain),
    "chain64": Rule(_chain),
    "softmax_rows": Rule((0, 1, 3, 4)),
    "layernorm_rows": Rule((0, 1, 2, 3, 5, 6)),
    "pool": Rule((0, 1, 3, 4, 6)),
    "reduce_rows": Rule((0, 1, 3, 4)),
    "arg_rows": Rule((0, 1, 3, 4)),
    "top_rows": Rule((0, 1, 2, 4, 5)),
    "cumsum": Rule((0, 1, 2, 2, 6, 7, 12, 13)),
    "copy": Rule((0, 1)),
    "fill": Rule((0,), parts={0: _of(1, 2)}),
    "move": Rule((0, 1), parts={0: _of(2), 1: _of(2)}),
    "gather": Rule((0, 1, 2), parts={0: _of(3, 5, 6, 7), 2: _of(3, 5, 6, 7)}),
    "look_up_codes": Rule((0, 1, 2)),
    "scatter_rows": Rule((0, 1, 2), parts={0: _of(3, 4), 2: _of(3, 4)}),
    "fill_ends": Rule(_fill_ends, parts={0: _frames_of_ends, 1: _frames_of_ends}),
    "positions": Rule((0, 1)),
    "table_rows": Rule((0, 1, 2), parts={0: _of(3, 8, 9), 1: _of(3, 8, 9)}),
    "last_frames": Rule((0, 1, 1, 2, 3)),
    "count_faults": Rule((0, 3, 4, 5, 6)),
    "keep_frame": Rule((0, 1, 2, 3), parts={0: _of(7), 1: _of(7)}),
    "tick": Rule((0, 0)),
}
"""By kernel. A kernel of lanes costs each lane what the kernel does that it is the form of."""
