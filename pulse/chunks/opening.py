"""Opening a file whose model may be one of chunks, its dims made numbers where they are names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pulse.budget import counting
from pulse.chunks.axes import time_axis
from pulse.chunks.chunking import Chunking, Chunks
from pulse.chunks.plan import candidates
from pulse.chunks.scanned import in_chunks, scanned
from pulse.chunks.states import Candidates
from pulse.dim import Symbol, TDim
from pulse.errors import FactError, LoadError, PulsifyError
from pulse.model import Model, load
from pulse.onnx.metadata import is_exported
from pulse.pulsify.model import PulsedModel
from pulse.typed import TypedModel
from pulse.wording import spelled

if TYPE_CHECKING:
    from pulse.model import ModelSource

_BATCH = re.compile(r"(n|b|bs|.*batch.*)", re.IGNORECASE)
"""Names of dims that count streams, not frames."""


@dataclass(frozen=True)
class Opened:
    """A model of a file.

    original  as it was read, a scan over its calls where it takes chunks: what a stream has to equal
    typed     decluttered
    symbol    the name of the stream's length, where the file or the user has one
    chunks    how it is called; None where it is offline and to be pulsified
    call      one call of it, as it was read, where it takes chunks
    """

    original: TypedModel
    typed: TypedModel
    symbol: str | None
    chunks: Chunks | None = None
    call: TypedModel | None = None

    @classmethod
    def of(cls, original: TypedModel, symbol: str | None) -> "Opened":
        """Of a model that takes no chunks."""
        return cls(original, original.declutter(), symbol)

    @classmethod
    def calling(cls, call: TypedModel, given: Chunking, symbol: str | None) -> "Opened":
        """Of a model that takes chunks, ``call`` being one call of it. Raises PulsifyError."""
        with counting(call.spending):
            original, chunks = scanned(call, given, symbol)
        return cls(original, original.declutter(), symbol, chunks, call)

    @property
    def ready(self) -> bool:
        """Whether the file itself says what a pulse is: it takes chunks, or was written in pulses."""
        return self.chunks is not None or is_exported(self.typed.metadata)

    def pulsed(
        self, pulse: int | None = None, align: bool = False, max_context: int | None = None
    ) -> PulsedModel:
        """The model in pulses; of whole chunks, one by default, where it takes chunks. Raises PulsifyError."""
        if self.chunks is not None:
            return in_chunks(self.typed, self.chunks, pulse, align)
        return self.typed.pulsify(self.symbol, pulse, align, max_context)


def open_model(
    source: "ModelSource",
    inputs: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    chunking: Chunking | None = None,
    symbol: str | None = None,
    pulse: int | None = None,
    ignore_value_info: bool = False,
    budget: Mapping[str, float] | None = None,
) -> Opened:
    """Load and declutter; find out whether the model is one of chunks.

    It is, where the user says how it is called, or where states are found (``Candidates``). Symbols of such a model
    become numbers: those that count streams 1, the frames of a chunk ``pulse`` and the context.

    Raises PulseError
    """
    model = load(source, inputs, constants, ignore_value_info, budget)
    given = replace(chunking or Chunking(), variables=model.variables)
    if is_exported(model.metadata):
        return _exported(model, given, symbol)
    if not _symbols(model):
        typed = model.analyse()
        if given.asked or given.states is not None or candidates(typed, given.variables).pairs():
            return Opened.calling(_keeping(typed, given.outputs), given, symbol)
        return _offline(typed, given.outputs, symbol)
    sized = _sized(model, given, symbol, pulse)
    if sized is not None:
        shapes = {**(inputs or {}), **sized.shapes}
        typed = _called(load(source, shapes, constants, ignore_value_info, budget), sized)
        if given.asked or candidates(typed, given.variables).pairs():
            known = replace(given, told=sized.axes, sizes=sized.sizes)
            return Opened.calling(_keeping(typed, given.outputs), known, sized.symbol)
    return _offline(model.analyse(), given.outputs, symbol)


def _called(model: Model, sized: "_Sized") -> TypedModel:
    """Analysed with the sizes of one call. Raises LoadError, FactError: it does not take chunks of these sizes."""
    try:
        return model.analyse()
    except (LoadError, FactError) as error:
        sizes = ", ".join(f"{name}={size}" for name, size in sized.sizes.items())
        raise type(error)(
            f"{model.title}: does not take chunks of {sizes}: {error}; use its author's {spelled('pulse')} and "
            f"{spelled('context')}, or {spelled('inputs')}"
        ) from error


def _exported(model: Model, given: Chunking, symbol: str | None) -> Opened:
    """A file that was written in pulses; it says itself how it is called. Raises PulsifyError."""
    if given.asked or given.states is not None or given.outputs is not None:
        raise PulsifyError(
            f"{model.title}: it was written in pulses, so its file says what its states, axes, delays and outputs are; "
            "leave these options out, or give them for the model that it was made of"
        )
    return Opened.of(model.analyse(), symbol or model.metadata.get("pulse_symbol"))


def _keeping(typed: TypedModel, outputs: Sequence[str] | None) -> TypedModel:
    """The model with more wires as outputs, so that what makes them stays as it is."""
    more = [name for name in outputs or () if name not in typed.outputs]
    return typed.with_outputs([*typed.outputs, *more]) if more else typed


def _offline(typed: TypedModel, outputs: Sequence[str] | None, symbol: str | None) -> Opened:
    kept = typed if outputs is None else typed.with_outputs(outputs)
    return Opened.of(kept, symbol)


@dataclass(frozen=True)
class _Sized:
    """The shapes of one call: of every input, the axes of frames that symbols told, and what the symbols became."""

    shapes: Mapping[str, str]
    axes: Mapping[str, int]
    sizes: Mapping[str, int]
    symbol: str | None


def _dims(model: Model, name: str) -> list[TDim]:
    return [dim for dim in model.inputs[name].shape or () if dim is not None]


def _symbols(model: Model, names: Iterable[str] | None = None) -> list[Symbol]:
    """The symbols in the shapes of some inputs, of all by default, in the order of their appearance."""
    dims = [dim for name in (model.inputs if names is None else names) for dim in _dims(model, name)]
    return list(dict.fromkeys(s for dim in dims for s in sorted(dim.symbols, key=lambda symbol: symbol.name)))


def counts_streams(model: Model) -> set[Symbol]:
    """The symbols that count streams, not frames: their names say so, or they lead a shape with others behind."""
    leading = {
        symbol
        for name in model.inputs
        if len(_symbols(model, [name])) > 1
        for symbol in _dims(model, name)[0].symbols
    }
    return leading | {symbol for symbol in _symbols(model) if _BATCH.fullmatch(symbol.name)}


def _sized(model: Model, given: Chunking, symbol: str | None, pulse: int | None) -> _Sized | None:
    """The shapes of one call of a model with symbols; None where it seems to be offline.

    Raises PulsifyError: the symbol of time, the pulse or another size is not known
    """
    states = _states(model, given)
    if not states and not given.asked:
        return None
    streams = [name for name in model.inputs if name not in states]
    time = _time(model, streams, symbol)
    ones = counts_streams(model)
    for other in _symbols(model):
        if other not in ones and other != time:
            raise PulsifyError(
                f"{model.title}: the dim {other.name} has no size; give it with {spelled('inputs')}"
            )
    sizes = dict.fromkeys(_symbols(model), 1)
    axes = {
        name: axis
        for name in streams
        for axis, dim in enumerate(model.inputs[name].shape or ())
        if dim is not None and time in dim.symbols
    }
    if time is not None:
        main, axis = next(iter(axes.items()))
        if pulse is None:
            found = " ".join(f"{name}={other}" for name, other in states.items()) or "none"
            raise PulsifyError(
                f"{model.title}: takes chunks of any length and states ({found}): say how many new frames of {main} a "
                f"chunk has, with {spelled('pulse')}; where there are no states, {spelled('states', {})}"
            )
        if (model.inputs[main].shape or ())[axis] != TDim.of(time):
            raise PulsifyError(
                f"{main}: its chunk is not {time.name} frames long; give its shape with {spelled('inputs')}"
            )
        sizes[time] = pulse + given.context.get(main, 0)
    shapes = {
        name: ",".join(str(dim.subs(sizes)) for dim in _dims(model, name))
        for name, fact in model.inputs.items()
        if fact.shape is not None and None not in fact.shape
    }
    return _Sized(
        shapes, axes, {s.name: size for s, size in sizes.items()}, symbol if time is None else time.name
    )


def _states(model: Model, given: Chunking) -> Mapping[str, str]:
    """The pairs given, or found by name when nothing but the shapes of inputs is known."""
    if given.states is not None:
        return given.states
    ones = counts_streams(model)
    frames = [symbol for symbol in _symbols(model) if symbol not in ones]

    def moves(name: str) -> bool:
        return any(symbol in dim.symbols for dim in _dims(model, name) for symbol in frames)

    def streams(name: str) -> bool:
        sizes = [int(dim) if dim.is_const else 1 for dim in _dims(model, name)]
        dtype = model.inputs[name].dtype
        return moves(name) or (not frames and dtype is not None and time_axis(sizes, dtype) is not None)

    names = sorted(model.inputs, key=lambda name: not moves(name))
    found = Candidates(
        names, model.graph.output_names, lambda name, _: not moves(name), streams, shapes=False
    )
    return {pair.input: pair.output for pair in found.pairs()}


def _time(model: Model, streams: Sequence[str], symbol: str | None) -> Symbol | None:
    """The symbol that counts the frames of a chunk: as given, or the only one that does not count streams."""
    found = _symbols(model, streams)
    if symbol is not None and found:
        for candidate in found:
            if candidate.name == symbol:
                return candidate
        listed = ", ".join(candidate.name for candidate in found)
        raise PulsifyError(f"no streaming input has a symbol {symbol}; there is {listed}")
    frames = [candidate for candidate in found if candidate not in counts_streams(model)]
    if len(frames) > 1:
        listed = ", ".join(candidate.name for candidate in frames)
        raise PulsifyError(
            f"{model.title}: several dims of a chunk have names ({listed}): say which counts its frames with "
            f"{spelled('symbol')}, and give the others sizes with {spelled('inputs')}"
        )
    return frames[0] if frames else None
