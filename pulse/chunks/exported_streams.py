"""Reopening of pulsed models that were written to files."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np

from pulse.chunks.chunk_scan import ChunkTiming, scan_over_calls
from pulse.chunks.chunking import Chunks, PortAxis
from pulse.chunks.states import CallState
from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import DimError, LoadError, PulsifyError
from pulse.facts import Array, PulsedFact, StreamFact, TypedFact
from pulse.graph import Graph, OutletId
from pulse.interface import AwaitedWire, Port
from pulse.onnx.metadata import Notes, PortNote, StateNote, is_exported
from pulse.ops.op import Op
from pulse.ops.source import Source
from pulse.ops.time_length import StreamEnd
from pulse.pulsify.constants import transfer_constants
from pulse.pulsify.network import PulsedNetwork
from pulse.pulsify.registers import Register
from pulse.pulsify.stream_wires import Wiring
from pulse.support.budget import count_spending
from pulse.typed import TypedNetwork


def pulsify_or_reopen(
    typed: TypedNetwork,
    symbol: str | Symbol | None = None,
    pulse: int | None = None,
    align: bool = False,
    max_context: int | None = None,
) -> PulsedNetwork:
    """Pulsify a model to pulses of constant size; a file written in pulses is reopened as its original stream."""
    from pulse.pulsify.driver import pulsify

    with count_spending(typed.spending):
        if is_exported(typed.metadata):
            return reopen_stream(typed, pulse, symbol)
        return pulsify(typed, symbol, pulse, align=align, max_context=max_context)


def reopen_stream(
    typed: TypedNetwork, pulse: int | None = None, symbol: str | Symbol | None = None
) -> PulsedNetwork:
    """Return the stream that a file's metadata describes; see ``pulse.onnx.metadata``.

    pulse, symbol   frames of the symbol in each pulse, and the symbol, to be sure of them
    Raises  LoadError: the metadata does not fit the graph; PulsifyError: the file has another pulse or symbol
    """
    notes = _notes(typed)
    if pulse not in (None, notes.pulse):
        raise PulsifyError(
            f"pulse {pulse}: {typed.title} was written for pulses of {notes.pulse} frames; give that or none"
        )
    if symbol is not None and notes.symbol != (symbol if isinstance(symbol, str) else symbol.name):
        raise PulsifyError(f"symbol {symbol}: {typed.title} counts its frames by {notes.symbol}")
    try:
        return _Reopening(typed, notes).model()
    except (DimError, ValueError, ZeroDivisionError) as error:
        raise _metadata_error(typed, error) from error


def _notes(typed: TypedNetwork) -> Notes:
    notes = Notes.parse(typed.metadata)
    if notes is None:
        raise LoadError(
            f"{typed.title}: the metadata of this file is not that of a pulsed model; write it again"
        )
    return notes


def _metadata_error(typed: TypedNetwork, error: Exception) -> LoadError:
    return LoadError(f"{typed.title}: its stream metadata cannot be read ({error}); export it again")


def scan_over_pulses(typed: TypedNetwork) -> TypedNetwork:
    """Return the offline meaning of a file that was written in pulses: a scan over its pulses. Raises LoadError."""
    notes = _notes(typed)
    scope = SymbolScope()
    symbol = scope.symbol(notes.symbol)
    try:
        for text in notes.assumptions:
            scope.assume(text)
        ports = (*notes.inputs, *notes.outputs)
        timing = ChunkTiming(
            symbol,
            {note.name: scope.parse(note.length) for note in ports if note.axis is not None},
            {note.name: note.delay for note in notes.outputs},
            tuple((note.frames, scope.parse(note.length) + note.offset) for note in notes.awaits),
            notes.end,
        )
    except DimError as error:
        raise _metadata_error(typed, error) from error
    once = () if notes.end is None else (PortAxis(notes.end, None, 0, _NOTED),)
    chunks = Chunks(
        tuple(CallState(state.input, state.output, _NOTED) for state in notes.states),
        (*(_axis(typed.inputs, note) for note in notes.inputs), *once),
        tuple(_axis(typed.outputs, note) for note in notes.outputs),
        {},
    )
    initial = {state.input: state.value() for state in notes.states}
    result = scan_over_calls(typed, chunks, initial, timing)
    names = [note.port or note.name for note in notes.outputs]
    result.graph.set_outputs(result.graph.outputs, names)
    result.metadata = {key: text for key, text in typed.metadata.items() if not is_exported({key: text})}
    return result


_NOTED = "according to the file"


def _axis(facts: Mapping[str, TypedFact], note: PortNote) -> PortAxis:
    if note.name not in facts:
        raise LoadError(f"the metadata names {note.name}, which the file does not have; export it again")
    if note.axis is None or Fraction(note.rate) == 0:
        return PortAxis(note.name, None, 0, _NOTED)
    return PortAxis(note.name, note.axis, int(facts[note.name].shape[note.axis]), _NOTED)


class _Reopening:
    """Rebuilds the pulsed model that a file was written from."""

    def __init__(self, typed: TypedNetwork, notes: Notes) -> None:
        self._notes = notes
        self._scope = SymbolScope()
        self._symbol = self._scope.symbol(notes.symbol)
        for text in notes.assumptions:
            self._scope.assume(text)
        self._outputs = [note for note in notes.outputs if note.name in typed.outputs]
        names = [note.name for note in self._outputs]
        next_names = [note.output for note in notes.states]
        self._require(typed.outputs, next_names, "output")
        self._typed = typed.with_outputs([*names, *(name for name in next_names if name not in names)])
        self._typed.scope = self._scope
        inputs = [*(note.name for note in notes.inputs), *(note.input for note in notes.states)]
        self._require(typed.inputs, [*inputs, *([notes.end] if notes.end else [])], "input")
        self._wiring = Wiring(Graph[PulsedFact, Op](), self._symbol, notes.pulse)

    def model(self) -> PulsedNetwork:
        lean, graph, notes = self._typed, self._wiring.graph, self._notes
        streaming = {note.name: self._source(note) for note in notes.inputs if note.axis is not None}
        feeds = {lean.graph.find(name): outlet for name, outlet in streaming.items()}
        if notes.end is not None:
            feeds[lean.graph.find(notes.end)] = self._wiring.add(
                notes.end, StreamEnd(TDim.of(self._symbol)), (), None
            )
        wires = transfer_constants(lean.graph, graph, feeds)
        graph.inputs = [wires[lean.graph.find(note.name)] for note in notes.inputs]
        outlets = dict(zip(lean.graph.output_names, lean.graph.outputs))
        names = [note.port or note.name for note in self._outputs]
        graph.set_outputs([wires[outlets[note.name]] for note in self._outputs], names)
        return PulsedNetwork(
            graph,
            lean,
            self._symbol,
            notes.pulse,
            tuple(self._port(note, wires[lean.graph.find(note.name)]) for note in notes.inputs),
            tuple(self._port(note, wires[outlets[note.name]]) for note in self._outputs),
            {},
            registers=tuple(self._register(state, wires, outlets) for state in notes.states),
            awaited=tuple(
                AwaitedWire(note.frames, note.offset, self._scope.parse(note.length)) for note in notes.awaits
            ),
        )

    def _require(self, there: Mapping[str, object], names: Iterable[str], what: str) -> None:
        missing = [name for name in names if name not in there]
        if missing:
            raise LoadError(
                f"the metadata names the {what} {', '.join(missing)}, which the file does not have; export it again"
            )

    def _source(self, note: PortNote) -> OutletId:
        fact = self._typed.inputs[note.name]
        return self._wiring.add(note.name, Source(fact), (), self._stream(note))

    def _stream(self, note: PortNote) -> StreamFact | None:
        if note.axis is None:
            return None
        return StreamFact(note.axis, self._scope.parse(note.length), Fraction(note.rate), note.delay)

    def _port(self, note: PortNote, outlet: OutletId) -> Port:
        fact, stream = self._wiring.graph.fact(outlet), self._stream(note)
        if stream is not None:
            frames = stream.rate * self._notes.pulse
            if not 0 <= stream.axis < fact.rank or (frames > 0 and fact.sizes[stream.axis] != frames):
                raise LoadError(
                    f"{note.name}: is {fact}, but the metadata states {frames} frames in each pulse; "
                    "write the file again"
                )
        return Port.of(note.port or note.name, fact, stream)

    def _register(
        self, state: StateNote, wires: Mapping[OutletId, OutletId], outlets: Mapping[str, OutletId]
    ) -> Register:
        read, write = wires[self._typed.graph.find(state.input)], wires[outlets[state.output]]
        fact, value = self._wiring.graph.fact(read), state.value()
        initial: Array = np.zeros(fact.sizes, fact.dtype) if value is None else value
        return Register(state.input, read, write, initial)
