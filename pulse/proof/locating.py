"""The first wire at which a stream differs, in the order of the graph."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.clock import frames_at
from pulse.program.backends.registry import BACKENDS
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.program.whole_stream import run_whole, spawn_with_inputs, stream_whole
from pulse.proof.oracle import Feeds, typed_oracle
from pulse.proof.report import Divergence
from pulse.proof.tolerance import ExpectedOutputs
from pulse.proof.trials import Trial
from pulse.pulsify.network import PulsedNetwork, ScheduledWire

MAX_TRACED_ELEMENTS = 1 << 23
"""Maximum number of elements of the wires traced at once: all their frames are in memory."""


def first_divergence(program: Program, feeds: Feeds, expected: ExpectedOutputs, trial: Trial) -> Divergence:
    """Return the first wire of a stream that differs from its offline model, otherwise the output itself.

    If neither differs when the stream runs again, the difference is at the limit of the tolerance, whose third part is
    drawn at random.
    """
    for divergence in wrong_wires([program], feeds, trial):
        return divergence
    results = stream_whole(program, feeds)
    for name in expected.native:
        axis = program.model.port(name).axis
        divergence = _find_divergence(name, "output", results[name], expected, axis, trial, program.backend)
        if divergence is not None:
            return divergence
    reason = (
        "an output differed from the offline model, and no wire or output does in a second run: the difference is at "
        "the limit of the tolerance, which is partly random"
    )
    return Divergence(
        wire="the stream",
        op="output",
        length=trial.length,
        signal=trial.signal,
        backend=program.backend,
        reason=reason,
    )


def wrong_wires(programs: Sequence[Program], feeds: Feeds, trial: Trial) -> Iterator[Divergence]:
    """Yield the wires that differ from the offline model, in the order of the graph; for our own backends only.

    The programs have the same model. Wires that nothing reads are left out: frames that may not exist may enter a state
    whose last value is not read.
    """
    traceable = [
        program
        for program in programs
        if (backend := BACKENDS.get(program.backend)) is not None
        and not backend.in_parts
        and isinstance(program.model, PulsedNetwork)
    ]
    if not traceable:
        return
    network = traceable[0].network
    batch: dict[OutletId, ScheduledWire] = {}
    elements = 0
    graph = network.typed.graph
    for outlet, scheduled in network.wires.items():
        if not graph.outlet(outlet).successors and not graph.is_output(outlet):
            continue
        batch[outlet] = scheduled
        elements += prod(scheduled.fact.sizes) * traceable[0].steps(trial.length)
        if elements > MAX_TRACED_ELEMENTS:
            yield from _wrong_among(traceable, batch, feeds, trial)
            batch, elements = {}, 0
    if batch:
        yield from _wrong_among(traceable, batch, feeds, trial)


def _wrong_among(
    programs: Sequence[Program], wires: Mapping[OutletId, ScheduledWire], feeds: Feeds, trial: Trial
) -> Iterator[Divergence]:
    model = programs[0].network
    graph = model.typed.graph
    expected = ExpectedOutputs(typed_oracle(model.typed, list(wires)), feeds)
    for program in programs:
        traced = compile_model(
            model, program.backend, fetches=[scheduled.outlet for scheduled in wires.values()]
        )
        _, pulses = run_whole(spawn_with_inputs(traced, feeds), feeds, np.nan)
        for slot, (outlet, scheduled) in enumerate(wires.items()):
            name, op = graph.label(outlet), graph.node(outlet).op.name
            axis = None if scheduled.fact.stream is None else scheduled.fact.stream.axis
            whole = _place_in(scheduled, [pulse[slot] for pulse in pulses], expected.native[name])
            divergence = _find_divergence(name, op, whole, expected, axis, trial, program.backend)
            if divergence is not None:
                yield divergence


def _find_divergence(
    name: str, op: str, output: Array, expected: ExpectedOutputs, axis: int | None, trial: Trial, backend: str
) -> Divergence | None:
    """Return the first element, in order of time, that is further off than allowed."""
    judgement, native = expected.judge(name, output, axis), expected.native[name]
    divergence = partial(
        Divergence, wire=name, op=op, length=trial.length, signal=trial.signal, backend=backend
    )
    if not judgement.fits:
        reason = f"it is {list(output.shape)} {output.dtype}, offline {list(native.shape)} {native.dtype}"
        return divergence(reason=reason)
    if judgement.wrong is not None:
        index = np.unravel_index(_first_along(judgement.wrong, axis), output.shape)
        frame = int(index[axis]) if axis is not None else 0
        offline_value, stream_value = float(expected.exact[name][index]), float(output[index])
        allowed = float(judgement.allowed[index])
        return divergence(frame=frame, offline=offline_value, streamed=stream_value, allowed=allowed)
    return None


def _place_in(scheduled: ScheduledWire, pulses: list[Array], offline: Array) -> Array:
    """Return the offline tensor with the frames of the pulses in place of the frames that were sent."""
    stream = scheduled.fact.stream
    if stream is None:
        return pulses[-1]
    axis, length = stream.axis, offline.shape[stream.axis]
    if stream.rate == 0:
        frames = pulses[-1].shape[axis]
        return frames_at(pulses[-1], axis, frames - length, frames)
    joined_pulses = np.concatenate(pulses, axis)
    first = stream.prefix_frames
    last = max(first, min(length, joined_pulses.shape[axis] - stream.offset))
    whole = offline.copy()
    frames_at(whole, axis, first, last)[...] = frames_at(
        joined_pulses, axis, first + stream.offset, last + stream.offset
    )
    return whole


def _first_along(wrong: Array, axis: int | None) -> int:
    """Return the flat index of the first wrong element, earliest in time first."""
    if axis is None:
        return int(np.argmax(wrong))
    indices = np.moveaxis(np.arange(wrong.size).reshape(wrong.shape), axis, 0)
    return int(indices[np.moveaxis(wrong, axis, 0)][0])
