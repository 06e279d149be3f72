"""onnxruntime as a backend: a pulsed model as an ONNX file, whose states are kept here and fed back."""

from collections.abc import Sequence
from importlib.util import find_spec

from pulse.errors import CompileError
from pulse.facts import TypedFact
from pulse.onnx.write.registry import WRITERS
from pulse.ops.op import Op
from pulse.program.backends.registry import Backend, CompileRequest, register_backend
from pulse.program.program import Program

NAME = "onnxruntime"
OPSET = 17
"""The version of the operators that onnxruntime gets."""


def _refuse_without_writer(op: Op, facts: Sequence[TypedFact]) -> str:
    from pulse.onnx.operators import families as families

    return "" if type(op) in WRITERS else "it cannot be written as ONNX"


def _compile_session(request: CompileRequest) -> Program:
    """Compile a part for onnxruntime. Raises CompileError: it is not installed, or weights are not f32."""
    if find_spec(NAME) is None:
        raise CompileError(f"the backend onnxruntime is not installed: pip install 'pulse-stream[{NAME}]'")
    if request.rounding.form != "f32":
        raise CompileError(
            f"the backend onnxruntime keeps weights as they are, not as {request.rounding.form}"
        )
    from pulse.onnx.write.model import to_onnx
    from pulse.runtimes.onnx_runtimes import RuntimeProgram

    return RuntimeProgram(request.model, to_onnx(request.model, OPSET))


register_backend(Backend(NAME, "session", _compile_session, _refuse_without_writer, in_parts=True))
