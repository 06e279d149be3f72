"""Which streams a proof runs: their lengths and what they hear."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pulse.costs.work import op_work
from pulse.dim import TDim
from pulse.facts import TypedFact
from pulse.ops.attention import BandedAttention
from pulse.ops.loop import Loop
from pulse.ops.op import Op
from pulse.ops.recurrent import Recurrent
from pulse.ops.scan import Scan
from pulse.ops.shape import volume
from pulse.proof.signals import PURE, Signal
from pulse.pulsify.lengths import reaching
from pulse.pulsify.limit import fits, longest
from pulse.pulsify.model import PulsedModel

CONSECUTIVE = 8
"""So many lengths in a row: what is wrong only at multiples of a small number shows."""
SIGNAL_FRAMES, SIGNAL_PULSES = 512, 8
"""What the streams that hear each signal have, fewer frames where that takes long."""
LONG_FRAMES, LONG_PULSES = 4096, 8
"""What a long stream has at least."""
DRIFT_FRAMES, DRIFT_PULSES = 16_384, 64
"""The same where states may drift: where an output depends on all frames before."""
SEEN = 2
"""A long stream has so many times what an output sees."""
EFFORT_S, LONG_EFFORT_S = 0.5, 30.0
"""What one run of the offline model may cost, about, in seconds of one core; with ``long``."""
CALL_S, MAC_S, ELEMENTWISE_S, ELEMENT_S = 2e-5, 3e-10, 5e-9, 2e-9
"""What numpy takes, about: for a call, a multiply-add, a function of an element, and to move one."""
CELL_CALLS = 6
"""Of numpy, for a frame of a recurrent layer."""
MOST_FRAMES = 1 << 24
"""No stream of a proof is longer."""
PAIR_STEPS = 40
"""What it does with each pair of frames in attention."""
NEAR = 4096
"""How far away a length may be that suits the model."""


@dataclass(frozen=True)
class Trial:
    """One stream: frames of the symbol, and what it hears.

    traced  whether every wire is compared, not only the outputs
    long    whether it is there to fill what the model remembers
    """

    length: int
    signal: Signal
    traced: bool = False
    long: bool = False


@dataclass(frozen=True)
class Trials:
    """The streams of a proof.

    seen      frames of the symbol that an output depends on, the most of all; None where there is no limit
    wanted    frames that a long stream should have; fewer are tried where that takes too long
    """

    trials: tuple[Trial, ...]
    seen: int | None
    wanted: int

    @property
    def longest(self) -> int:
        """The frames of the longest stream."""
        return max(trial.length for trial in self.trials)


def trials_of(model: PulsedModel, lengths: Sequence[int] | None = None, long: bool = False) -> Trials:
    """Short streams of noise, one length with every signal, and long ones that fill all that is remembered.

    lengths  to be tried instead
    long     spend more: long streams as long as they should be, and of every signal
    """
    seen = receptive_frames(model)
    if lengths is not None:
        traced = min(lengths, default=0)
        given = [
            Trial(n, signal, (n, signal) == (traced, "noise")) for n in lengths for signal in _signals(long)
        ]
        return Trials(tuple(given), seen, max(lengths, default=0))
    wanted = _wanted(model, seen)
    long_length = min(wanted, affordable(model, LONG_EFFORT_S if long else EFFORT_S))
    few = SIGNAL_PULSES * model.pulse
    several = min(SIGNAL_FRAMES, affordable(model, EFFORT_S / 10))
    usual = _allowed(model, _shortest(model) + max(few, several) + 1)
    listed = [Trial(length, "noise") for length in short_lengths(model)]
    listed += [Trial(usual, signal, traced=signal == "noise") for signal in PURE]
    full = _allowed(model, long_length)
    if full > usual:
        listed += [Trial(full, signal, long=True) for signal in _signals(long)]
    return Trials(tuple(dict.fromkeys(listed)), seen, _allowed(model, wanted))


def _signals(long: bool) -> tuple[Signal, ...]:
    return (*PURE, "mixed") if long else ("noise", "mixed")


def short_lengths(model: PulsedModel) -> list[int]:
    """Shorter than a pulse, whole pulses, next to them, not a multiple, and eight in a row."""
    pulse, shortest = model.pulse, _shortest(model)
    steps = {0, 1, pulse // 2, pulse - 1, pulse, pulse + 1, 3 * pulse + pulse // 2, 8 * pulse + 1}
    steps |= {2 * pulse + more for more in range(CONSECUTIVE)}
    lengths = {shortest + step for step in steps} | {step for step in steps if step >= shortest}
    return sorted({_allowed(model, length) for length in lengths if length > 0})


def receptive_frames(model: PulsedModel) -> int | None:
    """How many frames of the symbol an output depends on, the most of all; None where there is no limit."""
    spans = [field.frames for field in model.fields.values()]
    known = [span for span in spans if span is not None]
    return max(known) if known and len(known) == len(spans) else None


def _wanted(model: PulsedModel, seen: int | None) -> int:
    """Frames of a long stream; no multiple of the pulse, where that is more than one frame."""
    pulse = model.pulse
    if seen is None:
        frames = max(DRIFT_FRAMES, DRIFT_PULSES * pulse)
    else:
        frames = max(SEEN * seen, LONG_FRAMES, LONG_PULSES * pulse)
    frames = -(-frames // pulse) * pulse + pulse // 2 + 1
    limit = longest(model.symbol, model.typed.scope.assumptions)
    return frames if limit is None else min(frames, limit)


def affordable(model: PulsedModel, seconds: float) -> int:
    """The most frames of the symbol at which a run of the offline model costs no more than that, about."""
    if model.chunks is not None:
        return int(seconds / effort_s(model, model.pulse)) * model.pulse
    most = 1
    while most < MOST_FRAMES and effort_s(model, 2 * most) <= seconds:
        most *= 2
    first, second = effort_s(model, most), effort_s(model, 2 * most)
    return int(most * (1 + max(0.0, min(1.0, (seconds - first) / (second - first)))))


def effort_s(model: PulsedModel, frames: int) -> float:
    """About how many seconds numpy needs for a run of the offline model; counted, not measured: always the same."""
    env = {model.symbol: frames}

    def size(dim: TDim) -> int:
        return max(0, dim.eval(env)) if dim.symbols <= env.keys() else 1

    total, graph = 0.0, model.typed.graph
    for node_id in graph.order():
        node = graph.nodes[node_id]
        inputs, outputs = graph.input_facts(node), [outlet.fact for outlet in node.outputs]
        work = op_work(node.op, inputs, outputs)
        elements = sum(size(volume(fact.shape)) for fact in outputs)
        if isinstance(node.op, BandedAttention):  # its oracle looks at all pairs of frames
            elements += PAIR_STEPS * size(volume(outputs[0].shape[:-1])) * size(inputs[1].shape[-2])
        total += CALL_S * _calls(node.op, inputs, size) + ELEMENT_S * elements
        total += MAC_S * size(work.macs) + ELEMENTWISE_S * size(work.elementwise)
    return total


def _calls(op: Op, inputs: Sequence[TypedFact], size: Callable[[TDim], int]) -> int:
    """How often numpy is called for an op: once, or in every turn of a loop in Python."""
    if isinstance(op, Recurrent):
        return CELL_CALLS * size(inputs[0].shape[0])
    if isinstance(op, Scan):
        return len(op.body.graph.nodes) * size(inputs[0].shape[op.scanned[0].axis])
    if isinstance(op, Loop):
        return len(op.body.graph.nodes) * size(op.turns or TDim.of(1))
    return 1


def _shortest(model: PulsedModel) -> int:
    """The first length at which every output has a frame."""
    ports = [port for port in model.outputs if port.streams]
    reached = [port for port in ports if port.length.eval({model.symbol: 1 << 40}) > 0]
    return max((reaching(port.length, 1, model.symbol) for port in reached), default=1)


def _allowed(model: PulsedModel, length: int) -> int:
    """The first length from there on that satisfies what the model assumes of it, if one is near."""
    assumptions = model.typed.scope.assumptions
    near = range(length, length + NEAR)
    return next((other for other in near if fits(other, model.symbol, assumptions)), length)
