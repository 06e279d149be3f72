"""From a typed model of one chunk to a pulsed one, its states in registers."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from pulse.chunks.chunking import Chunking, Chunks, PortAxis
from pulse.chunks.plan import planned
from pulse.chunks.states import Pair
from pulse.dim import SymbolScope, TDim, ge
from pulse.errors import PulsifyError
from pulse.facts import Array, PulsedFact, StreamFact, TypedFact, dtype_name, numbers_of, shape_text
from pulse.graph import Graph, OutletId
from pulse.ops.ends import FillEnds
from pulse.ops.op import Op
from pulse.ops.source import Source
from pulse.pulsify.constant import transferred
from pulse.pulsify.faults import counters
from pulse.pulsify.model import Port, PulsedModel
from pulse.pulsify.registers import Register
from pulse.pulsify.wiring import Stream, Wiring
from pulse.typed import TypedModel

SYMBOL = "T"
"""The frames of a chunk model's stream, where its file has no name for them."""


def chunked(
    typed: TypedModel, given: Chunking, pulse: int | None = None, symbol: str | None = None
) -> PulsedModel:
    """A model of constant shapes as a stream of chunks.

    Offline it means its author's loop: one call for each chunk, the states handed on, the last chunk filled up with
    zeros. The stream gives the same; of each output there are ``ceil(frames of the stream * rate)`` frames.

    pulse   new frames in each chunk, to be sure of them
    symbol  the name of the stream's length
    Raises  PulsifyError: nothing streams; a state, an axis, a context or the pulse does not fit
    """
    chunks = planned(typed, given)
    frames = chunks.pulse
    if pulse not in (None, frames):
        past = "".join(f", after {count} of context of {name}" for name, count in chunks.context.items())
        raise PulsifyError(
            f"pulse {pulse}: one call of the model takes {frames} new frames{past}; use that, or give another context "
            "or other sizes of the inputs"
        )
    kept = [port.name for port in chunks.outputs]
    lean = typed.with_outputs([*kept, *(pair.output for pair in chunks.pairs if pair.output not in kept)])
    scope = SymbolScope()
    length = scope.symbol(symbol or SYMBOL)
    scope.assume(ge(length, 0))
    wiring = Wiring(Graph[PulsedFact, Op](), length, frames)
    graph = wiring.graph
    places = {
        lean.graph.find(port.name): _wired(wiring, lean.inputs[port.name], port, given)
        for port in chunks.inputs
        if port.axis is not None
    }
    streaming = list(graph.inputs)
    places = transferred(lean.graph, graph, places)
    once = (lean.graph.find(port.name) for port in chunks.inputs if port.axis is None)
    graph.inputs = [*streaming, *(places[outlet] for outlet in once)]
    graph.set_outputs([places[outlet] for outlet in lean.graph.outputs[: len(kept)]], kept)
    outputs = zip(chunks.outputs, graph.outputs)
    registers = _registers(lean, chunks, places, given)
    written = (register.write for register in registers)
    return PulsedModel(
        graph,
        lean,
        length,
        frames,
        tuple(Port.of(graph.label(o), graph.fact(o), graph.fact(o).stream) for o in graph.inputs),
        tuple(
            Port.of(port.name, graph.fact(o), _stream(wiring, port, given.delay.get(port.name, 0)))
            for port, o in outputs
        ),
        {},
        registers=registers,
        chunks=chunks,
        checks=counters(wiring, [*graph.outputs, *written], always=True),
    )


def _stream(wiring: Wiring, port: PortAxis, delay: int = 0) -> StreamFact | None:
    """The place in time of an input or output."""
    if port.axis is None:
        return None
    rate = Fraction(port.frames, wiring.pulse)
    length = (wiring.symbol * rate.numerator + rate.denominator - 1) // rate.denominator
    return StreamFact(port.axis, length, rate, delay)


def _wired(wiring: Wiring, fact: TypedFact, port: PortAxis, given: Chunking) -> OutletId:
    """A chunk as the model takes it: zeros after the end of the stream, frames of the past in front."""
    stream = _stream(wiring, port)
    assert stream is not None
    shape = list(fact.shape)
    shape[stream.axis] = TDim.of(port.frames)
    outlet = wiring.add(port.name, Source(TypedFact(fact.dtype, tuple(shape))), (), stream)
    wiring.graph.inputs.append(outlet)
    if port.frames > 1 or any(given.delay.values()):
        zeros = FillEnds(stream.axis, 0, 0, 0, stream.length)
        outlet = wiring.add(f"{port.name}.ends", zeros, [outlet], stream)
    return wiring.window(Stream(outlet, stream), given.context.get(port.name, 0), port.name)


def _registers(
    lean: TypedModel, chunks: Chunks, places: Mapping[OutletId, OutletId], given: Chunking
) -> tuple[Register, ...]:
    """The states that the outputs need, at once or through other states."""
    graph = lean.graph
    targets = graph.outputs[: len(chunks.outputs)]
    needed: list[Pair] = []
    while True:
        order = set(graph.order(targets))
        more = [pair for pair in chunks.pairs if pair not in needed and graph.find(pair.input).node in order]
        if not more:
            break
        needed += more
        targets = [*targets, *(graph.find(pair.output) for pair in more)]
    return tuple(
        Register(
            pair.input,
            places[graph.find(pair.input)],
            places[graph.find(pair.output)],
            _initial(pair.input, lean.inputs[pair.input], given.initial.get(pair.input)),
        )
        for pair in chunks.pairs
        if pair in needed
    )


def _initial(name: str, fact: TypedFact, given: Any) -> Array:
    """The value of a state at the first chunk, zeros where it is None; one number stands for all of its elements."""
    shape = tuple(int(dim) for dim in fact.shape)
    value = numbers_of(0 if given is None else given, fact.dtype)
    if value is None:
        raise PulsifyError(
            f"initial value of {name}: {given!r:.60} is not of type {dtype_name(fact.dtype)}; give a number, a list "
            "or an array"
        )
    if value.shape not in ((), shape):
        raise PulsifyError(
            f"initial value of {name}: its shape is {shape_text(value.shape)}, the state's {shape_text(shape)}; give "
            "that, or one number for all of it"
        )
    return np.full(shape, value)
