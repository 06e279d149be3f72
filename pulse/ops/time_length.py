"""The length of a stream as a tensor."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.facts import I64, Array, TypedFact
from pulse.ops.clock import Clock
from pulse.ops.op import Env
from pulse.ops.stateful import Stateful
from pulse.support.bounds import FAR_END
from pulse.support.record import record


@record
class StreamEnd(Stateful):
    """The number of frames of the stream.

    Output   y scalar, i64; offline ``frames``, in a stream ``FAR_END`` until it ends
    """

    frames: TDim
    steps = 0

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(I64, ())]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        frames = FAR_END if clock.end is None else clock.frames(self.frames)
        return [np.array(frames, np.int64)]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        return [np.array(self.frames.eval(env), np.int64)]

    def detail(self) -> str:
        return str(self.frames)
