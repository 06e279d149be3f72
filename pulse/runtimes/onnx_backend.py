"""onnxruntime as a backend: a pulsed model as an ONNX file, whose states are kept here and fed back."""

from collections.abc import Sequence
from importlib.util import find_spec

from pulse.errors import CompileError
from pulse.facts import TypedFact
from pulse.onnx.write.registry import WRITERS
from pulse.ops.op import Op
from pulse.program.backends.implementations import Implementation, register
from pulse.program.compiler import OTHER_BACKENDS
from pulse.program.program import Program
from pulse.pulsify.network import PulsedNetwork

NAME = "onnxruntime"
OPSET = 17
"""The version of the operators that onnxruntime gets."""


def _without_writer(op: Op, facts: Sequence[TypedFact]) -> str:
    from pulse.onnx.operators import families as families

    return "" if type(op) in WRITERS else "it cannot be written as ONNX"


def compile_for_runtime(model: PulsedNetwork, weights: str) -> Program:
    """Compile a pulsed model for onnxruntime. Raises CompileError: it is not installed, or weights are not f32."""
    if find_spec(NAME) is None:
        raise CompileError(f"the backend onnxruntime is not installed: pip install 'pulse-stream[{NAME}]'")
    if weights != "f32":
        raise CompileError(f"the backend onnxruntime keeps weights as they are, not as {weights}")
    from pulse.onnx.write.model import to_onnx
    from pulse.runtimes.onnxruntime import RuntimeProgram

    return RuntimeProgram(model, to_onnx(model, OPSET))


register(Implementation(NAME, "session", (Op,), refuses=_without_writer))
OTHER_BACKENDS[NAME] = compile_for_runtime
