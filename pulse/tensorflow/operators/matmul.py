"""Matrix products."""

from collections.abc import Iterator

from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.relations import FactRelation, HasRank, SameSize, SameType
from pulse.infer.wire_facts import Axis
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
        if rank < 2:
            raise node.error(f"a factor {node.fact(slot)} is not a matrix")
        if node.flag(name):
            x = node.transpose(x, matrix_transpose(rank), name)
        factors.append(x)
    return node.wire(MatMul(), factors)


@rule("MatMul")
def infer_matmul(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of a [M, K], b [K, N], either transposed -> y [M, N]."""
    a, b, y = node.input(0), node.input(1), node.output
    across, down = node.flag("transpose_a"), node.flag("transpose_b")
    yield SameType([a, b, y])
    yield HasRank([a, b, y], 2)
    yield SameSize([Axis(a, 0 if across else 1), Axis(b, 1 if down else 0)])
    yield SameSize([Axis(a, 1 if across else 0), Axis(y, 0)])


@tensorflow_op("Einsum")
def einsum(node: TensorflowNode) -> OutletId:
    """Sum products over indices."""
    return wire_onnx(node, "Einsum", node.given_inputs(), equation=node.text("equation"))
