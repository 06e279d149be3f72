"""Matrix products."""

from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.shape import Transpose


@onnx_op("MatMul")
def matmul(node: NodeContext) -> OutletId:
    """Numpy's matmul."""
    return node.wire(MatMul(), [node.input(0), node.input(1)])


@onnx_op("Gemm")
def gemm(node: NodeContext) -> OutletId:
    """A @ B * alpha + C * beta, either of A and B transposed."""
    a, b = node.input(0), node.input(1)
    if node.fact(0).rank != 2 or node.fact(1).rank != 2:
        raise node.error(f"two matrices are needed, got {node.fact(0)} and {node.fact(1)}")
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    if node.flag("transA"):
        a = node.wire(Transpose((1, 0)), [a], "a")
    if node.flag("transB"):
        b = node.wire(Transpose((1, 0)), [b], "b")
    if alpha != 1.0:
        b = node.wire(Elementwise("mul"), [b, node.scalar_constant(alpha, node.fact(1), "alpha")], "scaled")
    if not node.has(2) or beta == 0.0:
        return node.wire(MatMul(), [a, b])
    c = node.input(2)
    if beta != 1.0:
        c = node.wire(Elementwise("mul"), [c, node.scalar_constant(beta, node.fact(2), "beta")], "c")
    return node.wire(Elementwise("add"), [node.wire(MatMul(), [a, b], "product"), c])
