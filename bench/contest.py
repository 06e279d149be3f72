"""One model in every runtime: which forms load, which of them are right, and which is the fastest of a runtime."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx

from bench.models import Entry, Explicit
from bench.models.explicit import constant_feeds
from bench.peers import (
    Array,
    Feed,
    OnnxRuntimePeer,
    Outputs,
    Peer,
    PulsePeer,
    TractExplicitPeer,
    TractPeer,
    session,
)
from bench.timing import alternate, make_stepper
from pulse.program.program import Program
from pulse.pulsify.network import Port

MAX_ERROR = 1e-4
"""How far a right output may be off, relative to the largest value of what is wanted."""

MIN_SCALE = 1e-9
"""The largest value that an output is taken to have at least."""

CHECKED_PULSES = 40
"""Pulses of a form that are compared with the reference."""
PULSES = 64
"""Pulses of noise that the steps of a form cycle through."""
PILOT_ROUNDS, PILOT_STEPS = 5, 40
"""Rounds, and steps of each form in a round, of the pilot that finds the fastest form of a runtime."""
OURS = "pulse"
"""The name of this project among the runtimes."""
SPECIAL = "pulse, special rows"
"""The same with rows compiled for the model."""
MIN_SPECIAL_GAIN = 1.02
"""The least speed-up, as ``Program.specialise`` measures it, for which special rows take part."""

Streams: TypeAlias = dict[str, Array]


class WrongResultError(Exception):
    """This project's own output is not that of the model: there is nothing to time."""


@dataclass(frozen=True)
class Form:
    """One way to run the model in a runtime.

    how     such as ``exported`` or ``pulsed by tract``
    status  ``right``, ``wrong`` or ``fails``
    note    the first line of the error, or how far the result is off
    """

    runtime: str
    how: str
    status: str
    note: str = ""
    peer: Peer | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, str]:
        """Return the form as plain data, for JSON."""
        return {"runtime": self.runtime, "how": self.how, "status": self.status, "note": self.note}


@dataclass(frozen=True, eq=False)
class Contest:
    """A program of this project, and the fastest right form of each other runtime.

    best  by runtime; ``SPECIAL`` among them where special rows are asked for and worth it
    """

    entry: Entry
    program: Program
    pulses: Sequence[Feed]
    forms: tuple[Form, ...]
    best: dict[str, Form]

    def steppers(self) -> dict[str, Callable[[], object]]:
        """Return a function for each runtime that runs the next pulse, this project last."""
        peers = {name: form.peer for name, form in self.best.items()}
        return {
            name: make_stepper(peer.step, self.pulses) for name, peer in peers.items() if peer is not None
        }


def contest(
    entry: Entry, checked: int = CHECKED_PULSES, pilot_steps: int = PILOT_STEPS, special: bool = False
) -> Contest:
    """Build every form, check some pulses of each against the model's own result, and choose.

    special  compile special rows too, for a second program of this project
    Raises   WrongResultError; PulseError if the model does not stream
    """
    source = entry.source()
    proto = onnx.load(source) if isinstance(source, Path) else source
    program = entry.program(source)
    pulses = noise(program, entry.scale)
    twin = None if entry.twin is None else entry.twin()
    expected = reference(entry, proto, twin, program, pulses[:checked])
    first = {OURS: Form(OURS, program.backend, "right", "", PulsePeer(program))}
    if special:
        faster = entry.program(source)
        if (report := faster.specialise(min_gain=MIN_SPECIAL_GAIN)).used:
            first[SPECIAL] = Form(SPECIAL, f"{report.seconds:.0f} s", "right", "", PulsePeer(faster))
    for name, form in first.items():
        assert form.peer is not None
        off = distance(stream_outputs(form.peer, program, pulses[:checked]), expected, program)
        if not off <= MAX_ERROR:
            raise WrongResultError(f"{entry.name}: the output of {name} is off by {off:.1e}")
    forms: list[Form] = []
    for runtime, how, make in candidates(entry, proto, twin, program, pulses[0]):
        forms.append(try_form(runtime, how, make, program, pulses[:checked], expected))
    best = dict(fastest(forms, pulses, pilot_steps)) | first
    return Contest(entry, program, pulses, tuple(forms), best)


def noise(program: Program, scale: float) -> list[Feed]:
    """Return seeded noise, ``PULSES`` pulses of every input: normal, of integers and booleans 0 and 1.

    An input without frames has one value in all of them.
    """
    rng = np.random.default_rng(0)
    values: dict[str, Array] = {}
    for port in program.inputs:
        shape = (PULSES if port.streams else 1, *port.shape)
        drawn = (
            scale * rng.standard_normal(shape)
            if np.dtype(port.dtype).kind == "f"
            else rng.integers(0, 2, shape)
        )
        values[port.name] = np.broadcast_to(drawn.astype(port.dtype), (PULSES, *port.shape))
    return [
        {name: np.ascontiguousarray(array[pulse]) for name, array in values.items()}
        for pulse in range(PULSES)
    ]


