"""The streams that a proof runs: their lengths and their signals."""

from collections.abc import Sequence
from math import ceil

from pulse.errors import InputError
from pulse.ops.time import Delay
from pulse.proof.critical_lengths import critical_lengths
from pulse.proof.effort import Effort
from pulse.proof.trial_signals import PURE, Signal
from pulse.pulsify.lengths import min_value_for
from pulse.pulsify.network import PulsedNetwork
from pulse.pulsify.stream_lengths import longest_stream, nearest_length
from pulse.support.bounds import FAR_FRAMES
from pulse.support.record import record
from pulse.support.wording import spell

CONSECUTIVE_LENGTHS = 8
"""The number of consecutive lengths: errors only at multiples of a small number are found too."""
SIGNAL_FRAMES, SIGNAL_PULSES, FEW_PULSES = 512, 8, 3
"""Frames and pulses of the streams of each signal; fewer if a run takes long."""
MIN_LONG_FRAMES, MIN_LONG_PULSES = 4096, 8
"""The minimum frames and pulses of a long stream."""
MIN_DRIFT_FRAMES, MIN_DRIFT_PULSES = 16_384, 64
"""The minimum frames and pulses of a long stream if states may drift: if an output depends on all frames before."""
RECEPTIVE_MULTIPLE = 2
"""A long stream has this many times the frames that an output depends on."""
MAX_SIGNAL_S = 0.1
"""About how many seconds of one core a run of the offline model may take, for each signal."""
MAX_LONG_S = 0.4
"""The same for a long stream."""
MAX_TOTAL_S = 1.6
"""The same for all streams together. The whole proof takes about ten times as long."""
MAX_REQUESTED_S = 30.0
"""The same for a long stream that the user requests."""
OVERFLOW_PULSES, OVERFLOW_S = 2, 4.0
"""Pulses that a long stream has beyond the longest buffer at least, and what its run may take then."""


@record
class ProofChoice:
    """Which streams a proof runs.

    lengths  frames of the symbol to try; None: chosen from the pulse and from what an output sees
    seed     seed of the random inputs
    long     spend more: long streams as long as they should be, and of every signal
    """

    lengths: Sequence[int] | None = None
    seed: int = 0
    long: bool = False


@record
class Trial:
    """One stream: frames of the symbol, and its signal.

    length  frames of the symbol
    signal  kind of its input
    traced  whether every wire is compared, not only the outputs
    long    whether its purpose is to fill the model's memory
    """

    length: int
    signal: Signal
    traced: bool = False
    long: bool = False


@record
class Trials:
    """The streams of a proof.

    trials            the streams, in order
    receptive_frames  the most frames of the symbol that an output depends on; None if there is no limit
    wanted_frames     frames that a long stream should have; fewer are tried if that takes too long
    left_out          streams that would take too long
    buffered          frames of the symbol that the longest buffer of past frames holds
    """

    trials: tuple[Trial, ...]
    receptive_frames: int | None
    wanted_frames: int
    left_out: int
    buffered: int = 0

    @property
    def longest(self) -> int:
        """The frames of the longest stream."""
        return max(trial.length for trial in self.trials)


def plan_trials(model: PulsedNetwork, choice: ProofChoice = ProofChoice()) -> Trials:
    """Return the streams of a proof.

    These are streams of each signal, long ones that fill the memory, short ones of noise, and some of critical lengths;
    or streams of the chosen lengths. Raises InputError: a length is negative, or the choice has none
    """
    lengths, long = choice.lengths, choice.long
    receptive, buffered = receptive_frames(model), buffered_frames(model)
    if lengths is not None:
        if not lengths or min(lengths) < 0:
            raise InputError(
                f"{spell('lengths')}{list(lengths)}: give at least one length, of 0 or more frames"
            )
        shortest = min((length for length in lengths if length), default=None)
        trials = [Trial(n, s, n == shortest and s == "noise") for n in lengths for s in _signals(long)]
        return Trials(tuple(trials), receptive, max(lengths), 0, buffered)
    effort, long_length = Effort(model), _long_length(model, receptive, buffered)
    usual = _signal_length(model, effort)
    affordable = effort.affordable_frames(MAX_REQUESTED_S if long else MAX_LONG_S)
    overflowing = min(long_length, buffered + OVERFLOW_PULSES * model.pulse)
    if affordable < overflowing <= effort.affordable_frames(OVERFLOW_S):
        affordable = overflowing
    full = _allowed_length(model, min(long_length, affordable))
    candidates = [Trial(usual, signal, traced=signal == "noise") for signal in PURE]
    if full > usual:
        candidates += [Trial(full, signal, long=True) for signal in _signals(long)]
    candidates += [Trial(length, "noise") for length in short_lengths(model)]
    critical = critical_lengths(model, _shortest(model))
    candidates += [Trial(_allowed_length(model, length), "noise") for length in critical]
    plan: list[Trial] = []
    seconds_left = float("inf") if long else max(MAX_TOTAL_S, effort.seconds(full) + MAX_SIGNAL_S)
    for trial in dict.fromkeys(candidates):
        seconds = effort.seconds(trial.length)
        if seconds <= seconds_left or trial.traced:
            plan.append(trial)
            seconds_left -= seconds
    plan.sort(key=lambda trial: (trial.length, trial.long))
    return Trials(
        tuple(plan),
        receptive,
        _allowed_length(model, long_length),
        len(set(candidates)) - len(plan),
        buffered,
    )


