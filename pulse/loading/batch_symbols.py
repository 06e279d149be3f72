"""Symbols of a model's inputs that count streams."""

from collections.abc import Sequence

import numpy as np

from pulse.chunks.chunking import Chunking
from pulse.chunks.state_names import looks_like_state, next_names
from pulse.dim import Symbol, TDim
from pulse.infer.fact import Dims
from pulse.infer.inputs import counts_streams
from pulse.models import Model, TypedModel


def symbols_of(model: Model | TypedModel, names: Sequence[str] | None = None) -> list[Symbol]:
    """Return the symbols in the shapes of some inputs, of all by default, in the order of their appearance."""
    dims = [dim for name in (model.inputs if names is None else names) for dim in known_dims(model, name)]
    return list(dict.fromkeys(s for dim in dims for s in sorted(dim.symbols, key=lambda symbol: symbol.name)))


def certain_batch_symbols(model: Model | TypedModel, symbol: str | None) -> list[Symbol]:
    """Return the symbols of an offline model that certainly count streams.

    Such a symbol has a matching name, comes first in the shape of an input in which another symbol can be time, and
    never comes after another symbol. ``symbol`` is the user's name of time.
    """
    shapes = [_shape(model, name) for name in model.inputs]

    def other_symbols(shape: Dims, candidate: Symbol) -> set[Symbol]:
        return _symbols_in(shape) - {candidate}

    def counts(candidate: Symbol) -> bool:
        if candidate.name == symbol or not counts_streams(candidate.name):
            return False
        own_shapes = [shape for shape in shapes if candidate in _symbols_in(shape)]
        moving = [shape for shape in own_shapes if other_symbols(shape, candidate)]
        times = {other for shape in moving for other in other_symbols(shape, candidate)}
        return all(_leads(shape, candidate) for shape in moving) and any(
            not counts_streams(other.name) for other in times
        )

    return [candidate for candidate in symbols_of(model) if counts(candidate)]


def chunk_batch_symbols(model: Model, chunking: Chunking, symbol: str | None) -> set[Symbol]:
    """Return the symbols of a model of chunks that count streams; the user's symbol or axes of time do not.

    In the shape of an input with several symbols, names decide if some of them match and others do not; otherwise the
    symbol that a state has too, or the first. A match counts if it comes first, if a state has it, or if the user
    says which other symbol is time. A symbol without others counts streams if its name matches and it comes first in
    a shape of several axes, or if a state has it. Symbols of states alone count streams if their names match;
    if none does, the first of several.
    """
    return _ChunkSymbols(model, chunking, symbol).batch()


def user_times(model: Model, chunking: Chunking, symbol: str | None) -> set[Symbol]:
    """Return the symbols that count frames according to the user: by name, or on the given axes."""
    times = {candidate for candidate in symbols_of(model) if candidate.name == symbol}
    for name, axis in chunking.axes.items():
        if name in model.inputs:
            times |= _symbols_in(_shape(model, name)[axis : axis + 1])
    return times


class _ChunkSymbols:
    """The places of a model's symbols."""

    def __init__(self, model: Model, chunking: Chunking, symbol: str | None) -> None:
        self._model = model
        self._times = user_times(model, chunking, symbol)
        states = [name for name in model.inputs if _is_probable_state(model, chunking, name)]
        self._signals = [name for name in model.inputs if name not in states]
        self._of_states = set(symbols_of(model, states))
        shapes = [_shape(model, name) for name in states if len(symbols_of(model, [name])) > 1]
        self._leading = {
            candidate
            for shape in shapes
            if not any(counts_streams(other.name) for other in _symbols_in(shape))
            for candidate in _symbols_in(shape[:1])
        }

    def batch(self) -> set[Symbol]:
        return {candidate for candidate in symbols_of(self._model) if self._counts_streams(candidate)}

    def _counts_streams(self, candidate: Symbol) -> bool:
        if candidate in self._times:
            return False
        names = [name for name in self._signals if candidate in symbols_of(self._model, [name])]
        if not names:
            return counts_streams(candidate.name) or candidate in self._leading
        return all(self._fits(name, candidate) for name in names)

    def _fits(self, name: str, candidate: Symbol) -> bool:
        """Return whether a symbol can count streams by its place in the shape of an input that is not a state."""
        shape = _shape(self._model, name)
        others = [other for other in symbols_of(self._model, [name]) if other != candidate]
        shared = candidate in self._of_states
        dtype = self._model.inputs[name].dtype
        is_vector = len(shape) == 1 and dtype is not None and np.issubdtype(dtype, np.floating)
        placed = shared or (_leads(shape, candidate) and not is_vector)
        if not others:
            return counts_streams(candidate.name) and placed
        named_others = [other for other in others if counts_streams(other.name) and other not in self._times]
        if counts_streams(candidate.name) and len(named_others) < len(others):
            return placed or any(other in self._times for other in others)
        if not counts_streams(candidate.name) and named_others:
            return False
        if shared != any(other in self._of_states for other in others):
            return shared
        return placed


def known_dims(model: Model | TypedModel, name: str) -> list[TDim]:
    """Return the known sizes of an input."""
    return [dim for dim in _shape(model, name) if dim is not None]


def _shape(model: Model | TypedModel, name: str) -> Dims:
    return model.inputs[name].shape or ()


def _symbols_in(shape: Dims) -> set[Symbol]:
    return {symbol for dim in shape if dim is not None for symbol in dim.symbols}


def _leads(shape: Dims, candidate: Symbol) -> bool:
    return shape[0] == TDim.of(candidate) and candidate not in _symbols_in(shape[1:])


def _is_probable_state(model: Model, chunking: Chunking, name: str) -> bool:
    """Return whether an input is a state by the user's word or by its name alone."""
    if name in chunking.axes:
        return False
    if chunking.states is not None:
        return name in chunking.states
    return any(
        other in model.graph.output_names and (rule.is_certain or looks_like_state(name))
        for other, rule in next_names(name)
    ) or any(name == variable.input for variable in model.variables)
