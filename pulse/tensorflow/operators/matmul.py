"""Matrix products."""

from collections.abc import Iterator

from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.relations import FactRelation, SameType
from pulse.onnx.operators.matmul import relate_matrices
from pulse.onnx.wiring import wire_onnx
from pulse.ops.matmul import MatMul
from pulse.ops.shape import matrix_transpose
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import rule, tensorflow_op


@tensorflow_op("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def matmul(node: TensorflowNode) -> OutletId:
    """Multiply over the last two axes, either of them transposed first."""
    names = ("transpose_a", "transpose_b") if node.op_type == "MatMul" else ("adj_x", "adj_y")
    factors: list[OutletId] = []
    for slot, name in enumerate(names):
        x, rank = node.input(slot), node.fact(slot).rank
        node.require(rank >= 2, f"a factor {node.fact(slot)} is not a matrix")
        if node.flag(name):
            x = node.transpose(x, matrix_transpose(rank), name)
        factors.append(x)
    return node.wire(MatMul(), factors)


@rule("MatMul")
def infer_matmul(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of a [M, K], b [K, N], either transposed -> y [M, N]."""
    yield SameType([node.input(0), node.input(1), node.output])
    yield from relate_matrices(node, node.flag("transpose_a"), node.flag("transpose_b"))


@tensorflow_op("Einsum")
def einsum(node: TensorflowNode) -> OutletId:
    """Sum products over indices."""
    return wire_onnx(node, "Einsum", node.given_inputs(), equation=node.text("equation"))
