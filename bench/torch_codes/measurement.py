"""One model: exported, streamed, compared with the module, timed."""

import functools
import itertools
import statistics
import time
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

import numpy as np

import pulse
from bench.measurement.noise import noise_pulses
from bench.measurement.timing import alternate, make_stepper
from bench.models import Explicit
from bench.peers.onnxruntime_peer import OnnxRuntimePeer
from bench.peers.outputs import WrongResultError, stream_outputs, streams_of
from bench.peers.pulse_peer import PulsePeer
from bench.peers.runtime_form import try_form
from bench.torch_codes.author_run import run_author, time_whole
from bench.torch_codes.min_delay import STREAM_EXAMPLES, min_delay_of_case
from bench.torch_codes.module_calls import difference, draw_inputs, module_outputs, streamed_outputs
from bench.torch_codes.outcome import ModelOutcome
from bench.torch_codes.published_model import ModuleCase, PublishedModel
from pulse.errors import FaultError, InputError, PulseError, PulseWarning
from pulse.facts import Array
from pulse.loading.loaded_model import LoadedModel
from pulse.models import PulsedModel
from pulse.program.program import Program
from pulse.program.whole_stream import stream_whole

STEPS_S = 0.5
"""Seconds for which a model is timed."""
MAX_STEPS, MIN_STEPS = 2000, 3
"""Maximum and minimum number of steps that are timed."""
ROUNDS = 5
"""Rounds in which the contestants alternate."""
CHECKED_PULSES = 8
"""Pulses that are compared with those of another runtime, after the delay."""


def measure(published: PublishedModel) -> ModelOutcome:
    """Return the row of a model; a refusal of its package or of pulse is a row too."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    torch.set_num_threads(1)
    outcome = ModelOutcome(published.name, {name: _version(name) for name in published.packages})
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        try:
            case = published.make()
        except Exception as error:
            outcome.reason = f"{type(error).__name__}: {error}"
            return outcome
        outcome.change, outcome.exported = case.change, case.options.get("method", "forward")
        case.module.eval()
        try:
            _stream(case, outcome)
        except PulseError as error:
            outcome.reason = str(error)
    messages = (str(warning.message) for warning in records if issubclass(warning.category, PulseWarning))
    outcome.notes = tuple(dict.fromkeys(messages))
    return outcome


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _stream(case: ModuleCase, outcome: ModelOutcome) -> None:
    started_s = time.perf_counter()
    model = pulse.from_torch(case.module, case.example, **case.options)
    outcome.export_s, outcome.stage = time.perf_counter() - started_s, "exported"
    if case.chunking is not None:
        _stream_chunks(case, outcome, pulse.load(model, chunking=case.chunking), started_s)
        return
    typed = model.analyse()
    typed = typed.with_outputs(streamed_outputs(case, list(typed.outputs))).declutter()
    pulsed = typed.pulsify(pulse=case.pulse, max_context=case.max_context)
    outcome.stage, outcome.pulse = "pulsified", pulsed.pulse
    outcome.delays = tuple(port.delay for port in pulsed.outputs)
    program = pulsed.compile()
    outcome.convert_s, outcome.stage = time.perf_counter() - started_s, "compiled"
    feeds = draw_inputs(typed, case, STREAM_EXAMPLES)
    streamed = stream_whole(program, feeds, 0.0)
    outcome.error = difference(module_outputs(case, feeds), streamed)
    outcome.stage = "streamed"
    outcome.step_us = _step_us(program, case.max_context)
    outcome.realtime = outcome.step_us * 1e-6 * case.rate_hz / pulsed.pulse
    outcome.onnxruntime = None if case.max_context else _onnxruntime_times(program)
    outcome.min_delay = min_delay_of_case(case, typed, pulsed)
    _compare_author(case, outcome, pulsed, feeds, next(iter(streamed.values())))


def _stream_chunks(case: ModuleCase, outcome: ModelOutcome, model: LoadedModel, started_s: float) -> None:
    """Stream a module of chunks, compared with the author's own calls. ``started_s``: of the export."""
    if case.twin is None:
        raise InputError("a module of chunks is compared with its author's calls: give its twin")
    program = pulse.stream(model)
    outcome.convert_s, outcome.stage = time.perf_counter() - started_s, "compiled"
    outcome.pulse, outcome.delays = program.pulse, tuple(port.delay for port in program.outputs)
    first, output = program.inputs[0], program.outputs[0]
    shape = list(first.shape)
    shape[first.axis or 0] = CHECKED_PULSES * program.pulse
    feeds = {first.name: np.random.default_rng(0).standard_normal(shape).astype(first.dtype)}
    streamed = stream_whole(program, feeds, 0.0)[output.name]
    run = run_author(
        case.twin,
        [(feeds[first.name], first.axis)],
        program.pulse,
        streamed,
        output.axis or 0,
        case.rate_hz,
    )
    outcome.error = outcome.twin = run.error
    outcome.author, outcome.stage = run.realtime, "streamed"
    outcome.step_us = _step_us(program, None)
    outcome.realtime = outcome.step_us * 1e-6 * case.rate_hz / program.pulse
    outcome.onnxruntime = _onnxruntime_times(program)


