"""One model in every runtime: which forms load, which of them are right, and which is the fastest of a runtime."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import onnx

from bench.measurement.noise import noise_pulses
from bench.measurement.timing import make_stepper
from bench.models import Entry, Explicit
from bench.peers.onnxruntime_peer import OnnxRuntimePeer
from bench.peers.outputs import WrongResultError, distance, reference, stream_outputs, streams_of
from bench.peers.peer import Feed, Peer
from bench.peers.pulse_peer import PulsePeer
from bench.peers.runtime_form import MAX_ERROR, PILOT_STEPS, RuntimeForm, fastest, try_form
from bench.peers.tract_peer import TractExplicitPeer, TractPeer
from pulse.program.program import Program

CHECKED_PULSES = 40
"""Pulses of a form that are compared with the reference."""
OURS = "pulse"
"""The name of this project among the runtimes."""
SPECIALISED = "pulse, specialised kernels"
"""The same with rows compiled for the model."""
MIN_SPECIALISED_GAIN = 1.02
"""The minimum speed-up, as ``Program.specialise`` measures it, for which specialised kernels take part."""


@dataclass(frozen=True, eq=False)
class Contest:
    """A program of this project, and the fastest right form of each other runtime.

    best  the fastest form by runtime, with ``SPECIALISED`` if specialised kernels are requested and fast enough
    """

    entry: Entry
    program: Program
    pulses: Sequence[Feed]
    forms: tuple[RuntimeForm, ...]
    best: dict[str, RuntimeForm]

    def steppers(self) -> dict[str, Callable[[], object]]:
        """Return a function for each runtime that runs the next pulse, this project last."""
        peers = {name: form.peer for name, form in self.best.items()}
        return {
            name: make_stepper(peer.step, self.pulses) for name, peer in peers.items() if peer is not None
        }


def contest(
    entry: Entry, checked: int = CHECKED_PULSES, pilot_steps: int = PILOT_STEPS, specialise: bool = False
) -> Contest:
    """Build every form, check some pulses of each against the model's own result, and choose.

    specialise  compile specialised kernels too, for a second program of this project
    Raises   WrongResultError: an output of this project is wrong; PulseError: the model does not stream
    """
    source = entry.source()
    proto = onnx.load(source) if isinstance(source, Path) else source
    program = entry.program(source)
    pulses = noise_pulses(program, entry.scale)
    twin = None if entry.twin is None else entry.twin()
    expected = reference(entry, proto, twin, program, pulses[:checked])
    first = {OURS: RuntimeForm(OURS, program.backend, "right", "", PulsePeer(program))}
    if specialise:
        faster = entry.program(source)
        if (report := faster.specialise(min_gain=MIN_SPECIALISED_GAIN)).used:
            first[SPECIALISED] = RuntimeForm(
                SPECIALISED, f"{report.seconds:.0f} s", "right", "", PulsePeer(faster)
            )
    for name, form in first.items():
        assert form.peer is not None
        off = distance(stream_outputs(form.peer, program, pulses[:checked]), expected, program)
        if not off <= MAX_ERROR:
            raise WrongResultError(f"{entry.name}: the output of {name} is off by {off:.1e}")
    forms: list[RuntimeForm] = []
    for runtime, how, make in candidates(entry, proto, twin, program, pulses[0]):
        forms.append(try_form(runtime, how, make, program, pulses[:checked], expected))
    best = dict(fastest(forms, pulses, pilot_steps)) | first
    return Contest(entry, program, pulses, tuple(forms), best)


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
