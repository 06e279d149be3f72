"""One model: exported, streamed, compared with the module, timed."""

import functools
import itertools
import math
import statistics
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import numpy as np

import pulse
from bench.measurement.noise import noise_pulses
from bench.measurement.timing import alternate, make_stepper
from bench.models import Explicit
from bench.peers.form import try_form
from bench.peers.onnxruntime_peer import OnnxRuntimePeer
from bench.peers.outputs import WrongResultError, stream_outputs, streams_of
from bench.peers.pulse_peer import PulsePeer
from bench.torch_codes.author_run import MAX_PULSES, author_copy, least_delay, run_author, time_whole
from bench.torch_codes.published_model import Code, Subject
from pulse.errors import FaultError, InputError, PulseError, PulseWarning
from pulse.facts import Array
from pulse.loading.loaded import Loaded
from pulse.models import PulsedModel, TypedModel
from pulse.program.program import Program
from pulse.program.whole_stream import stream_whole

Output = TypeVar("Output")
STEPS_S = 0.5
"""Seconds for which a model is timed."""
MAX_STEPS, MIN_STEPS = 2000, 3
"""The most and the fewest steps that are timed."""
ROUNDS = 5
"""Rounds in which the contestants alternate."""
CHECKED_PULSES = 8
"""Pulses that are compared with those of another runtime, after the delay."""
STREAM_EXAMPLES = 2
"""A stream has this many times the frames of the example."""


@dataclass
class Outcome:
    """A row of the table.

    packages   the versions that were run
    change     what is not as its author wrote it
    stage      how far it came: built, exported, pulsified, compiled, streamed; ``reason`` says what stopped it
    error      the largest difference of the stream from the module, as a share of the module's largest value
    delays     of the outputs, in their frames
    least      the least delay that any stream of this pulse can have: of the first output; None for codes
    exported   how: the module itself, or one of its methods
    convert_s  seconds from the module to a program, its export and its comparison in them
    export_s   of these, ``from_torch``
    step_us    microseconds of a step, median
    realtime   seconds of computing for a second of sound
    author     the same of the author's code: its own streaming mode, or else the module on the whole input
    twin       the largest difference of the stream from the author's own streaming mode; None: it has none
    onnxruntime  how many times longer a step takes there, in turns; None: the exported model does not run there, or
                 gives another result
    """

    name: str
    packages: dict[str, str]
    change: str = ""
    stage: str = "built"
    reason: str = ""
    pulse: int = 0
    error: float = 0.0
    delays: tuple[int, ...] = ()
    least: int | None = None
    exported: str = "forward"
    convert_s: float = 0.0
    export_s: float = 0.0
    step_us: float = 0.0
    realtime: float = 0.0
    author: float | None = None
    twin: float | None = None
    onnxruntime: float | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "Outcome":
        """Return the outcome of the data of ``json``."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return cls(**values)

    def json(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return asdict(self)


def measure(code: Code) -> Outcome:
    """Return the row of a model; a refusal of its package or of pulse is a row too."""
    import torch  # pyright: ignore[reportMissingImports]

    torch.manual_seed(0)
    torch.set_num_threads(1)
    outcome = Outcome(code.name, {name: _version(name) for name in code.packages})
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        try:
            subject = code.make()
        except Exception as error:
            outcome.reason = f"{type(error).__name__}: {error}"
            return outcome
        outcome.change, outcome.exported = subject.change, subject.options.get("method", "forward")
        subject.module.eval()
        try:
            _stream(subject, outcome)
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


def _stream(subject: Subject, outcome: Outcome) -> None:
    started_s = time.perf_counter()
    model = pulse.from_torch(subject.module, subject.example, **subject.options)
    outcome.export_s, outcome.stage = time.perf_counter() - started_s, "exported"
    if subject.chunking is not None:
        _stream_chunks(subject, outcome, pulse.load(model, chunking=subject.chunking), started_s)
        return
    typed = model.analyse()
    typed = typed.with_outputs(_streamed_outputs(subject, list(typed.outputs))).declutter()
    pulsed = typed.pulsify(pulse=subject.pulse, max_context=subject.max_context)
    outcome.stage, outcome.pulse = "pulsified", pulsed.pulse
    outcome.delays = tuple(port.delay for port in pulsed.outputs)
    program = pulsed.compile()
    outcome.convert_s, outcome.stage = time.perf_counter() - started_s, "compiled"
    feeds = draw(typed, subject, STREAM_EXAMPLES)
    streamed = stream_whole(program, feeds, 0.0)
    outcome.error = difference(module_outputs(subject, feeds), streamed)
    outcome.stage = "streamed"
    outcome.step_us = _step_us(program, subject.max_context)
    outcome.realtime = outcome.step_us * 1e-6 * subject.rate_hz / pulsed.pulse
    outcome.onnxruntime = None if subject.max_context else _onnxruntime_times(program)
    outcome.least = _least(subject, typed, pulsed)
    _compare_author(subject, outcome, pulsed, feeds, next(iter(streamed.values())))


def _stream_chunks(subject: Subject, outcome: Outcome, model: Loaded, started_s: float) -> None:
    """Stream a module of chunks, compared with the author's own calls. ``started_s``: of the export."""
    if subject.twin is None:
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
        subject.twin,
        [(feeds[first.name], first.axis)],
        program.pulse,
        streamed,
        output.axis or 0,
        subject.rate_hz,
    )
    outcome.error = outcome.twin = run.error
    outcome.author, outcome.stage = run.realtime, "streamed"
    outcome.step_us = _step_us(program, None)
    outcome.realtime = outcome.step_us * 1e-6 * subject.rate_hz / program.pulse
    outcome.onnxruntime = _onnxruntime_times(program)