def _compare_author(
    case: ModuleCase, outcome: ModelOutcome, pulsed: PulsedModel, feeds: Mapping[str, Array], streamed: Array
) -> None:
    """Measure the author's own code: its speed, and its streaming mode."""
    first, output = pulsed.inputs[0], pulsed.outputs[0]
    frames = feeds[first.name].shape[first.axis or 0]
    if case.twin is None:
        outcome.author = time_whole(lambda: module_outputs(case, feeds), frames / case.rate_hz)
        return
    inputs = [(feeds[port.name], port.axis) for port in pulsed.inputs]
    run = run_author(case.twin, inputs, pulsed.pulse, streamed, output.axis or 0, case.rate_hz)
    outcome.twin, outcome.author = run


def _step_us(program: Program, max_frames: int | None) -> float:
    """Return the median time of a step in us; a stream begins again before it exceeds ``max_frames``."""
    state = program.spawn()
    max_steps = MAX_STEPS if max_frames is None else max(max_frames // program.pulse, 1)
    rng = np.random.default_rng(0)
    feeds = {
        port.name: rng.standard_normal(port.shape).astype(port.dtype)
        if np.dtype(port.dtype).kind == "f"
        else np.zeros(port.shape, port.dtype)
        for port in program.inputs
    }
    times: list[float] = []
    until = time.perf_counter() + STEPS_S
    while time.perf_counter() < until and len(times) < MAX_STEPS:
        if times and len(times) % max_steps == 0:
            state.reset()
        started_s = time.perf_counter()
        try:
            state.step(feeds)
        except FaultError:  # past the end of a table of positions
            state.reset()
            continue
        times.append(time.perf_counter() - started_s)
    return statistics.median(times) * 1e6


def _onnxruntime_times(program: Program) -> float | None:
    """Return how many times longer a step takes in onnxruntime, where the states are inputs, as pulse exports it."""
    pulses, peer = noise_pulses(program, 1.0), PulsePeer(program)
    make = functools.partial(_export_peer, program, pulses[0])
    try:
        delayed = max(-(-port.delay // port.frames) for port in streams_of(program))
        checked = list(itertools.islice(itertools.cycle(pulses), delayed + CHECKED_PULSES))
        outputs = stream_outputs(peer, program, checked)
        form = try_form("onnxruntime", "exported", make, program, checked, outputs)
        if form.peer is None:
            return None
        started_s = time.perf_counter()
        form.peer.step(pulses[0])
        steps = max(min(int(STEPS_S / ROUNDS / (time.perf_counter() - started_s)), MAX_STEPS), MIN_STEPS)
        steps_by_name = {"pulse": peer.step, "onnxruntime": form.peer.step}
        steppers = {name: make_stepper(step, pulses) for name, step in steps_by_name.items()}
        timed = alternate(steppers, ROUNDS, steps, steps)
    except (FaultError, WrongResultError):  # past the end of a table of positions; no output before the end
        return None
    return timed.ratio("onnxruntime", "pulse").median


def _export_peer(program: Program, sample: Mapping[str, Array]) -> OnnxRuntimePeer:
    return OnnxRuntimePeer(Explicit.of(program.model), sample)
