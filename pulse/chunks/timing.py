"""Positions of the frames of a model's calls in the whole stream."""

from collections.abc import Mapping
from fractions import Fraction

from pulse.chunks.chunking import CallPlan, Chunking
from pulse.dim import Symbol, SymbolScope, TDim, ceil_div, ge
from pulse.errors import PulsifyError
from pulse.support.record import record
from pulse.support.wording import count_of


@record
class ChunkTiming:
    """The lengths of inputs and outputs, and how often the model is called.

    symbol   symbol that counts the frames of the stream
    lengths  input or output -> its frames
    delay    output -> leading frames that do not belong to the stream
    awaited  (frames per call, minimum total frames) of each wire whose last frame some output waits for
    end      the input for the length of the stream
    """

    symbol: Symbol
    lengths: Mapping[str, TDim]
    delay: Mapping[str, int]
    awaited: tuple[tuple[int, TDim], ...] = ()
    end: str | None = None

    @classmethod
    def of(cls, plan: CallPlan, chunking: Chunking, name: str) -> "ChunkTiming":
        """Return the timing in a new scope: ``ceil(frames of the stream * rate)`` frames each."""
        scope = SymbolScope()
        symbol = scope.symbol(name)
        scope.assume(ge(symbol, 0))
        lengths: dict[str, TDim] = {}
        for port in (*plan.inputs, *plan.outputs):
            rate = Fraction(port.frames, plan.pulse)
            lengths[port.name] = ceil_div(TDim.of(symbol) * rate.numerator, rate.denominator)
        return cls(symbol, lengths, chunking.delay)

    def calls(self, plan: CallPlan) -> TDim:
        """Return the number of calls until every output is complete. Raises PulsifyError: none is known."""
        calls = ceil_div(TDim.of(self.symbol), plan.pulse)
        counts = [
            (port.frames, self.lengths[port.name] + self.delay.get(port.name, 0))
            for port in plan.outputs
            if port.axis is not None
        ]
        extra = 0
        for frames, count in (*counts, *self.awaited):
            missing_frames = count - calls * frames
            if missing_frames.prove_le(extra * frames).yes:
                continue
            missing = missing_frames.bounds()[1]
            if missing is None:
                raise PulsifyError(
                    f"{count_of(count, 'frame')} of an output, {frames} in each call: no number of calls is known to "
                    "produce "
                    "all of them"
                )
            extra = max(extra, -(-missing // frames))
        return calls + extra