def _compare_author(
    subject: Subject, outcome: Outcome, pulsed: PulsedModel, feeds: Mapping[str, Array], streamed: Array
) -> None:
    """Measure the author's own code: its speed, and its streaming mode."""
    first, output = pulsed.inputs[0], pulsed.outputs[0]
    frames = feeds[first.name].shape[first.axis or 0]
    if subject.twin is None:
        outcome.author = time_whole(lambda: module_outputs(subject, feeds), frames / subject.rate_hz)
        return
    inputs = [(feeds[port.name], port.axis) for port in pulsed.inputs]
    run = run_author(subject.twin, inputs, pulsed.pulse, streamed, output.axis or 0, subject.rate_hz)
    outcome.twin, outcome.author = run


def _least(subject: Subject, typed: TypedModel, pulsed: PulsedModel) -> int | None:
    """Return the least delay of the first output, by an input that is longer than its frames look ahead."""
    first, output = pulsed.inputs[0], pulsed.outputs[0]
    if len(typed.inputs) > 1 or first.axis is None or output.axis is None or not output.frames:
        return None
    ahead = -(-output.delay // output.frames) + MAX_PULSES
    example = draw(typed, subject, 1)[first.name]
    if example.dtype.kind != "f":
        return None
    times = max(STREAM_EXAMPLES, -(-2 * ahead * pulsed.pulse // example.shape[first.axis]))
    x = draw(typed, subject, STREAM_EXAMPLES if subject.max_context else times)[first.name]
    place = 0 if subject.outputs is None else subject.outputs[0]
    try:
        wide = replace(subject, module=author_copy(subject.module).double())
        return _bound(wide, x.astype(np.float64), pulsed, place)
    except (RuntimeError, TypeError):  # a constant of its own is f32
        return _bound(subject, x, pulsed, place)


def _bound(subject: Subject, x: Array, pulsed: PulsedModel, place: int) -> int | None:
    axis, output = pulsed.inputs[0].axis or 0, pulsed.outputs[0]
    run = functools.partial(_call, subject)
    return least_delay(
        lambda leaf: run([leaf]), x, axis, output.axis or 0, pulsed.pulse, output.frames, place
    )


def draw(typed: TypedModel, subject: Subject, times: int) -> dict[str, Array]:
    """Return inputs ``times`` as long as the example, of its frames in random order."""
    rng = np.random.default_rng(0)
    leaves = list(_arrays(subject.example))
    if len(leaves) > len(typed.inputs):
        leaves = [leaf for leaf in leaves if not _may_be_length(leaf)]
    feeds: dict[str, Array] = {}
    for (name, fact), value in zip(typed.inputs.items(), leaves, strict=True):
        for axis, dim in enumerate(fact.shape):
            if dim.symbols:
                frames = value.shape[axis]
                value = np.take(value, np.random.default_rng(1).integers(0, frames, times * frames), axis)
        if value.dtype.kind == "f" and (value == value.flat[0]).all():
            value = rng.standard_normal(value.shape).astype(value.dtype)
        feeds[name] = value
    return feeds


def _may_be_length(leaf: Any) -> bool:
    """Return whether an array or tensor is one integer: a length, which ``from_torch`` computes by itself."""
    return math.prod(leaf.shape) == 1 and "int" in str(leaf.dtype)


def _arrays(example: Any) -> list[Array]:
    import torch  # pyright: ignore[reportMissingImports]

    return [leaf.numpy() for leaf in torch.utils._pytree.tree_leaves(example) if torch.is_tensor(leaf)]


def module_outputs(subject: Subject, feeds: Mapping[str, Array]) -> list[Array]:
    """Return the module's outputs for these inputs, without streaming; without lengths if the model computes them."""
    import torch  # pyright: ignore[reportMissingImports]

    follows = len(feeds) < len(_arrays(subject.example))
    with torch.no_grad():
        result = _call(subject, [torch.from_numpy(value) for value in feeds.values()])
    arrays = [
        (torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf).numpy()
        for leaf in torch.utils._pytree.tree_leaves(result)
        if torch.is_tensor(leaf) and not (follows and _may_be_length(leaf))
    ]
    return _streamed_outputs(subject, arrays)


def _streamed_outputs(subject: Subject, every: list[Output]) -> list[Output]:
    """Return the outputs that are streamed."""
    return every if subject.outputs is None else [every[place] for place in subject.outputs]


def _call(subject: Subject, tensors: Sequence[Any]) -> Any:
    """Return the module's result for other tensors than the example's; a length that is not given follows them."""
    import torch  # pyright: ignore[reportMissingImports]

    tree = torch.utils._pytree
    leaves, structure = tree.tree_flatten(subject.example)
    own_tensors = [leaf for leaf in leaves if torch.is_tensor(leaf)]
    times, tensors_left = tensors[0].numel() / own_tensors[0].numel(), iter(tensors)

    def fill(leaf: Any) -> Any:
        if not torch.is_tensor(leaf):
            return leaf
        if len(own_tensors) > len(tensors) and _may_be_length(leaf):
            return (leaf * times).round().to(leaf.dtype)
        return next(tensors_left)

    filled = tree.tree_unflatten([fill(leaf) for leaf in leaves], structure)
    call = getattr(subject.module, subject.options.get("method", "forward"))
    if isinstance(filled, dict):
        result = call(**filled)
    else:
        result = call(*filled) if isinstance(filled, tuple | list) else call(filled)
    return dict(result) if isinstance(result, Mapping) else result


def difference(expected: list[Array], streams: Mapping[str, Array]) -> float:
    """Return the largest difference of all outputs, each relative to its largest value; inf if shapes differ."""
    worst = 0.0
    for value, streamed in zip(expected, streams.values(), strict=True):
        if value.shape != streamed.shape:
            return float("inf")
        if value.size:
            exact = value.astype(np.float64)
            worst = max(worst, float(np.abs(streamed - exact).max() / max(np.abs(exact).max(), 1e-9)))
    return worst


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
        steppers = {"pulse": peer.step, "onnxruntime": form.peer.step}
        turns = {name: make_stepper(step, pulses) for name, step in steppers.items()}
        timed = alternate(turns, ROUNDS, steps, steps)
    except (FaultError, WrongResultError):  # past the end of a table of positions; no output before the end
        return None
    return timed.ratio("onnxruntime", "pulse").median


def _export_peer(program: Program, sample: Mapping[str, Array]) -> OnnxRuntimePeer:
    return OnnxRuntimePeer(Explicit.of(program.model), sample)
