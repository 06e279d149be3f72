"""The base class of ops of pulsed models that read their own state or the time."""

from collections.abc import Sequence
from dataclasses import dataclass

from pulse.bounds import FAR
from pulse.dim import Symbol, TDim, cache_in_scope
from pulse.facts import Array, PulsedFact, TypedFact
from pulse.ops.op import Env, Op
from pulse.ops.weight_units import UnitLayout
from pulse.ops.work import Work
from pulse.record import record


@cache_in_scope
def most_frames(length: TDim) -> int:
    """The most frames that a wire of this length can have, FAR if there is no proven bound."""
    if _is_endless(length):
        return FAR
    highest = length.bounds()[1]
    return FAR if highest is None else max(0, highest)


def _is_endless(length: TDim) -> bool:
    """Whether it surely has no bound: it rises with its only symbol, which has none. Its residues need no look."""
    if len(length.symbols) != 1:
        return False
    (symbol,) = length.symbols
    return TDim.of(symbol).bounds()[1] is None and length.slope(symbol) > 0


@dataclass
class Clock:
    """The two registers of a running stream.

    pulse   how many pulses came before this one
    end     frames of the symbol in the whole stream, None as long as it has not ended
    last    the number of the last pulse, None as long as the stream has not ended
    """

    symbol: Symbol
    pulse: int = 0
    end: int | None = None
    last: int | None = None

    def frames(self, length: TDim) -> int:
        """A wire's length; as long as the stream has not ended, the most that it can be."""
        return most_frames(length) if self.end is None else max(0, length.eval({self.symbol: self.end}))

    def span(self, frames: int, offset: int, length: TDim) -> tuple[int, int]:
        """Which of a pulse's frames belong to the stream, as start and stop."""
        first = self.pulse * frames - offset
        start = min(frames, max(0, -first))
        return start, max(start, min(frames, self.frames(length) - first))


class Stateful(Op):
    """An op of a pulsed model that keeps state between pulses or looks at the clock."""

    @property
    def awaits(self) -> tuple[int, TDim] | None:
        """Offset and length of the input whose last frame this op's outputs wait for; None if they stream."""
        return None

    def begin(self) -> list[Array]:
        """The state before the first pulse, new arrays."""
        return []

    def step(self, inputs: Sequence[Array], state: list[Array], clock: Clock) -> list[Array]:
        """The outputs for one pulse; ``state`` is replaced in place."""
        raise NotImplementedError

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        raise TypeError(f"{self.name} runs only inside of a stream")


@record(eq=False)
class OnPulses(Stateful):
    """An op of the offline model on pulses: frame j of its input is at index j + offset, and there are ``length``."""

    op: Op
    offset: int
    length: TDim

    @property
    def name(self) -> str:
        return self.op.name

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        return self.op.facts(inputs)

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work | None:
        return self.op.work(inputs, outputs)

    def weight_units(self, inputs: Sequence[PulsedFact], slot: int) -> UnitLayout | None:
        return self.op.weight_units(inputs, slot)

    def detail(self) -> str:
        return f"{self.op.detail()} of {self.length} frames delay {self.offset}"


class Carried(OnPulses):
    """One that carries a state from frame to frame, which is an output too."""

    @property
    def awaits(self) -> tuple[int, TDim]:
        return self.offset, self.length


def frames_at(array: Array, axis: int, start: int, stop: int) -> Array:
    """Frames of one axis, a view."""
    return array[(slice(None),) * axis + (slice(start, stop),)]
