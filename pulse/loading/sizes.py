"""The sizes of one call of a model of chunks with symbols."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np

from pulse.chunks.axes import time_axis
from pulse.chunks.call_planning import GROWING_CACHES
from pulse.chunks.chunking import Chunking
from pulse.chunks.state_names import next_names
from pulse.chunks.states import Candidates
from pulse.dim import Symbol, TDim
from pulse.errors import PulsifyError
from pulse.loading.batch_symbols import chunk_batch_symbols, known_dims, symbols_of, user_times
from pulse.models import Model
from pulse.support.naming import require_name
from pulse.support.record import record
from pulse.support.wording import count_of, spell


@record
class CallSizes:
    """The sizes of one call of a model of chunks that has symbols.

    sizes   the symbols' values
    longer  those of a call with twice as many new frames; empty if no symbol determines them
    axes    input -> its time axis, if a symbol determines it
    symbol  the name of the stream's length, if the file or the user has one
    """

    sizes: Mapping[Symbol, int]
    longer: Mapping[Symbol, int]
    axes: Mapping[str, int | None]
    symbol: str | None


def leaves_pulse_open(model: Model, chunking: Chunking, symbol: str | None) -> bool:
    """Return whether the pulse decides how a model is called: it takes chunks of any length, or may do so."""
    call = _Call(model, chunking, symbol)
    return call.is_chunked and (call.time is not None or bool(call.doubtful_inputs))


def find_call_sizes(model: Model, chunking: Chunking, symbol: str | None) -> CallSizes | None:
    """Return the sizes of one call of a model with symbols; None if it seems to be offline.

    Symbols that count streams are 1; a chunk has the frames of the pulse and of the context.

    Raises PulsifyError: the symbol of time, the pulse or another size is not known
    """
    call = _Call(model, chunking, symbol)
    return call.sizes() if call.is_chunked else None


class _Call:
    """One call of a model that may take chunks; its streams are the inputs that are not states."""

    def __init__(self, model: Model, chunking: Chunking, symbol: str | None) -> None:
        self._model, self._chunking, self._symbol = model, chunking, symbol
        self._batch = chunk_batch_symbols(model, chunking, symbol)
        self._states = _states(model, chunking, self._batch, user_times(model, chunking, symbol))
        self._streams = [name for name in model.inputs if name not in self._states]

    @property
    def is_chunked(self) -> bool:
        """Whether the model has states, or the user states that it takes chunks."""
        return bool(self._states or self._chunking.is_chunked)

    @cached_property
    def time(self) -> Symbol | None:
        """The symbol that counts the frames of a chunk: as given, or the only one that does not count streams.

        Raises PulsifyError: there are several, or none is called as the user says
        """
        symbols = symbols_of(self._model, self._streams)
        if self._symbol is not None and symbols:
            by_name = {candidate.name: candidate for candidate in symbols}
            return by_name[require_name("symbol", self._symbol, by_name, PulsifyError)]
        times = user_times(self._model, self._chunking, None)
        frames = [candidate for candidate in symbols if candidate in times] or [
            candidate
            for candidate in symbols
            if candidate not in self._batch and not self._is_beside(candidate)
        ]
        if len(frames) > 1:
            names = ", ".join(candidate.name for candidate in frames)
            raise PulsifyError(
                f"{self._model.title}: several dims of a chunk have names ({names}): say which one counts its frames "
                f"with {spell('symbol')}, and give the others sizes with {spell('inputs')}"
            )
        return frames[0] if frames else None

    @cached_property
    def doubtful_inputs(self) -> list[str]:
        """Streams whose only symbol may count streams or frames: no state has it, and no other axis is the pulse."""
        states = set(symbols_of(self._model, [name for name in self._model.inputs if name in self._states]))
        return [
            name
            for name in self._streams
            if len(symbols := symbols_of(self._model, [name])) == 1
            and symbols[0] not in states
            and name not in self._chunking.axes
            and self._frames_of_call(name) != self._chunking.pulse
        ]

    def sizes(self) -> CallSizes:
        """Return the sizes. Raises PulsifyError: see ``find_call_sizes``."""
        model, chunking, time = self._model, self._chunking, self.time
        missing = [other for other in symbols_of(model) if other not in self._batch and other != time]
        if missing:
            raise self._no_sizes(missing)
        sizes = dict.fromkeys(symbols_of(model), 1)
        if time is None:
            if chunking.pulse is not None and self.doubtful_inputs:
                raise self._doubt(self.doubtful_inputs[0])
            return CallSizes(sizes, {}, {}, self._symbol)
        axes = {
            name: axis
            for name in self._streams
            for axis, dim in enumerate(model.inputs[name].shape or ())
            if dim is not None and time in dim.symbols
        }
        main, axis = next(iter(axes.items()))
        if chunking.pulse is None:
            pairs = " ".join(f"{name}={other}" for name, other in self._states.items()) or "none"
            raise PulsifyError(
                f"{model.title}: takes chunks of any length and states ({pairs}): give the number of new frames of "
                f"{main} in a chunk with {spell('pulse')}; if there are no states, {spell('states', {})}"
            )
        if (model.inputs[main].shape or ())[axis] != TDim.of(time):
            raise PulsifyError(
                f"{main}: its chunk is not {time.name} frames long; give its shape with {spell('inputs')}"
            )
        sizes[time] = chunking.pulse + chunking.context.get(main, 0)
        return CallSizes(sizes, {**sizes, time: sizes[time] + chunking.pulse}, axes, time.name)

    def _no_sizes(self, symbols: Sequence[Symbol]) -> PulsifyError:
        """Return why symbols have to get sizes: 1 if they count streams; those of caches must not grow."""
        model, first = self._model, symbols[0]
        names = ", ".join(symbol.name for symbol in symbols)
        text = f"{model.title}: the dim {names} has no size; give it with {spell('inputs')}"
        if len(symbols) > 1:
            text = f"{model.title}: the dims {names} have no sizes; give them with {spell('inputs')}"
        name = next(name for name in model.inputs if first in symbols_of(model, [name]))
        dims = known_dims(model, name)
        if dims[0] == TDim.of(first):
            shape = ",".join(["1", *map(str, dims[1:])])
            return PulsifyError(
                f"{text}, as in {spell('inputs', {name: shape})} if {first.name} counts streams"
            )
        if name not in self._states or first in symbols_of(model, self._streams):
            return PulsifyError(text)
        return PulsifyError(
            f"{text} if the state {name} has the same length in each call; {GROWING_CACHES}; {spell('states', {})} if "
            "there are no states"
        )

    def _is_beside(self, candidate: Symbol) -> bool:
        """Return whether the user gives another axis of an input with a symbol as its time axis."""
        return any(
            candidate in symbols_of(self._model, [name])
            for name in self._chunking.axes
            if name in self._streams
        )

    def _frames_of_call(self, name: str) -> int | None:
        sizes, dtype = _sizes_with_ones(self._model, name), self._model.inputs[name].dtype
        axis_and_reason = None if dtype is None else time_axis(sizes, dtype)
        if axis_and_reason is None:
            return None
        return sizes[axis_and_reason[0]] - self._chunking.context.get(name, 0)

    def _doubt(self, name: str) -> PulsifyError:
        dims = known_dims(self._model, name)
        axis = next(axis for axis, dim in enumerate(dims) if not dim.is_const)
        shape = ",".join(map(str, _sizes_with_ones(self._model, name)))
        return PulsifyError(
            f"{name}: its dim {dims[axis]} may count streams or the frames of a chunk, which has no axis of "
            f"{count_of(self._chunking.pulse, 'frame')}; give {spell('axes', {name: axis})} if it counts frames, "
            f"{spell('inputs', {name: shape})} if it counts streams"
        )


def _sizes_with_ones(model: Model, name: str) -> list[int]:
    """Return the sizes of an input with 1 for its symbols."""
    return [int(dim) if dim.is_const else 1 for dim in known_dims(model, name)]


def _states(
    model: Model, chunking: Chunking, batch_symbols: Collection[Symbol], times: Collection[Symbol]
) -> Mapping[str, str]:
    """State -> next value: the user's pairs, or pairs found by their names; and the file's variables.

    Symbols that only states with certain names have are sizes of caches, unless they are among the user's ``times``.
    """
    variables = {variable.input: variable.output for variable in model.variables}
    for name, output in (chunking.states or {}).items():
        require_name("input", name, model.inputs, PulsifyError, f"state {name}={output}")
    if chunking.states is not None:
        return {**chunking.states, **variables}
    outputs = [name for name in model.graph.output_names if name not in variables.values()]
    signals = [
        name
        for name in model.inputs
        if not any(rule.is_certain and other in outputs for other, rule in next_names(name))
    ]
    moving = {*symbols_of(model, signals or None), *times}
    frames = [symbol for symbol in symbols_of(model) if symbol in moving and symbol not in batch_symbols]

    def moves(name: str) -> bool:
        return any(symbol in dim.symbols for dim in known_dims(model, name) for symbol in frames)

    def can_stream(name: str) -> bool:
        dtype, sizes = model.inputs[name].dtype, _sizes_with_ones(model, name)
        return moves(name) or (not frames and dtype is not None and time_axis(sizes, dtype) is not None)

    names = sorted((name for name in model.inputs if name not in variables), key=lambda name: not moves(name))
    candidates = Candidates(
        names,
        outputs,
        fits=lambda name, _: not moves(name),
        can_stream=can_stream,
        is_floating=lambda name: np.issubdtype(model.inputs[name].dtype or np.float32, np.floating),
        shapes_known=False,
        signals=chunking.axes,
    )
    return {**{pair.input: pair.output for pair in candidates.pairs()}, **variables}
