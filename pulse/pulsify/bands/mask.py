"""Find the bias that a mask adds to attention scores, by running its part of the graph at a few lengths."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.facts import Array, is_symbolic
from pulse.graph import OutletId
from pulse.ops.attention import BandedAttention
from pulse.ops.elementwise import Elementwise
from pulse.ops.source import Const
from pulse.pulsify.bands.attention_refusals import (
    BOTH_DIRECTIONS,
    LIMIT_REACH,
    NoBandError,
    both_directions_help,
)
from pulse.pulsify.bands.mask_proof import MaskProof
from pulse.pulsify.bands.mask_samples import MaskSample
from pulse.pulsify.bands.pattern import PatternExtent
from pulse.pulsify.bands.static_wires import value_at
from pulse.pulsify.lengths import min_value_for
from pulse.pulsify.stream_lengths import allows_length, longest_stream
from pulse.support.record import record
from pulse.support.wording import spell
from pulse.typed import TypedGraph

MASKED = -1e4
"""A score counts as masked if a number at or below this is added to it or replaces it.

The exponential of such a score is exactly 0 relative to any score that is not masked.
"""
MAX_ELEMENTS = 1 << 24
"""Maximum number of elements of a mask that is run."""
MAX_MASK_ELEMENTS = 1 << 22
"""Maximum number of elements of a mask without a repeating pattern, which is stored whole."""
MAX_POSITIONS = 1 << 16
"""Maximum number of positions of a table that is run."""
SAMPLE_LENGTHS = (64, 512)
"""The stream lengths, in frames, at which a mask is run first."""


@record
class ScoreStep:
    """A node between the product of queries and keys and the softmax, and where it reads the scores."""

    node: int
    slot: int


@record
class Band:
    """The bias of each pair of frames, in the layout of ``BandedAttention``.

    bias     the table of biases
    back     how many frames before its own a frame attends to
    limited  whether the band holds only up to the given longest stream
    """

    bias: Array
    back: int
    limited: bool = False


@record(eq=False)
class SampledBand:
    """A band found at some lengths, and the reason to doubt it at others; None if it is proved.

    band             the band
    op               the attention that it makes
    relative         whether only the differences within each row repeat
    reason_to_doubt  why it may not hold at other lengths; None if it is proved
    """

    band: Band
    op: BandedAttention
    relative: bool
    reason_to_doubt: str | None


@record(eq=False, frozen=False)
class Mask:
    """The steps of the scores from their product to the softmax.

    graph        the typed graph
    symbol       the frames of the stream
    assumptions  conditions on the symbol
    product      the product of queries and keys
    steps        the steps from the product to the softmax
    context      the longest stream, in frames of the symbol
    """

    graph: TypedGraph
    symbol: Symbol
    assumptions: Sequence[TDim]
    product: OutletId
    steps: Sequence[ScoreStep]
    context: int | None
    _samples: dict[int, MaskSample] = field(default_factory=dict[int, MaskSample])

    @property
    def rows(self) -> TDim:
        """The number of query frames, and of key frames."""
        return self.graph.fact(self.product).shape[-1]

    @property
    def _limit(self) -> int | None:
        """The most frames that the assumptions allow; None without a proven limit."""
        return longest_stream(self.symbol, self.assumptions)

    def band(self) -> Band:
        """Find the band of all unmasked pairs. Raises NoBandError: there is none."""
        max_rows = None if self._limit is None else self.rows.eval({self.symbol: self._limit})
        matrices = math.prod(
            self.sample(min(SAMPLE_LENGTHS[0], max_rows or SAMPLE_LENGTHS[0])).bias.shape[:-2]
        )
        largest = math.isqrt(MAX_ELEMENTS // max(1, matrices))
        largest = largest if max_rows is None else min(largest, max_rows)
        candidate: SampledBand | None = None
        for frames in (*SAMPLE_LENGTHS, largest):
            if frames <= largest:
                candidate = self._find_candidate(self.sample(frames), largest) or candidate
                if candidate is not None and candidate.reason_to_doubt is None:
                    return candidate.band
        if candidate is None:
            return self._causal(self.sample(largest), largest)
        return self._accept_with_limit(candidate, max_rows, largest)

    def _find_candidate(self, sample: MaskSample, largest: int) -> SampledBand | None:
        back, ahead = sample.reach()
        if back + ahead + 2 > sample.frames:
            return None
        for candidate in (sample, sample.relative()):
            period = candidate.period()
            if period is not None and back + ahead + 2 * period <= sample.frames:
                op = BandedAttention(1.0, candidate.table(period, back, ahead), back)
                relative = candidate is not sample
                wider = min(max(2 * sample.frames + 37, 777, 2 * self._farthest(largest) + 37), largest)
                other = self.sample(wider if wider > sample.frames else sample.frames * 2 // 3)
                if self._agrees_with(op, other, relative):
                    proof = MaskProof(
                        self.graph,
                        self.symbol,
                        self.rows,
                        PatternExtent(period, sample.frames - period, MASKED),
                    )
                    steps = [(step.node, step.slot) for step in self.steps]
                    return SampledBand(
                        self._make_band(op), op, relative, proof.reason_to_doubt(steps, relative)
                    )
        return None

    def _accept_with_limit(self, candidate: SampledBand, max_rows: int | None, largest: int) -> Band:
        """Accept a band that is not proved, if it holds up to the longest stream."""
        context = None if self.context is None else self.rows.eval({self.symbol: self.context})
        end = max(1, min((bound for bound in (max_rows, context) if bound is not None), default=largest + 1))
        cause = (
            f"its mask keeps one pattern up to frame {largest}, but not provably beyond it "
            f"({candidate.reason_to_doubt})"
        )
        if end > largest:
            raise NoBandError(
                cause,
                "compute it from positions, comparisons and integer quotients, or give "
                f"{spell('max_context', self._frames_of(largest))} or less",
            )
        if not self._agrees_with(candidate.op, self.sample(end), candidate.relative):
            raise NoBandError(
                f"its mask changes its pattern before frame {end}", "keep one pattern for the whole stream"
            )
        return replace(candidate.band, limited=max_rows is None or end < max_rows)

    def _frames_of(self, rows: int) -> int:
        """Return the most frames of the symbol that make at most this many rows."""
        length = self._length(rows)
        return length if self.rows.eval({self.symbol: length}) <= rows else length - 1

    def _farthest(self, largest: int) -> int:
        """Return the largest position in the mask's constants (a number, or the size of a table), up to a limit.

        A mask hardly changes its pattern beyond it, so one longer run shows more than many shorter ones.
        """
        slots = {step.node: step.slot for step in self.steps}
        targets = [
            source
            for node_id, slot in slots.items()
            for index, source in enumerate(self.graph.nodes[node_id].inputs)
            if index != slot
        ]
        largest_position = 0
        for node_id in self.graph.order(targets):
            op = self.graph.nodes[node_id].op
            value = op.value if isinstance(op, Const) else None
            if value is None or is_symbolic(value):
                continue
            number = abs(float(value.reshape(()))) if value.size == 1 else max(value.shape)
            if number <= largest:
                largest_position = max(largest_position, math.ceil(number))
        return largest_position

    def _causal(self, sample: MaskSample, largest: int) -> Band:
        """Return a band over all earlier frames, up to the longest possible stream."""
        _, ahead = sample.reach()
        if 2 * ahead >= sample.frames:
            raise NoBandError(BOTH_DIRECTIONS, both_directions_help())
        longest = self._longest_frames()
        if longest is None:
            sinks = sample.sink_count()
            first = "the first frame" if sinks == 1 else f"the first {sinks} frames"
            raise NoBandError(
                f"every frame also attends to {first} of the stream, however long ago (sinks)"
                if sinks
                else "every frame attends to all earlier frames",
                f"{LIMIT_REACH}, or give {spell('max_context')}",
            )
        frames = max(1, self.rows.eval({self.symbol: longest}))
        if frames > largest:
            raise NoBandError(f"a reach of {frames} frames is too long; at most {largest} are possible")
        limited = longest == self.context
        sample = self.sample(min(largest, max(frames + ahead, SAMPLE_LENGTHS[0])))
        for candidate in (sample, sample.relative()):
            period = candidate.period()
            if period is not None:
                op = BandedAttention(1.0, candidate.table(period, frames - 1, ahead), frames - 1)
                if self._agrees_with(op, self.sample(frames), candidate is not sample):
                    return replace(self._make_band(op), limited=limited)
        whole = self.sample(frames)
        if whole.frames != frames or whole.bias.size > MAX_MASK_ELEMENTS:
            raise NoBandError("its bias has no repeating pattern")
        op = BandedAttention(1.0, whole.table(frames, frames - 1, max(0, whole.reach()[1])), frames - 1)
        if not self._agrees_with(op, self.sample(max(1, frames * 2 // 3)), False):
            raise NoBandError("its bias depends on the length of the stream")
        return replace(self._make_band(op), limited=limited)

    def _agrees_with(self, op: BandedAttention, other: MaskSample, relative: bool) -> bool:
        """Return whether the mask at another length agrees with the band."""
        expected = MaskSample(op.full_bias(other.frames), False)
        if not relative:
            return other.agrees(expected.bias)
        return other.relative().agrees(expected.relative().bias)

    def _make_band(self, op: BandedAttention) -> Band:
        """Return the band. Raises NoBandError: a frame that should attend to none attends to all."""
        samples = self._samples.values()
        if any(sample.has_blind_frame for sample in samples) and any(sample.finite for sample in samples):
            raise NoBandError(
                "the mask hides all frames from some rows, and with finite masked scores these rows read all frames",
                "mask with -inf",
            )
        return Band(op.bias, op.back)

    def sample(self, frames: int) -> MaskSample:
        """Return the bias at the first length of at least this many frames. Raises NoBandError: not computable."""
        if frames not in self._samples:
            self._samples[frames] = self._compute_sample(self._length(frames))
        return self._samples[frames]

    def _length(self, frames: int) -> int:
        shortest = min_value_for(self.rows, frames, self.symbol)
        allowed = (
            shortest + more
            for more in range(64)
            if allows_length(shortest + more, self.symbol, self.assumptions)
        )
        length = next(allowed, None)
        if length is None:
            raise NoBandError("no length of the stream suits its mask")
        return length

    def _compute_sample(self, length: int) -> MaskSample:
        env = {self.symbol: length}
        fact = self.graph.fact(self.product)
        frames = self.rows.eval(env)
        if frames < 1:
            raise NoBandError("it has no rows at the lengths that suit its mask")
        regrouped = any(not isinstance(self.graph.nodes[step.node].op, Elementwise) for step in self.steps)
        batch = [dim.eval(env) if regrouped else 1 for dim in fact.shape[:-2]]
        x = np.zeros((*batch, frames, frames), fact.dtype)
        values: dict[OutletId, Array] = {}
        finite = False
        for step in self.steps:
            node = self.graph.nodes[step.node]
            inputs = [
                x if slot == step.slot else value_at(self.graph, outlet, env, values)
                for slot, outlet in enumerate(node.inputs)
            ]
            (y,) = node.op.eval(inputs, env)
            if isinstance(node.op, Elementwise) and node.op.kind == "where":
                _check_replaced(inputs, step.slot)
            if not y.max(initial=-np.inf) < np.inf:
                raise NoBandError(f"{node.name} produces NaN or infinite scores")
            x = y
            if y.min(initial=0) <= MASKED:
                masked = y <= MASKED
                if np.count_nonzero(masked) > np.count_nonzero(y == -np.inf):
                    finite = True
                    x = _own(y, [value for slot, value in enumerate(inputs) if slot != step.slot])
                    np.copyto(x, -np.inf, where=masked)
        return MaskSample(x, finite)

    def longest(self) -> int | None:
        """Return the most rows of a stream that the model or the user allows; None: no limit, or it is too large."""
        frames = self._longest_frames()
        rows = 0 if frames is None else self.rows.eval({self.symbol: frames})
        return rows if 0 < rows < MAX_POSITIONS else None

    def _longest_frames(self) -> int | None:
        return min((length for length in (self._limit, self.context) if length is not None), default=None)

    def values(self, outlet: OutletId, rows: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """Yield the values of a wire that depends on positions alone, at these numbers of rows or the next possible."""
        longest = self.longest()
        for count in rows:
            length = self._length(max(1, count))
            env = {self.symbol: length}
            if longest is None or self.rows.eval(env) <= longest:
                yield self.rows.eval(env), value_at(self.graph, outlet, env, {})


def _own(y: Array, values: Sequence[Array]) -> Array:
    """Return an array that may be changed: a result of the size of all scores is not copied needlessly."""
    is_new = y.flags.owndata and not any(y is value for value in values)
    return y if is_new else y.copy()


def _check_replaced(inputs: Sequence[Array], slot: int) -> None:
    """Raise NoBandError unless ``where`` replaces scores by masked numbers only."""
    condition, other = inputs[0], inputs[3 - slot]
    replaced = ~condition if slot == 1 else condition
    if bool((replaced & ~(other <= MASKED)).any()):
        highest = np.where(replaced, other, -np.inf).max()
        raise NoBandError(
            f"it puts {highest:g} instead of scores, and numbers above {MASKED:g} do not hide a frame for certain",
            "mask with -inf",
        )
