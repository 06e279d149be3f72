"""Symbols of a model's inputs that count streams or the frames of a chunk, and the sizes that they get."""

import re
from collections.abc import Mapping, Sequence

from pulse.chunks.axes import time_axis
from pulse.chunks.chunking import Chunking
from pulse.chunks.states import Candidates
from pulse.dim import Symbol, TDim
from pulse.errors import PulsifyError
from pulse.models import Model, TypedModel
from pulse.support.record import record
from pulse.support.wording import spell

_COUNTS_STREAMS = re.compile(r"(n|b|bs|.*batch.*)", re.IGNORECASE)
"""Names of dims that count streams, not frames."""


@record
class CallSizes:
    """The sizes of one call of a model of chunks that has symbols.

    sizes   the symbols' values
    axes    input -> its time axis, if a symbol determines it
    symbol  the name of the stream's length, if the file or the user has one
    """

    sizes: Mapping[Symbol, int]
    axes: Mapping[str, int]
    symbol: str | None


def symbols_of(model: Model | TypedModel, names: Sequence[str] | None = None) -> list[Symbol]:
    """Return the symbols in the shapes of some inputs, of all by default, in the order of their appearance."""
    dims = [dim for name in (model.inputs if names is None else names) for dim in _dims(model, name)]
    return list(dict.fromkeys(s for dim in dims for s in sorted(dim.symbols, key=lambda symbol: symbol.name)))


def certain_batch_symbols(model: Model | TypedModel, symbol: str | None) -> list[Symbol]:
    """Return the symbols of an offline model that certainly count streams.

    Such a symbol has a matching name, comes first in the shape of an input in which another symbol can be time, and
    never comes after another symbol. ``symbol`` is the user's name of time.
    """
    shapes = [_dims(model, name) for name in model.inputs]

    def other_symbols(shape: Sequence[TDim], candidate: Symbol) -> set[Symbol]:
        return {other for dim in shape for other in dim.symbols} - {candidate}

    def leads(shape: Sequence[TDim], candidate: Symbol) -> bool:
        return shape[0] == TDim.of(candidate) and all(candidate not in dim.symbols for dim in shape[1:])

    def counts(candidate: Symbol) -> bool:
        if candidate.name == symbol or not _COUNTS_STREAMS.fullmatch(candidate.name):
            return False
        own_shapes = [shape for shape in shapes if any(candidate in dim.symbols for dim in shape)]
        moving = [shape for shape in own_shapes if other_symbols(shape, candidate)]
        times = {other for shape in moving for other in other_symbols(shape, candidate)}
        return all(leads(shape, candidate) for shape in moving) and any(
            not _COUNTS_STREAMS.fullmatch(other.name) for other in times
        )

    return [candidate for candidate in symbols_of(model) if counts(candidate)]


def leaves_pulse_open(model: Model, chunking: Chunking, symbol: str | None) -> bool:
    """Return whether a model takes chunks of any length, so that the length must be given."""
    states = _states(model, chunking)
    streams = [name for name in model.inputs if name not in states]
    return bool(states or chunking.is_chunked) and _time(model, streams, symbol) is not None


def find_call_sizes(model: Model, chunking: Chunking, symbol: str | None) -> CallSizes | None:
    """Return the sizes of one call of a model with symbols; None if it seems to be offline.

    Symbols that count streams are 1; a chunk has the frames of the pulse and of the context.

    Raises PulsifyError: the symbol of time, the pulse or another size is not known
    """
    states = _states(model, chunking)
    if not states and not chunking.is_chunked:
        return None
    streams = [name for name in model.inputs if name not in states]
    time = _time(model, streams, symbol)
    batch_symbols = _chunk_batch_symbols(model)
    for other in symbols_of(model):
        if other not in batch_symbols and other != time:
            raise PulsifyError(
                f"{model.title}: the dim {other.name} has no size; give it with {spell('inputs')}"
            )
    sizes = dict.fromkeys(symbols_of(model), 1)
    axes = {
        name: axis
        for name in streams
        for axis, dim in enumerate(model.inputs[name].shape or ())
        if dim is not None and time in dim.symbols
    }
    if time is not None:
        main, axis = next(iter(axes.items()))
        if chunking.pulse is None:
            pairs = " ".join(f"{name}={other}" for name, other in states.items()) or "none"
            raise PulsifyError(
                f"{model.title}: takes chunks of any length and states ({pairs}): give the number of new frames of "
                f"{main} in a chunk with {spell('pulse')}; if there are no states, {spell('states', {})}"
            )
        if (model.inputs[main].shape or ())[axis] != TDim.of(time):
            raise PulsifyError(
                f"{main}: its chunk is not {time.name} frames long; give its shape with {spell('inputs')}"
            )
        sizes[time] = chunking.pulse + chunking.context.get(main, 0)
    return CallSizes(sizes, axes, symbol if time is None else time.name)


def _dims(model: Model | TypedModel, name: str) -> list[TDim]:
    return [dim for dim in model.inputs[name].shape or () if dim is not None]


def _chunk_batch_symbols(model: Model) -> set[Symbol]:
    """Return the symbols of a model of chunks that count streams: by name, or first in a shape with other symbols."""
    leading = {
        symbol
        for name in model.inputs
        if len(symbols_of(model, [name])) > 1
        for symbol in _dims(model, name)[0].symbols
    }
    return leading | {symbol for symbol in symbols_of(model) if _COUNTS_STREAMS.fullmatch(symbol.name)}


def _states(model: Model, chunking: Chunking) -> Mapping[str, str]:
    """State -> next value: the user's pairs, or pairs found by their names; and the file's variables."""
    variables = {variable.input: variable.output for variable in model.variables}
    if chunking.states is not None:
        return {**chunking.states, **variables}
    batch_symbols = _chunk_batch_symbols(model)
    frames = [symbol for symbol in symbols_of(model) if symbol not in batch_symbols]

    def moves(name: str) -> bool:
        return any(symbol in dim.symbols for dim in _dims(model, name) for symbol in frames)

    def can_stream(name: str) -> bool:
        sizes = [int(dim) if dim.is_const else 1 for dim in _dims(model, name)]
        dtype = model.inputs[name].dtype
        return moves(name) or (not frames and dtype is not None and time_axis(sizes, dtype) is not None)

    names = sorted((name for name in model.inputs if name not in variables), key=lambda name: not moves(name))
    outputs = [name for name in model.graph.output_names if name not in variables.values()]
    candidates = Candidates(
        names,
        outputs,
        fits=lambda name, _: not moves(name),
        can_stream=can_stream,
        shapes_known=False,
        signals=chunking.axes,
    )
    return {**{pair.input: pair.output for pair in candidates.pairs()}, **variables}


def _time(model: Model, streams: Sequence[str], symbol: str | None) -> Symbol | None:
    """Return the symbol that counts the frames of a chunk: as given, or the only one that does not count streams."""
    symbols = symbols_of(model, streams)
    if symbol is not None and symbols:
        for candidate in symbols:
            if candidate.name == symbol:
                return candidate
        names = ", ".join(candidate.name for candidate in symbols)
        raise PulsifyError(f"no streaming input has a symbol {symbol}; the symbols are {names}")
    frames = [candidate for candidate in symbols if candidate not in _chunk_batch_symbols(model)]
    if len(frames) > 1:
        names = ", ".join(candidate.name for candidate in frames)
        raise PulsifyError(
            f"{model.title}: several dims of a chunk have names ({names}): say which one counts its frames with "
            f"{spell('symbol')}, and give the others sizes with {spell('inputs')}"
        )
    return frames[0] if frames else None
