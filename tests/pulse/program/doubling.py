"""An operation from outside of the package, with a kernel of its own."""

from collections.abc import Sequence
from dataclasses import dataclass

from pulse.extend import Array, Env, Op, Pointwise, Relation, TypedFact
from pulse.extend.kernels import Lowering, PulsedNode, Value, f32, kernel, lowers, number


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


@kernel
def tests_doubled(row, bases):  # pyright: ignore
    """y[:n] = 2 x[:n]. Arguments: y, x (operands), n."""
    y, x = f32(row, bases, 0), f32(row, bases, 1)  # pyright: ignore
    for i in range(number(row, 2)):  # pyright: ignore
        y[i] = x[i] + x[i]


@lowers(Doubled)
def lower_doubled(cx: Lowering, node: PulsedNode, op: Doubled) -> list[Value]:
    """One row."""
    x = cx.value(node.inputs[0])
    x = cx.ordered(x, x.order)
    y = cx.temporary(x.shape, x.dtype, x.order)
    cx.emit("tests_doubled", y, x, x.size)
    return [y]
