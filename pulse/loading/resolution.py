"""Resolution of a loaded model: offline or of chunks; symbols that are not time become numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Unpack
from warnings import catch_warnings, filterwarnings

from pulse.chunks.call_planning import find_candidates
from pulse.chunks.chunk_scan import pulsify_chunks, scan_over_chunks
from pulse.chunks.chunking import CallPlan, Chunking
from pulse.declutter.interpolation import with_interpolation
from pulse.dim import Symbol
from pulse.errors import DimError, FactError, LoadError, PulseWarning, PulsifyError
from pulse.loading.batch_symbols import certain_batch_symbols, symbols_of
from pulse.loading.half_precision import with_f32_for_f16
from pulse.loading.sizes import CallSizes, find_call_sizes
from pulse.metadata import is_exported
from pulse.models import Model, PulsedModel, TypedModel, model_of
from pulse.support.budget import count_spending
from pulse.support.record import record
from pulse.support.wording import count_of, spell

if TYPE_CHECKING:
    from pulse.pulsify.driver import PulsifyOptions


@record
class ResolvedModel:
    """A model whose way of streaming is known.

    offline  what a stream has to equal; a scan over its calls if it takes chunks
    symbol   the name of the stream's length, if the file or the user has one
    chunks   how a chunk model is called; None for an offline model
    call     one call of it, as it was read, if it takes chunks
    sizes    symbols of the file -> the numbers that replaced them
    pulsed   the model in pulses, if it was read as such
    """

    offline: TypedModel
    symbol: str | None
    chunks: CallPlan | None = None
    call: TypedModel | None = None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    pulsed: PulsedModel | None = None

    @cached_property
    def decluttered_model(self) -> TypedModel:
        """The offline model, decluttered."""
        return self.offline.declutter()

    def pulsify(self, pulse: int | None, **options: "Unpack[PulsifyOptions]") -> PulsedModel:
        """Pulsify it; if it takes chunks, in pulses of whole chunks, one by default. Raises PulsifyError: it cannot."""
        if self.pulsed is not None:
            if pulse not in (None, self.pulsed.pulse):
                raise PulsifyError(
                    f"pulse {pulse}: {self.pulsed.title} is in pulses of {count_of(self.pulsed.pulse, 'frame')}; "
                    "give the model "
                    "before it is pulsified"
                )
            return self.pulsed
        if self.chunks is not None:
            model = model_of(pulsify_chunks(self.decluttered_model, self.chunks, pulse, **options))
        else:
            model = self.decluttered_model.pulsify(self.symbol, pulse, **options)
        return replace(model, sizes=self.sizes)


def resolve(
    model: Model | TypedModel | PulsedModel,
    chunking: Chunking,
    symbol: str | None,
    outputs: Sequence[str] | None,
) -> ResolvedModel:
    """Find out whether a model is one of chunks.

    It is if the user describes how it is called, if its file keeps variables, or if states are found
    (``Candidates``).

    Raises PulseError: the description, the symbol or the outputs do not fit
    """
    if isinstance(model, PulsedModel):
        return ResolvedModel(
            model_of(model.typed), model.symbol.name, model.chunks, sizes=model.sizes, pulsed=model
        )
    if is_exported(model.metadata):
        return _resolve_exported(model, chunking, symbol, outputs)
    if not symbols_of(model):
        typed = _analyse(model)
        if chunking.is_chunked or chunking.states is not None or _has_states(typed):
            return _resolve_call(
                _keep_outputs(typed, outputs), chunking, CallSizes({}, {}, {}, symbol), outputs
            )
        return ResolvedModel(_with_outputs(typed, outputs), symbol)
    call_sizes = find_call_sizes(model, chunking, symbol) if isinstance(model, Model) else None
    if call_sizes is not None:
        typed = _analyse_call(model, call_sizes)
        if chunking.is_chunked or _has_states(typed):
            call = _keep_outputs(typed, outputs)
            growing_axes = _find_growing_axes(model, call, call_sizes, outputs)
            sized = replace(call_sizes, axes={**growing_axes, **call_sizes.axes})
            return _resolve_call(call, chunking, sized, outputs)
    ones = dict.fromkeys(certain_batch_symbols(model, symbol), 1)
    return ResolvedModel(
        _with_outputs(_analyse(_with_sizes(model, ones)), outputs), symbol, sizes=_sizes_by_name(ones)
    )


def _has_states(call: TypedModel) -> bool:
    """Return whether a model keeps something from call to call."""
    return bool(call.variables or find_candidates(call).pairs())


def _analyse(model: Model | TypedModel) -> TypedModel:
    """Analyse; f16 becomes f32, in which programs compute, and lookups that interpolate one op."""
    return model_of(with_interpolation(with_f32_for_f16(_analyse_unchanged(model))))


def _analyse_unchanged(model: Model | TypedModel) -> TypedModel:
    return model.analyse() if isinstance(model, Model) else model


def _with_sizes(model: Model | TypedModel, sizes: Mapping[Symbol, int]) -> Model | TypedModel:
    return model.with_sizes(sizes) if sizes else model


def _sizes_by_name(sizes: Mapping[Symbol, int]) -> Mapping[str, int]:
    return {symbol.name: size for symbol, size in sizes.items()}


def _resolve_call(
    call: TypedModel, chunking: Chunking, sized: CallSizes, outputs: Sequence[str] | None
) -> ResolvedModel:
    """Return the resolution of a model that takes chunks, ``call`` being one call of it."""
    if names := [name for name, view in call.graph.views.items() if view.backend or view.kernel]:
        raise PulsifyError(
            f"{call.title}: takes chunks, so a stream of it is one loop over its calls, which has one backend; omit "
            f"set_backend of {', '.join(names)}"
        )
    with count_spending(call.spending):
        offline, chunks = scan_over_chunks(call, chunking, sized.symbol, outputs, sized.axes)
    return ResolvedModel(model_of(offline), sized.symbol, chunks, call, _sizes_by_name(sized.sizes))


def _analyse_call(model: Model | TypedModel, sized: CallSizes) -> TypedModel:
    """Analyse with the sizes of one call. Raises LoadError, FactError: it does not take chunks of these sizes."""
    try:
        return _analyse(_with_sizes(model, sized.sizes))
    except (LoadError, FactError) as error:
        sizes = ", ".join(f"{symbol.name}={size}" for symbol, size in sized.sizes.items())
        raise type(error)(
            f"{model.title}: does not take chunks of {sizes}: {error}; use its author's {spell('pulse')} and "
            f"{spell('context')}, or {spell('inputs')}"
        ) from error


def _find_growing_axes(
    model: Model | TypedModel, call: TypedModel, sized: CallSizes, outputs: Sequence[str] | None
) -> Mapping[str, int | None]:
    """Return the axis of each output that a longer chunk makes longer, None if there is none; some are unknown.

    It is unknown if the model takes chunks of one length only, and for an output that grows along several axes.
    """
    if not sized.longer:
        return {}
    try:
        with catch_warnings():
            filterwarnings("ignore", category=PulseWarning)
            longer = _keep_outputs(_analyse(_with_sizes(model, sized.longer)), outputs)
    except (LoadError, FactError, DimError):
        return {}
    axes: dict[str, int | None] = {}
    for name, fact in call.outputs.items():
        shape = longer.outputs[name].shape
        growing = [axis for axis, (dim, other) in enumerate(zip(fact.shape, shape)) if dim != other]
        if len(shape) == fact.rank and len(growing) < 2:
            axes[name] = growing[0] if growing else None
    return axes


def _resolve_exported(
    model: Model | TypedModel, chunking: Chunking, symbol: str | None, outputs: Sequence[str] | None
) -> ResolvedModel:
    """Return a file that was written in pulses; its metadata describes how it is called."""
    if chunking.is_chunked or chunking.states is not None or outputs is not None:
        raise PulsifyError(
            f"{model.title}: it was written in pulses, so its states, axes, delays and outputs are fixed; omit "
            f"these options, or give them for the original model"
        )
    return ResolvedModel(_analyse_unchanged(model), symbol or model.metadata.get("pulse_symbol"))


def _keep_outputs(typed: TypedModel, outputs: Sequence[str] | None) -> TypedModel:
    """Return the model with more wires as outputs, so that the nodes that make them do not change."""
    more = [name for name in outputs or () if name not in typed.outputs]
    return typed.with_outputs([*typed.outputs, *more]) if more else typed


def _with_outputs(typed: TypedModel, outputs: Sequence[str] | None) -> TypedModel:
    return typed if outputs is None else typed.with_outputs(outputs)