def candidates(
    entry: Entry, proto: onnx.ModelProto, twin: Explicit | None, program: Program, sample: Feed
) -> Iterator[tuple[str, str, Callable[[], Peer]]]:
    """Yield every form of every other runtime."""
    forms: dict[str, Callable[[], Explicit]] = {"exported": lambda: Explicit.of(program.model)}
    if twin is not None:
        forms["its author's form"] = lambda: twin
    for how, explicit in forms.items():
        yield "onnxruntime", how, lambda explicit=explicit: OnnxRuntimePeer(explicit(), sample)
        for new_state_each_step in (False, True):
            make = partial(_tract_peer, explicit, sample, new_state_each_step)
            yield "tract", f"{how}, new state each step" if new_state_each_step else how, make
    if entry.offline:
        symbol = program.model.symbol.name
        names = [port.name for port in streams_of(program)]
        inputs = entry.arguments.get("inputs") or {}
        yield "tract", "pulsed by tract", lambda: TractPeer(proto, program.pulse, symbol, names, inputs)


def _tract_peer(
    explicit: Callable[[], Explicit], sample: Feed, new_state_each_step: bool
) -> TractExplicitPeer:
    return TractExplicitPeer(explicit(), sample, new_state_each_step)


def try_form(
    runtime: str,
    how: str,
    make: Callable[[], Peer],
    program: Program,
    pulses: Sequence[Feed],
    expected: Streams,
) -> Form:
    """Build a form and compare its outputs with the expected ones."""
    try:
        peer = make()
        off = distance(stream_outputs(peer, program, pulses), expected, program)
    except Exception as error:  # whatever another runtime raises is its answer
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return Form(runtime, how, "fails", lines[0] if lines else type(error).__name__)
    if not off <= MAX_ERROR:
        return Form(runtime, how, "wrong", f"off by {off:.1e} of the largest value")
    return Form(runtime, how, "right", "", peer)


def fastest(
    forms: Sequence[Form], pulses: Sequence[Feed], steps: int = PILOT_STEPS
) -> Iterator[tuple[str, Form]]:
    """Yield each runtime with its right form that has the smallest median in its best round of a short run."""
    for runtime in dict.fromkeys(form.runtime for form in forms):
        right = {form.how: form for form in forms if form.runtime == runtime and form.peer is not None}
        if len(right) > 1:
            steppers = {how: make_stepper(form.peer.step, pulses) for how, form in right.items() if form.peer}
            times = alternate(steppers, PILOT_ROUNDS, steps, steps)
            best = {how: min(percentiles.p50_us for percentiles in times.rounds[how]) for how in right}
            yield runtime, right[min(best, key=best.__getitem__)]
        elif right:
            yield runtime, next(iter(right.values()))


def reference(
    entry: Entry, proto: onnx.ModelProto, twin: Explicit | None, program: Program, pulses: Sequence[Feed]
) -> Streams:
    """Return the model's own result in onnxruntime: of the whole input, or chunk by chunk as its author runs it."""
    names = [port.name for port in program.outputs if port.streams]
    if not entry.offline:
        assert twin is not None, "a model of chunks is its own explicit form"
        return join_pulses(run_steps(OnnxRuntimePeer(twin, pulses[0]), pulses), program)
    feeds = constant_feeds(proto, entry.arguments.get("constants") or {})
    for port in program.inputs:
        values = [feed[port.name] for feed in pulses]
        feeds[port.name] = np.concatenate(values, port.axis or 0) if port.streams else values[0]
    results = session(proto.SerializeToString()).run(names, feeds)
    return {name: np.asarray(result) for name, result in zip(names, results)}


def run_steps(peer: Peer, pulses: Sequence[Feed]) -> list[Outputs]:
    """Run a peer pulse by pulse; return its results."""
    return [peer.step(pulse) for pulse in pulses]


def stream_outputs(peer: Peer, program: Program, pulses: Sequence[Feed]) -> Streams:
    """Return the frames that a peer gives, those of its delay left out."""
    outputs = join_pulses(run_steps(peer, pulses), program)
    for port in streams_of(program):
        delay = peer.delay(port.name)
        frames = np.moveaxis(outputs[port.name], port.axis or 0, 0)[port.delay if delay is None else delay :]
        outputs[port.name] = np.moveaxis(frames, 0, port.axis or 0)
    return outputs


def join_pulses(results: Sequence[Outputs], program: Program) -> Streams:
    """Return each output's pulses, one after the other."""
    return {
        port.name: np.concatenate([result[port.name] for result in results], port.axis or 0)
        for port in streams_of(program)
    }


def streams_of(program: Program) -> list[Port]:
    """Return the outputs that have frames in every pulse. Raises WrongResultError: there are none."""
    ports = [port for port in program.outputs if port.streams]
    if not ports:
        raise WrongResultError("no output has frames before the stream ends: there is nothing to compare")
    return ports


def distance(streams: Streams, expected: Streams, program: Program) -> float:
    """Return the largest difference over the frames that both have, relative to the largest value.

    Infinite if there are no frames, if shapes differ, or if a value is not a number.
    """
    worst = 0.0
    for port in streams_of(program):
        axis = port.axis or 0
        a, b = (np.moveaxis(side[port.name], axis, 0).astype(np.float64) for side in (streams, expected))
        frames = min(len(a), len(b))
        if not frames or a.shape[1:] != b.shape[1:]:
            return np.inf
        off = np.abs(a[:frames] - b[:frames]).max() / max(np.abs(b[:frames]).max(), MIN_SCALE)
        if not np.isfinite(off):
            return np.inf
        worst = max(worst, float(off))
    return worst
