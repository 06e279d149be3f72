"""A model of chunks as an ordinary typed model: a scan that runs it once for each chunk."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from pulse.chunks.call_planning import plan_calls
from pulse.chunks.chunking import CallPlan, Chunking, PortFrames
from pulse.chunks.initial_values import initial_value
from pulse.chunks.timing import ChunkTiming
from pulse.dim import ZERO, TDim, scope_of
from pulse.errors import PulsifyError
from pulse.facts import Array, TypedFact
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.pad import Pad
from pulse.ops.scan import Scan, ScanAxis
from pulse.ops.shape import AddAxis, RemoveAxis, Reshape
from pulse.ops.slice import Slice
from pulse.ops.time_length import StreamEnd
from pulse.pulsify.network import PulsedNetwork
from pulse.substitution import Terms
from pulse.support.budget import count_spending
from pulse.support.wording import count_of, spell
from pulse.typed import TypedGraph, TypedNetwork, add_constant, add_source, sources
from pulse.wiring import wire

if TYPE_CHECKING:
    from pulse.pulsify.driver import PulsifyOptions

SYMBOL = "T"
"""The frames of a chunk model's stream, if its file has no name for them."""


def scan_over_chunks(
    typed: TypedNetwork,
    chunking: Chunking,
    symbol: str | None,
    outputs: Sequence[str] | None,
    file_axes: Mapping[str, int | None],
) -> tuple[TypedNetwork, CallPlan]:
    """Return a chunk model over a whole stream: its author's loop, as one typed model.

    The stream is filled up with zeros to whole chunks; each runs the model once, after its frames of the past and
    with the states of the call before; of each output there are ``ceil(frames of the stream * rate)`` frames, without
    its delay. An output without frames is what the last call gave.

    typed     the model of one call, of constant shapes
    chunking  how it is called
    symbol    the name of the stream's length
    outputs, file_axes  see ``plan_calls``
    Raises    PulsifyError: nothing streams; a state, an axis, a context, the pulse does not fit; an axis is ambiguous
    """
    plan = plan_calls(typed, chunking, outputs, file_axes)
    _require_whole_chunks(plan, chunking.pulse)
    timing = ChunkTiming.of(plan, chunking, symbol or SYMBOL)
    initial = {**_initial_values(typed, chunking), **chunking.initial}
    return scan_over_calls(typed, plan, initial, timing), plan


def _initial_values(typed: TypedNetwork, chunking: Chunking) -> dict[str, Array]:
    """Return the initial values of a file's variables. Raises PulsifyError: neither file nor user states one."""
    missing = [
        variable.input
        for variable in typed.variables
        if variable.initial is None and variable.input not in chunking.initial
    ]
    if missing:
        raise PulsifyError(
            f"{typed.title}: the file has no first value for its state {', '.join(missing)}; give one, as in "
            f"{spell('initial', {missing[0]: 0})}"
        )
    return {variable.input: variable.initial for variable in typed.variables if variable.initial is not None}


def scan_over_calls(
    typed: TypedNetwork, plan: CallPlan, initial: Mapping[str, Any], timing: ChunkTiming
) -> TypedNetwork:
    """Return a scan over calls whose position in time is known, such as the calls of a model in pulses."""
    return _Scanning(typed, plan, initial, timing).model()


def pulsify_chunks(
    typed: TypedNetwork, plan: CallPlan, pulse: int | None = None, **options: "Unpack[PulsifyOptions]"
) -> PulsedNetwork:
    """Return a scan over chunks in pulses of whole chunks, one by default. Raises PulsifyError: another pulse."""
    _require_whole_chunks(plan, pulse)
    from pulse.pulsify.driver import pulsify

    with count_spending(typed.spending):
        return replace(pulsify(typed, None, plan.pulse if pulse is None else pulse, **options), chunks=plan)