def _signal_length(model: PulsedNetwork, effort: Effort) -> int:
    """Return the length of the streams of each signal: some pulses and many frames, fewer if these take long."""
    affordable, shortest = effort.affordable_frames(MAX_SIGNAL_S), _shortest(model)
    many_frames = max(SIGNAL_PULSES * model.pulse, min(SIGNAL_FRAMES, affordable))
    few_frames = FEW_PULSES * model.pulse + model.pulse // 2
    return _allowed_length(model, shortest + (many_frames if many_frames <= affordable else few_frames) + 1)


def _signals(long: bool) -> tuple[Signal, ...]:
    return (*PURE, "mixed") if long else ("noise", "mixed")


def short_lengths(model: PulsedNetwork) -> list[int]:
    """Return lengths shorter than a pulse, whole pulses, next to them, not a multiple, and eight in a row."""
    pulse, shortest = model.pulse, _shortest(model)
    steps = {0, 1, pulse // 2, pulse - 1, pulse, pulse + 1, 3 * pulse + pulse // 2, 8 * pulse + 1}
    steps |= {2 * pulse + more for more in range(CONSECUTIVE_LENGTHS)}
    lengths = {shortest + step for step in steps} | {step for step in steps if step >= shortest}
    return sorted({_allowed_length(model, length) for length in lengths if length > 0})


def receptive_frames(model: PulsedNetwork) -> int | None:
    """Return how many frames of the symbol an output depends on, the most of all; None if there is no limit."""
    spans = [field.frames for field in model.receptive_fields.values()]
    finite = [span for span in spans if span is not None]
    return max(finite) if finite and len(finite) == len(spans) else None


def buffered_frames(model: PulsedNetwork) -> int:
    """Return frames of the symbol until the longest buffer of past frames is full, and evicts what it holds."""
    longest = 0
    for node in model.graph.nodes:
        stream = node.outputs[0].fact.stream if isinstance(node.op, Delay) else None
        if isinstance(node.op, Delay) and stream is not None and stream.rate > 0:
            longest = max(longest, ceil((node.op.delay + node.op.overlap) / stream.rate))
    return longest


def _long_length(model: PulsedNetwork, receptive: int | None, buffered: int) -> int:
    """Return frames of a long stream; no multiple of the pulse, if that is more than one frame."""
    pulse = model.pulse
    if receptive is None:
        frames = max(MIN_DRIFT_FRAMES, MIN_DRIFT_PULSES * pulse, RECEPTIVE_MULTIPLE * buffered)
    else:
        frames = max(RECEPTIVE_MULTIPLE * receptive, MIN_LONG_FRAMES, MIN_LONG_PULSES * pulse)
    frames = -(-frames // pulse) * pulse + pulse // 2 + 1
    limit = longest_stream(model.symbol, model.typed.scope.assumptions)
    return frames if limit is None else min(frames, limit)


def _shortest(model: PulsedNetwork) -> int:
    """Return the first length at which every output has a frame."""
    ports = [port for port in model.outputs if port.streams]
    reached = [port for port in ports if port.length.eval({model.symbol: FAR_FRAMES}) > 0]
    return max((min_value_for(port.length, 1, model.symbol) for port in reached), default=1)


def _allowed_length(model: PulsedNetwork, length: int) -> int:
    """Return the first length from there on that satisfies what the model assumes, if one is near; else one before."""
    assumptions = model.typed.scope.assumptions
    limit = longest_stream(model.symbol, assumptions)
    return nearest_length(length, model.symbol, assumptions, limit) or length
