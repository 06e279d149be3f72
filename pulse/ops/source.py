"""The ops that begin wires: inputs and constants."""

from collections.abc import Sequence

import numpy as np

from pulse.errors import PulseError
from pulse.facts import Array, TypedFact, is_symbolic
from pulse.ops.op import Env, Op
from pulse.support.record import record


@record(eq=False)
class Source(Op):
    """An input of the model; its value is fed."""

    fact: TypedFact
    copies = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [self.fact]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        raise PulseError("a source has no value until it is fed; give a value for this input")

    def detail(self) -> str:
        return str(self.fact)


@record(eq=False)
class Const(Op):
    """A tensor known before running; of TDim if it depends on a length."""

    value: Array
    copies = True

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact.of(self.value)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        if not is_symbolic(self.value):
            return [self.value]
        numbers = [dim if isinstance(dim, int) else dim.eval(env) for dim in self.value.ravel().tolist()]
        return [np.array(numbers, dtype=np.int64).reshape(self.value.shape)]
