"""How a chunk model is called: its states, and the new frames of each other input and output."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from pulse.chunks.axes import axis_of_one_frame, output_axes, time_axis
from pulse.chunks.axis_proposals import propose_axis
from pulse.chunks.chunking import DETECT_ALL, CallPlan, Chunking, PortFrames
from pulse.chunks.state_names import next_names
from pulse.chunks.states import CallState, Candidates
from pulse.errors import PulseWarning, PulsifyError
from pulse.facts import TypedFact, shape_text
from pulse.support.wording import count_of, spell
from pulse.typed import TypedNetwork, Variable

MAX_DELAY_CALLS = 1 << 16
"""Maximum number of calls whose output is dropped; more are refused, since a proof runs them in each of its streams."""
GROWING_CACHES = (
    "a cache that grows with each call is not supported; export the model with a cache of constant length: a window of "
    "the last frames, cut after each call, and a mask of those that are not there yet"
)
"""Why such a state is refused, and what would help."""


def find_candidates(typed: TypedNetwork, chunking: Chunking = DETECT_ALL) -> Candidates:
    """Return the possible states of a model of constant shapes that the user has described in part.

    States that its file keeps itself are omitted. Raises PulsifyError: a state grows with each call, by its name.
    """
    inputs, outputs = typed.inputs, typed.outputs
    if chunking.states is None:
        _refuse_growing(typed)
    variable_names = {name for variable in typed.variables for name in (variable.input, variable.output)}
    return Candidates(
        [name for name in inputs if name not in variable_names],
        [name for name in outputs if name not in variable_names],
        fits=lambda name, other: inputs[name].agrees(outputs[other]),
        can_stream=lambda name: time_axis(_sizes(name, inputs[name]), inputs[name].dtype) is not None,
        is_floating=lambda name: np.issubdtype(inputs[name].dtype, np.floating),
        signals=chunking.axes,
    )


def plan_calls(
    typed: TypedNetwork,
    chunking: Chunking,
    outputs: Sequence[str] | None,
    file_axes: Mapping[str, int | None],
) -> CallPlan:
    """Return how a model of constant shapes is called.

    chunking  the user's description
    outputs   the outputs to keep; None: all but the states' next values
    file_axes  input or output -> its time axis, if the file leaves the length of a chunk open; None for an output
        that does not depend on this length
    Raises PulsifyError: nothing streams, or a state, an axis, a context does not fit, or an axis is ambiguous
    """
    for name, fact in (*typed.inputs.items(), *typed.outputs.items()):
        _sizes(name, fact)
    candidates = find_candidates(typed, chunking)
    pairs = candidates.pairs() if chunking.states is None else candidates.find_given(chunking.states)
    pairs += tuple(CallState(kept.input, kept.output, kept.reason) for kept in typed.variables)
    _check_pairs(typed, pairs)
    states = {pair.input for pair in pairs}
    inputs = [
        _input_frames(typed, name, chunking, file_axes.get(name))
        for name in typed.inputs
        if name not in states
    ]
    streams = [port for port in inputs if port.axis is not None]
    if not streams:
        raise _no_stream(typed, inputs, pairs)
    # booleans are a mask, which does not count the frames of a chunk
    main = next((port for port in streams if typed.inputs[port.name].dtype != np.bool_), streams[0])
    next_values = {pair.output for pair in pairs}
    output_names = [name for name in typed.outputs if name not in next_values] if outputs is None else outputs
    if not output_names:
        raise PulsifyError(
            f"every output is the next value of a state; name the outputs to keep with {spell('outputs')}"
        )
    port_frames = [
        _output_frames(typed, name, chunking, None if name in next_values else main, file_axes)
        for name in output_names
    ]
    streaming = [port.name for port in streams]
    _require(chunking.axes, [port.name for port in (*inputs, *port_frames)], "an axis", "an input or output")
    _require(chunking.context, streaming, "a context", "a streaming input")
    _require(chunking.initial, states, "an initial value", "a state")
    _require(
        chunking.delay,
        [port.name for port in port_frames if port.axis is not None],
        "a delay",
        "a streaming output",
    )
    for port in port_frames:
        if port.axis is not None and chunking.delay.get(port.name, 0) > MAX_DELAY_CALLS * port.frames:
            raise PulsifyError(
                f"{spell('delay', {port.name: chunking.delay[port.name]})}: each call makes "
                f"{count_of(port.frames, 'frame')}, and a delay has at most {MAX_DELAY_CALLS:,} calls; give at most "
                f"{MAX_DELAY_CALLS * port.frames}"
            )
    if main.name not in chunking.context:
        _warn_about_context(typed, main, port_frames)
    return CallPlan(pairs, tuple(inputs), tuple(port_frames), dict(chunking.context))


def _warn_about_context(typed: TypedNetwork, main: PortFrames, outputs: Iterable[PortFrames]) -> None:
    """Warn where sound goes in and fewer frames of sound come out: chunks that overlap look like that."""
    if not _is_signal(typed.inputs[main.name]):
        return
    for port in outputs:
        if 1 < port.frames < main.frames and _is_signal(typed.graph.fact(typed.graph.find(port.name))):
            past = main.frames - port.frames
            warnings.warn(
                f"{typed.title}: each call takes {count_of(main.frames, 'frame')} of {main.name} and returns "
                f"{port.frames} of "
                f"{port.name}; if a chunk begins with frames of the previous one, say so, as in "
                f"{spell('context', {main.name: past})}; {spell('context', {main.name: 0})} if not",
                PulseWarning,
                stacklevel=2,
            )


def _is_signal(fact: TypedFact) -> bool:
    """Return whether a chunk has floating values along one axis at most."""
    return np.issubdtype(fact.dtype, np.floating) and sum(dim != 1 for dim in fact.shape) <= 1


def _sizes(name: str, fact: TypedFact) -> tuple[int, ...]:
    if any(not dim.is_const for dim in fact.shape):
        example = ",".join(str(dim) if dim.is_const else "1" for dim in fact.shape)
        raise PulsifyError(
            f"{name}: {fact} is not the shape of one chunk; give every dim a number when you load the model, as in "
            f"{spell('inputs', {name: example})}"
        )
    return fact.sizes


def _check_pairs(typed: TypedNetwork, pairs: Iterable[CallState]) -> None:
    for pair in pairs:
        before, after = typed.inputs[pair.input], typed.outputs[pair.output]
        if not before.agrees(after):
            raise _changing_state(typed, pair.input, pair.output)


def _refuse_growing(typed: TypedNetwork) -> None:
    """Refuse a model with a cache that grows, as names that only states have tell."""
    for name, before in typed.inputs.items():
        for other, rule in next_names(name):
            if rule.is_certain and other in typed.outputs and _grows(before, typed.outputs[other]):
                raise _changing_state(typed, name, other)


def _grows(before: TypedFact, after: TypedFact) -> bool:
    """Return whether the next value of a state differs by more entries along one axis only."""
    if before.dtype != after.dtype or before.rank != after.rank:
        return False
    pairs = [(int(dim), int(other)) for dim, other in zip(before.shape, after.shape) if dim != other]
    return len(pairs) == 1 and pairs[0][0] < pairs[0][1]


def _changing_state(typed: TypedNetwork, name: str, other: str) -> PulsifyError:
    before, after = typed.inputs[name], typed.outputs[other]
    reason = (
        f"state {name}={other}: {name} is {before} and {other} is {after}; a state keeps its type and shape"
    )
    return PulsifyError(f"{reason}; {GROWING_CACHES}" if _grows(before, after) else reason)


def _input_frames(typed: TypedNetwork, name: str, chunking: Chunking, file_axis: int | None) -> PortFrames:
    fact, context = typed.inputs[name], chunking.context.get(name, 0)
    sizes = _sizes(name, fact)
    if name in chunking.axes:
        axis, reason = _require_axis(name, chunking.axes[name], sizes), "as given"
    elif file_axis is not None:
        axis, reason = file_axis, "of any length in the file"
    else:
        of_file = any(variable.reason == Variable.reason for variable in typed.variables)
        after_batch = of_file and len(sizes) > 2 and sizes[0] == 1
        axis_and_reason = (1, "the one after the batch") if after_batch else time_axis(sizes, fact.dtype)
        if axis_and_reason is None:
            reason = f"its shape {shape_text(sizes)} is not a chunk's; given once"
            return PortFrames(name, None, 0, reason, propose_axis(typed, name))
        axis, reason = axis_and_reason
    if not 0 <= context < sizes[axis]:
        raise PulsifyError(
            f"{spell('context', {name: context})}: a chunk has {count_of(sizes[axis], 'frame')} on axis {axis}, and "
            f"some of them must be new; give at most {sizes[axis] - 1}"
        )
    return PortFrames(name, axis, sizes[axis] - context, reason)


def _output_frames(
    typed: TypedNetwork,
    name: str,
    chunking: Chunking,
    main: PortFrames | None,
    file_axes: Mapping[str, int | None],
) -> PortFrames:
    """Return the frames of an output; ``main``: the input that counts them, None for the next value of a state."""
    fact = typed.graph.fact(typed.graph.find(name))
    sizes = _sizes(name, fact)
    if name in chunking.axes:
        axis = _require_axis(name, chunking.axes[name], sizes)
        return PortFrames(name, axis, sizes[axis], "as given")
    if main is None or main.axis is None:
        return PortFrames(name, None, 0, "a state: known when the stream has ended")
    chunk = typed.inputs[main.name].sizes
    if name in file_axes:
        axes = _axes_in_file(sizes, chunk, main.axis, main.frames, file_axes[name])
    else:
        axes = output_axes(sizes, fact.dtype, chunk, main.axis, main.frames)
    if not axes:
        return PortFrames(name, None, 0, "no time axis: known when the stream has ended")
    if len(axes) > 1:
        raise _ambiguity(name, sizes, main, [axis for axis, _ in axes])
    ((axis, reason),) = axes
    return PortFrames(name, axis, sizes[axis], reason)


def _axes_in_file(
    shape: Sequence[int], chunk: Sequence[int], axis: int, frames: int, file_axis: int | None
) -> list[tuple[int, str]]:
    """Return the possible axes of an output's frames if the file leaves the length of a chunk open; see ``plan_calls``.

    An output of constant shape has one frame per chunk, or those of the only length that the model takes.
    """
    is_alike = len(shape) == len(chunk)
    if file_axis is not None:
        is_main = is_alike and file_axis == axis
        return [(file_axis, "like the input" if is_main else "the one that grows with the chunk")]
    axes = {axis: "like the input"} if is_alike and shape[axis] == frames else {}
    single = axis_of_one_frame(shape)
    return list((axes if single is None else {single: "one frame per chunk", **axes}).items())


def _ambiguity(name: str, shape: Sequence[int], main: PortFrames, axes: Sequence[int]) -> PulsifyError:
    best = main.axis if main.axis in axes else axes[0]
    choices = " or ".join(f"axis {axis} ({shape[axis]} in a chunk)" for axis in sorted(axes))
    return PulsifyError(
        f"{name}: its shape {shape_text(shape)} does not tell its time axis: {choices}, for "
        f"{count_of(main.frames, 'new frame')} "
        f"of {main.name}; give it, as in {spell('axes', {name: best})}"
    )


def _require_axis(name: str, axis: int, sizes: Sequence[int]) -> int:
    if not 0 <= axis < len(sizes) or sizes[axis] == 0:
        option = spell("axes", {name: axis})
        if not sizes:
            raise PulsifyError(f"{option}: {name} is a scalar, which has no axis; omit it")
        raise PulsifyError(
            f"{option}: {name} has the shape {','.join(map(str, sizes))}; give one of its axes, counted from "
            "0, that is not empty"
        )
    return axis


def _require(names: Iterable[str], port_names: Collection[str], subject: str, role: str) -> None:
    for name in names:
        if name not in port_names:
            choices = f"choose one of {', '.join(port_names)}" if port_names else "there is none"
            raise PulsifyError(f"{subject} is given for {name}, which is not {role}; {choices}")


def _no_stream(typed: TypedNetwork, inputs: Sequence[PortFrames], pairs: Sequence[CallState]) -> PulsifyError:
    possible = {port.name: port.proposal for port in inputs if port.proposal is not None}
    if possible:
        name, axis = next(iter(possible.items()))
        texts = "; ".join(f"{other}: {typed.inputs[other]}" for other in possible)
        return PulsifyError(
            f"no input streams: {texts}; give the time axis of an input that has the frames of a chunk, as in "
            f"{spell('axes', {name: axis})}, or the states with {spell('states')} if one of them is the stream"
        )
    others = [port.name for port in inputs]
    if not pairs:
        return PulsifyError(
            f"no input streams: {', '.join(others) or 'none'} has no time axis; export the model with one"
        )
    states = ", ".join(map(str, pairs))
    rest = {pair.input: pair.output for pair in pairs[1:]}
    return PulsifyError(
        f"no input streams: the others are states ({states}); give the states without the stream's input, as in "
        f"{spell('states', rest)}"
    )
