"""The few calls that most users need."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from pulse.model import Model, load
from pulse.program.compiler import Progress
from pulse.program.program import Program
from pulse.proof import Report
from pulse.proof import verify as _verify
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
    progress: Progress | None = None,
    max_context: int | None = None,
) -> Program:
    """Load, analyse, declutter, pulsify and compile in one call.

    source   a path, the bytes of an ONNX file, or an ``onnx.ModelProto``
    pulse    frames of the symbol for each step; the smallest possible where none is given
    symbol   the streaming dim; found where there is one
    inputs   shapes to give or to fix, such as ``{"x": "1,80,T,f32"}``
    outputs  the outputs to keep; all of them by default
    align    delay the earlier outputs so that all belong to the same moment
    max_context  for attention to all frames before: the most frames of the symbol that a stream may have
    Raises   PulseError
    """
    typed = load(source, inputs).analyse()
    if outputs is not None:
        typed = typed.with_outputs(outputs)
    return typed.declutter().pulsify(symbol, pulse, align, max_context).compile(backend, progress)


def verify(
    model: "Model | TypedModel | str | PathLike[str] | bytes | ModelProto",
    pulse: int | None = None,
    symbol: str | None = None,
    lengths: Sequence[int] | None = None,
    backend: str = "numba",
    max_context: int | None = None,
) -> Report:
    """Prove on random input that the stream equals the offline model, or name the first wire that diverges.

    lengths  frames of the symbol to try; shorter than a pulse, not a multiple, and long ones by default
    max_context  as of ``stream``; longer lengths are skipped
    Raises   PulseError where the model cannot be streamed at all
    """
    if isinstance(model, TypedModel):
        typed = model
    else:
        typed = (model if isinstance(model, Model) else load(model)).analyse().declutter()
    return _verify(
        typed, pulse=pulse, symbol=symbol, lengths=lengths, backend=backend, max_context=max_context
    )
