"""The length of a stream as a tensor."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.facts import Array, TypedFact
from pulse.ops.stateful import Clock, Stateful

FAR_END = 1 << 45
"""What stands for the length of a stream that has not ended: beyond any stream, and far from an overflow when a
model multiplies it."""


@dataclass(frozen=True)
class StreamEnd(Stateful):
    """How many frames of the symbol the stream has.

    Output   y scalar, i64; ``FAR_END`` as long as the stream has not ended
    """

    symbol: Symbol

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return [TypedFact(np.dtype(np.int64), ())]

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        frames = FAR_END if clock.end is None else clock.frames(TDim.of(self.symbol))
        return [np.array(frames, np.int64)]

    def detail(self) -> str:
        return self.symbol.name