def _require_whole_chunks(plan: CallPlan, pulse: int | None) -> None:
    if pulse is not None and pulse > 0 and pulse % plan.pulse:
        past = "".join(f", after {count} of context of {name}" for name, count in plan.context.items())
        raise PulsifyError(
            f"pulse {pulse}: one call of the model takes {count_of(plan.pulse, 'new frame')}{past}; use a multiple "
            "of that, or "
            "give another context or other sizes of the inputs"
        )


class _Scanning:
    """The conversion of a model of one call to a scan over all calls."""

    def __init__(
        self, typed: TypedNetwork, plan: CallPlan, initial: Mapping[str, Any], timing: ChunkTiming
    ) -> None:
        self._typed, self._plan, self._initial, self._timing = typed, plan, initial, timing
        self._scope = scope_of(timing.symbol)
        self._graph = TypedGraph()
        self._calls = timing.calls(plan)
        self._ends: dict[str, str] = {}

    def model(self) -> TypedNetwork:
        """Return the scan between the frames of its inputs and of its outputs."""
        plan, graph = self._plan, self._graph
        streaming = [port for port in plan.inputs if port.axis is not None]
        once = [port.name for port in plan.inputs if port.axis is None]
        frames = [port for port in plan.outputs if port.axis is not None]
        last = [port.name for port in plan.outputs if port.axis is None]
        body, initial = self._body([port.name for port in frames], last)
        x = [self._split_chunks(port) for port in streaming]
        captured = [self._add_constant_input(name) for name in once]
        states = [add_constant(graph, f"{name}.initial", value) for name, value in initial.items()]
        scan = Scan(
            body,
            tuple(initial),
            tuple(port.name for port in streaming),
            tuple(once),
            tuple(ScanAxis(port.axis or 0) for port in streaming),
            tuple(ScanAxis(port.axis or 0) for port in frames),
        )
        scan_outputs = wire(graph, "chunks", scan, [*x, *states, *captured])
        results = {port.name: self._join_chunks(port, y) for port, y in zip(frames, scan_outputs)}
        ends = dict(zip(initial, scan_outputs[len(frames) :]))
        results |= {name: ends[self._ends[name]] for name in last}
        graph.inputs = sources(graph)
        names = [port.name for port in plan.outputs]
        graph.set_outputs([results[name] for name in names], names)
        typed = self._typed
        return TypedNetwork(graph, self._scope, typed.title, dict(typed.metadata), typed.origins)

    def _add_constant_input(self, name: str) -> OutletId:
        """Return an input without frames: the same value in every call."""
        if name == self._timing.end:
            return wire(self._graph, name, StreamEnd(TDim.of(self._timing.symbol)), [])[0]
        return add_source(self._graph, name, self._typed.inputs[name])

    def _split_chunks(self, port: PortFrames) -> OutletId:
        """Return an input as ``[…, chunks, frames of a chunk, …]``, zeros after its end."""
        axis = port.axis or 0
        fact, length = self._typed.inputs[port.name], self._timing.lengths[port.name]
        x = add_source(self._graph, port.name, fact.with_size(axis, length))
        missing = self._calls * port.frames - length
        if missing != 0:
            pads = [(ZERO, missing if padded_axis == axis else ZERO) for padded_axis in range(fact.rank)]
            x = wire(self._graph, f"{port.name}.filled", Pad(tuple(pads)), [x])[0]
        if port.frames == 1:
            return wire(self._graph, f"{port.name}.chunks", AddAxis(axis + 1), [x])[0]
        split = (*fact.shape[:axis], self._calls, TDim.of(port.frames), *fact.shape[axis + 1 :])
        return wire(self._graph, f"{port.name}.chunks", Reshape(split), [x])[0]

    def _join_chunks(self, port: PortFrames, y: OutletId) -> OutletId:
        """Return the frames of an output, from ``[…, chunks, frames of a chunk, …]``."""
        graph, axis = self._graph, port.axis or 0
        shape = graph.fact(y).shape
        op = (
            RemoveAxis(axis + 1)
            if port.frames == 1
            else Reshape((*shape[:axis], self._calls * port.frames, *shape[axis + 2 :]))
        )
        frames = wire(graph, f"{port.name}.frames", op, [y])[0]
        start = TDim.of(self._timing.delay.get(port.name, 0))
        length = self._timing.lengths[port.name]
        if start == 0 and length == graph.fact(frames).shape[axis]:
            return frames
        return wire(graph, port.name, Slice(axis, start, start + length), [frames])[0]

    def _body(self, frames: list[str], last: list[str]) -> tuple[TypedNetwork, dict[str, Array]]:
        """Return one call: the states after it, then the outputs with frames; and each state's first value.

        The past frames before an input and outputs without frames are states as well.
        """
        plan, graph = self._plan, TypedGraph()
        next_names = {pair.input: pair.output for pair in plan.states}
        state_names = self._find_needed([*frames, *last], next_names)
        simplified = self._typed.with_outputs(
            list(dict.fromkeys([*frames, *last, *(next_names[name] for name in state_names)]))
        )
        feeds: dict[OutletId, OutletId] = {}
        after: dict[str, OutletId] = {}
        initial: dict[str, Array] = {}
        for port in plan.inputs:
            count = plan.context.get(port.name, 0)
            if count:
                past, whole, tail = _chunk_after_past(graph, port, count, simplified.inputs[port.name])
                feeds[simplified.graph.find(port.name)] = whole
                after[past], initial[past] = tail, np.zeros(graph.fact(tail).sizes, graph.fact(tail).dtype)
        outlets = Terms(self._scope, {}).graft(simplified, graph, feeds)
        for name in state_names:
            after[name] = outlets[simplified.graph.find(next_names[name])]
            initial[name] = initial_value(name, simplified.inputs[name], self._initial.get(name))
        self._ends = {next_names[name]: name for name in state_names}
        for name in last:
            if name not in self._ends:
                outlet = outlets[simplified.graph.find(name)]
                fact = graph.fact(outlet)
                state = graph.label(add_source(graph, f"{name}.last", fact))
                after[state], initial[state], self._ends[name] = (
                    outlet,
                    np.zeros(fact.sizes, fact.dtype),
                    state,
                )
        graph.inputs = sources(graph)
        results = [*after.values(), *(outlets[simplified.graph.find(name)] for name in frames)]
        graph.set_outputs(results, [*(f"{name}.next" for name in after), *frames])
        return TypedNetwork(graph, self._scope, self._typed.title, {}, self._typed.origins), initial

    def _find_needed(self, outputs: list[str], next_names: Mapping[str, str]) -> list[str]:
        """Return the states that the outputs need, at once or through other states."""
        graph = self._typed.graph
        targets = [graph.find(name) for name in outputs]
        state_names: list[str] = []
        while True:
            order = set(graph.order(targets))
            found_states = [
                name for name in next_names if name not in state_names and graph.find(name).node in order
            ]
            if not found_states:
                return [name for name in next_names if name in state_names]
            state_names += found_states
            targets += [graph.find(next_names[name]) for name in found_states]


def _chunk_after_past(
    graph: TypedGraph, port: PortFrames, count: int, fact: TypedFact
) -> tuple[str, OutletId, OutletId]:
    """Return a chunk after ``count`` frames of the past: the state's name, the joined frames, the next state."""
    axis = port.axis or 0

    def source(name: str, frames: int) -> OutletId:
        return add_source(graph, name, fact.with_size(axis, frames))

    past, new = source(f"{port.name}.past", count), source(port.name, port.frames)
    whole = wire(graph, f"{port.name}.joined", Concat(axis), [past, new])[0]
    end = TDim.of(port.frames + count)
    tail = wire(graph, f"{port.name}.kept", Slice(axis, end - count, end), [whole])[0]
    return graph.label(past), whole, tail
