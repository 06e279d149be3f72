"""Operations from outside the package: one with its own kernel, one that fails."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pulse.extend import (
    Array,
    Clock,
    Cumulative,
    Env,
    Op,
    Pointwise,
    Relation,
    Stateful,
    TDim,
    TypedFact,
)
from pulse.extend.kernels import (
    Instruction,
    Lowering,
    Operand,
    PulsedNode,
    TensorView,
    kernel,
    lowers,
    reads,
    writes,
)


@dataclass(frozen=True)
class Doubled(Op):
    """y = 2 x."""

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(inputs[0].dtype, inputs[0].shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [inputs[0] + inputs[0]]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        assert axes[0] is not None
        return Pointwise((axes[0],))


class Doubling(Instruction):
    """y[:n] = 2 x[:n]."""

    y: Operand = writes("f32", "n")
    x: Operand = reads("f32", "n")
    n: int


@kernel
def tests_doubled(row: Doubling) -> None:
    """Double one element after the other."""
    y, x = row.y, row.x
    for i in range(row.n):
        y[i] = x[i] + x[i]


@lowers(Doubled)
def lower_doubled(lowering: Lowering, node: PulsedNode, op: Doubled) -> list[TensorView]:
    """Emit a single row."""
    x = lowering.value(node.inputs[0])
    x = lowering.order_axes(x, x.order)
    y = lowering.allocate_temporary(x.shape, x.dtype, x.order)
    lowering.emit(Doubling(y=y, x=x, n=x.size))
    return [y]


TOO_LOUD = 1e6


class TooLoudError(Exception):
    """An error that an operation may raise."""


@dataclass(frozen=True)
class Total(Op):
    """y[..., t] = the sum of x[..., :t+1]. Raises TooLoudError in the middle of its work."""

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(inputs[0].dtype, inputs[0].shape)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [np.cumsum(inputs[0], -1, dtype=inputs[0].dtype)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        sizes = tuple(int(dim) for dim in inputs[0].shape[:-1])

        def make_total(offset: int, length: TDim, past: Sequence[Array] | None) -> "TotalPulses":
            return TotalPulses(sizes)

        return Cumulative((axes[0],), make_total)


@dataclass(frozen=True)
class TotalPulses(Stateful):
    """A running sum; it writes into the array of its state."""

    sizes: tuple[int, ...]

    def initial_state(self) -> list[Array]:
        return [np.zeros(self.sizes, np.float32)]

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(inputs[0].dtype, inputs[0].shape)]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        y = np.empty_like(inputs[0])
        for frame in range(y.shape[-1]):
            state[0] += inputs[0][..., frame]
            if abs(inputs[0][..., frame]).max() > TOO_LOUD:
                raise TooLoudError
            y[..., frame] = state[0]
        return [y]
