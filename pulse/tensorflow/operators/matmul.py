"""Matrix products."""

from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx
from pulse.ops.matmul import MatMul
from pulse.ops.shape import matrix_transpose
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def matmul(node: TensorflowNode) -> OutletId:
    """Multiply over the last two axes, either of them transposed first."""
    if node.is_complex():
        raise node.error("products of complex matrices are not supported")
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


@tensorflow_op("Einsum")
def einsum(node: TensorflowNode) -> OutletId:
    """Sum products over indices."""
    return wire_onnx(node, "Einsum", node.given_inputs(), equation=node.text("equation"))
