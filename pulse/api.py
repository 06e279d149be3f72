"""The few calls that most users need."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from pulse.chunks.chunking import Chunking
from pulse.model import Model, load
from pulse.oracle import oracle_of
from pulse.program.compiler import Prepare
from pulse.program.program import Program
from pulse.proof import Report, prove
from pulse.pulsify.model import PulsedModel
from pulse.recipes.opening import open_source
from pulse.typed import TypedModel

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["load", "stream", "verify"]


def stream(
    source: "str | PathLike[str] | bytes | ModelProto",
    pulse: int | None = None,
    symbol: str | None = None,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] | None = None,
    align: bool = False,
    backend: str = "numba",
    max_context: int | None = None,
    constants: Mapping[str, Any] | None = None,
    states: Mapping[str, str] | None = None,
    context: Mapping[str, int] | None = None,
    axes: Mapping[str, int] | None = None,
    delay: Mapping[str, int] | None = None,
    initial: Mapping[str, Any] | None = None,
    weights: str = "f32",
    ignore_value_info: bool = False,
    prepare: Prepare | None = None,
    budget: Mapping[str, float] | None = None,
) -> Program:
    """Load, analyse, declutter, pulsify and compile in one call.

    A model that its author made streaming, taking a chunk and states and giving new states, is not pulsified: it runs
    as it is, chunk by chunk. Its states are found, or given with ``states``.

    source   a path, the bytes of an ONNX file, or an ``onnx.ModelProto``; or the path of a recipe, see docs/recipes.md
    pulse    frames of the symbol for each step; the smallest possible where none is given
    symbol   the streaming dim; found where there is one
    inputs   shapes to give or to fix, such as ``{"x": "1,80,T,f32"}``
    outputs  the outputs to keep; all of them by default
    align    delay the earlier outputs so that all belong to the same moment
    max_context  for attention to all frames before: the most frames of the symbol that a stream may have
    constants  inputs that always have one value: ``{"sr": 16000}``
    weights  how weights are stored: ``f32``; ``bf16`` and ``int8`` are rounded, and take a half and a quarter
    ignore_value_info, budget  as of ``load``
    prepare  as of ``compile_model``: ``streaming.warming.warm_shown`` compiles side by side and shows a bar

    Of a model of chunks:

    states   input -> output that is its next value, all of them: ``{"h": "hn"}``; empty where there are none
    context  input -> how many frames before the new ones each chunk begins with
    axes     input or output -> its axis of frames
    delay    output -> leading frames to drop
    initial  state -> its value at the first chunk, or one number for all of it; zeros by default
    Raises   PulseError
    """
    chunking = Chunking(states, context or {}, axes or {}, delay or {}, initial or {}, outputs)
    opened = open_source(source, inputs, constants, chunking, symbol, pulse, ignore_value_info, budget)
    return opened.pulsed(pulse, align, max_context).compile(backend, weights, prepare)


def verify(
    model: "Model | TypedModel | PulsedModel | str | PathLike[str] | bytes | ModelProto",
    pulse: int | None = None,
    symbol: str | None = None,
    lengths: Sequence[int] | None = None,
    backend: str = "numba",
    max_context: int | None = None,
    prepare: Prepare | None = None,
    seed: int = 0,
    long: bool = False,
    budget: Mapping[str, float] | None = None,
) -> Report:
    """Prove on random input that the stream equals the offline model, or name the first wire that diverges.

    model    a file of any kind, or a recipe; a model before it is pulsified; or one in pulses that keeps what it
             should equal: a chunk model, compared with its author's loop
    lengths  frames of the symbol to try; by default short ones, and long ones that fill all that the model remembers
    max_context  as of ``stream``
    prepare  as of ``stream``
    seed     of the inputs
    long     try longer streams, and every signal on them, whatever it takes
    budget   as of ``load``, for a file
    Raises   PulseError where the model cannot be streamed at all
    """
    original: TypedModel | None
    if isinstance(model, PulsedModel):
        original, pulsed = None, model
    elif isinstance(model, TypedModel):
        original, pulsed = model, model.pulsify(symbol, pulse, max_context=max_context)
    elif isinstance(model, Model):
        original = model.analyse()
        pulsed = original.declutter().pulsify(symbol, pulse, max_context=max_context)
    else:
        opened = open_source(model, symbol=symbol, pulse=pulse, budget=budget)
        original, pulsed = opened.original, opened.pulsed(pulse, max_context=max_context)
    return prove(pulsed, oracle_of(pulsed, original), lengths, backend, seed, prepare, long)
