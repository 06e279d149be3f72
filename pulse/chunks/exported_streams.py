"""Reopening of pulsed models that were written to files."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

import numpy as np

from pulse.chunks.chunk_scan import scan_over_calls
from pulse.chunks.chunking import CallPlan, PortFrames
from pulse.chunks.states import CallState
from pulse.chunks.timing import ChunkTiming
from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import DimError, LoadError, PulsifyError
from pulse.facts import Array, PulsedFact, StreamFact, TypedFact
from pulse.graph import Graph, OutletId
from pulse.interface import AwaitedWire, Port
from pulse.metadata import PortMetadata, StateMetadata, StreamMetadata, is_exported
from pulse.ops.op import Op
from pulse.ops.source import Source
from pulse.ops.time_length import StreamEnd
from pulse.pulsify.constants import transfer_constants
from pulse.pulsify.graph_builder import PulsedGraphBuilder
from pulse.pulsify.network import PulsedNetwork
from pulse.pulsify.registers import Register
from pulse.support.budget import count_spending
from pulse.support.wording import count_of
from pulse.typed import TypedNetwork

if TYPE_CHECKING:
    from pulse.pulsify.driver import PulsifyOptions


def pulsify_or_reopen(
    typed: TypedNetwork,
    symbol: str | Symbol | None,
    pulse: int | None,
    **options: "Unpack[PulsifyOptions]",
) -> PulsedNetwork:
    """Pulsify a model to pulses of constant size; a file written in pulses is reopened as its original stream."""
    from pulse.pulsify.driver import pulsify

    with count_spending(typed.spending):
        if is_exported(typed.metadata):
            return reopen_stream(typed, pulse, symbol)
        return pulsify(typed, symbol, pulse, **options)


def reopen_stream(
    typed: TypedNetwork, pulse: int | None = None, symbol: str | Symbol | None = None
) -> PulsedNetwork:
    """Return the stream that a file's metadata describes; see ``pulse.metadata``.

    pulse, symbol   frames of the symbol in each pulse, and the symbol, to be sure of them
    Raises  LoadError: the metadata does not fit the graph; PulsifyError: the file has another pulse or symbol
    """
    metadata = _require_metadata(typed)
    if pulse not in (None, metadata.pulse):
        raise PulsifyError(
            f"pulse {pulse}: {typed.title} was written for pulses of {count_of(metadata.pulse, 'frame')}; give that "
            "or none"
        )
    if symbol is not None and metadata.symbol != (symbol if isinstance(symbol, str) else symbol.name):
        raise PulsifyError(f"symbol {symbol}: {typed.title} counts its frames by {metadata.symbol}")
    try:
        return _Reopening(typed, metadata).model()
    except (DimError, ValueError, ZeroDivisionError) as error:
        raise _metadata_error(typed, error) from error


def _require_metadata(typed: TypedNetwork) -> StreamMetadata:
    metadata = StreamMetadata.parse(typed.metadata)
    if metadata is None:
        raise LoadError(
            f"{typed.title}: the metadata of this file does not describe a pulsed model; write it again"
        )
    return metadata


def _metadata_error(typed: TypedNetwork, error: Exception) -> LoadError:
    return LoadError(f"{typed.title}: its stream metadata cannot be read ({error}); export it again")


def scan_over_pulses(typed: TypedNetwork) -> TypedNetwork:
    """Return the offline meaning of a file written in pulses: a scan over them. Raises LoadError: damaged metadata."""
    metadata = _require_metadata(typed)
    scope = SymbolScope()
    symbol = scope.symbol(metadata.symbol)
    try:
        for text in metadata.assumptions:
            scope.assume(text)
        ports = (*metadata.inputs, *metadata.outputs)
        timing = ChunkTiming(
            symbol,
            {port.name: scope.parse(port.length) for port in ports if port.axis is not None},
            {port.name: port.delay for port in metadata.outputs},
            tuple(
                (awaited.frames, scope.parse(awaited.length) + awaited.offset) for awaited in metadata.awaits
            ),
            metadata.end,
        )
    except DimError as error:
        raise _metadata_error(typed, error) from error
    once = () if metadata.end is None else (PortFrames(metadata.end, None, 0, _FROM_FILE),)
    plan = CallPlan(
        tuple(CallState(state.input, state.output, _FROM_FILE) for state in metadata.states),
        (*(_port_frames(typed.inputs, port) for port in metadata.inputs), *once),
        tuple(_port_frames(typed.outputs, port) for port in metadata.outputs),
        {},
    )
    initial = {state.input: state.value() for state in metadata.states}
    result = scan_over_calls(typed, plan, initial, timing)
    names = [port.port or port.name for port in metadata.outputs]
    result.graph.set_outputs(result.graph.outputs, names)
    result.metadata = {key: text for key, text in typed.metadata.items() if not is_exported({key: text})}
    return result


_FROM_FILE = "according to the file"


def _port_frames(facts: Mapping[str, TypedFact], port: PortMetadata) -> PortFrames:
    if port.name not in facts:
        raise LoadError(f"the metadata names {port.name}, which the file does not have; export it again")
    if port.axis is None or Fraction(port.rate) == 0:
        return PortFrames(port.name, None, 0, _FROM_FILE)
    return PortFrames(port.name, port.axis, int(facts[port.name].shape[port.axis]), _FROM_FILE)


class _Reopening:
    """Rebuilds the pulsed model that a file was written from."""

    def __init__(self, typed: TypedNetwork, metadata: StreamMetadata) -> None:
        self._metadata = metadata
        self._scope = SymbolScope()
        self._symbol = self._scope.symbol(metadata.symbol)
        for text in metadata.assumptions:
            self._scope.assume(text)
        self._outputs = [port for port in metadata.outputs if port.name in typed.outputs]
        names = [port.name for port in self._outputs]
        next_names = [state.output for state in metadata.states]
        _require_present(typed.outputs, next_names, "output")
        self._typed = typed.with_outputs([*names, *(name for name in next_names if name not in names)])
        self._typed.scope = self._scope
        inputs = [*(port.name for port in metadata.inputs), *(state.input for state in metadata.states)]
        _require_present(typed.inputs, [*inputs, *([metadata.end] if metadata.end else [])], "input")
        self._wiring = PulsedGraphBuilder(Graph[PulsedFact, Op](), self._symbol, metadata.pulse)

    def model(self) -> PulsedNetwork:
        simplified, graph, metadata = self._typed, self._wiring.graph, self._metadata
        streaming = {port.name: self._source(port) for port in metadata.inputs if port.axis is not None}
        feeds = {simplified.graph.find(name): outlet for name, outlet in streaming.items()}
        if metadata.end is not None:
            feeds[simplified.graph.find(metadata.end)] = self._wiring.add(
                metadata.end, StreamEnd(TDim.of(self._symbol)), (), None
            )
        wires = transfer_constants(simplified.graph, graph, feeds)
        graph.inputs = [wires[simplified.graph.find(port.name)] for port in metadata.inputs]
        outlets = dict(zip(simplified.graph.output_names, simplified.graph.outputs))
        names = [port.port or port.name for port in self._outputs]
        graph.set_outputs([wires[outlets[port.name]] for port in self._outputs], names)
        return PulsedNetwork(
            graph,
            simplified,
            self._symbol,
            metadata.pulse,
            tuple(self._port(port, wires[simplified.graph.find(port.name)]) for port in metadata.inputs),
            tuple(self._port(port, wires[outlets[port.name]]) for port in self._outputs),
            {},
            registers=tuple(self._register(state, wires, outlets) for state in metadata.states),
            extra_awaited_wires=tuple(
                AwaitedWire(awaited.frames, awaited.offset, self._scope.parse(awaited.length))
                for awaited in metadata.awaits
            ),
        )

    def _source(self, port: PortMetadata) -> OutletId:
        fact = self._typed.inputs[port.name]
        return self._wiring.add(port.name, Source(fact), (), self._stream(port))

    def _stream(self, port: PortMetadata) -> StreamFact | None:
        if port.axis is None:
            return None
        return StreamFact(port.axis, self._scope.parse(port.length), Fraction(port.rate), port.delay)

    def _port(self, port: PortMetadata, outlet: OutletId) -> Port:
        fact, stream = self._wiring.graph.fact(outlet), self._stream(port)
        if stream is not None:
            frames = stream.rate * self._metadata.pulse
            if not 0 <= stream.axis < fact.rank or (frames > 0 and fact.sizes[stream.axis] != frames):
                raise LoadError(
                    f"{port.name}: is {fact}, but the metadata states {count_of(frames, 'frame')} in each pulse; "
                    "write the file again"
                )
        return Port.of(port.port or port.name, fact, stream)

    def _register(
        self, state: StateMetadata, wires: Mapping[OutletId, OutletId], outlets: Mapping[str, OutletId]
    ) -> Register:
        read, write = wires[self._typed.graph.find(state.input)], wires[outlets[state.output]]
        fact, value = self._wiring.graph.fact(read), state.value()
        initial: Array = np.zeros(fact.sizes, fact.dtype) if value is None else value
        return Register(state.input, read, write, initial)


def _require_present(present: Mapping[str, object], names: Iterable[str], subject: str) -> None:
    """Raise LoadError if names of the metadata are not in the file."""
    missing = [name for name in names if name not in present]
    if missing:
        raise LoadError(
            f"the metadata names the {subject} {', '.join(missing)}, which the file does not have; export it again"
        )
