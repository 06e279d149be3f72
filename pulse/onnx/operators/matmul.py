"""Matrix products."""

from collections.abc import Iterator

from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasRank, SameSize, SameType
from pulse.infer.shapes import Broadcasting
from pulse.infer.wire_facts import Axis
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.registry import writes
from pulse.ops.matmul import MatMul
from pulse.ops.shape import Transpose, matrix_transpose


@onnx_op("MatMul")
def matmul(node: NodeContext) -> OutletId:
    """Wire numpy's matmul."""
    return node.wire(MatMul(), [node.input(0), node.input(1)])


@onnx_op("Gemm")
def gemm(node: NodeContext) -> OutletId:
    """Wire A @ B * alpha + C * beta, either of A and B transposed."""
    a, b = node.input(0), node.input(1)
    if node.fact(0).rank != 2 or node.fact(1).rank != 2:
        raise node.error(f"two matrices are needed, got {node.fact(0)} and {node.fact(1)}")
    alpha, beta = node.real("alpha", 1.0), node.real("beta", 1.0)
    if node.flag("transA"):
        a = node.wire(Transpose((1, 0)), [a], "a")
    if node.flag("transB"):
        b = node.wire(Transpose((1, 0)), [b], "b")
    if alpha != 1.0:
        b = node.apply("mul", b, alpha, suffix="scaled")
    if not node.has(2) or beta == 0.0:
        return node.wire(MatMul(), [a, b])
    c = node.input(2)
    if beta != 1.0:
        c = node.apply("mul", c, beta, suffix="c")
    return node.apply("add", node.wire(MatMul(), [a, b], "product"), c)


@onnx_op("com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul")
def fused_mat_mul(node: NodeContext) -> OutletId:
    """Wire the product of matrices, either of them transposed, times alpha."""
    if node.flag("transBatchA") or node.flag("transBatchB"):
        raise node.error("transposed batches are not supported")
    operands: list[OutletId] = []
    for slot, name in ((0, "A"), (1, "B")):
        x, rank = node.input(slot), node.fact(slot).rank
        if node.flag(f"trans{name}") and rank > 1:
            x = node.wire(Transpose(matrix_transpose(rank)), [x], f"{name}_transposed")
        operands.append(x)
    alpha = node.real("alpha", 1.0)
    y = node.wire(MatMul(), operands, "product")
    if alpha != 1.0:
        y = node.apply("mul", y, alpha)
    return node.name_result(y)


@rule("MatMul")
def infer_matmul(node: InferenceNode) -> Iterator[FactRelation]:
    """Shapes of a [..., M, K], b [..., K, N] -> y [..., M, N]; a vector has K alone, and its other axis is not in y."""
    a, b, y = node.input(0), node.input(1), node.output
    yield SameType([a, b, y])
    yield from _ranks(node)
    first, second = node.rank(a), node.rank(b)
    if first is None or second is None:
        return
    yield SameSize([Axis(a, -1), Axis(b, -2 if second > 1 else -1)])
    if first > 1:
        yield SameSize([Axis(a, -2), Axis(y, -2 if second > 1 else -1)])
    if second > 1:
        yield SameSize([Axis(b, -1), Axis(y, -1)])
    if first > 1 and second > 1:
        yield Broadcasting(y, [a, b], end=2)


def _ranks(node: InferenceNode) -> Iterator[FactRelation]:
    a, b, y = node.input(0), node.input(1), node.output
    first, second, rank = node.rank(a), node.rank(b), node.rank(y)
    if first is not None and second is not None:
        yield HasRank([y], max(first, second, 2) - (first == 1) - (second == 1))
    elif rank is not None:
        for own_rank, other in ((first, b), (second, a)):
            if own_rank == 1:
                yield HasRank([other], rank + 1)
            elif own_rank is not None and (own_rank < rank or own_rank == rank == 2):
                yield HasRank([other], rank)
            elif own_rank is not None and own_rank == rank + 1:
                yield HasRank([other], 1)


@rule("Gemm")
def infer_gemm(node: InferenceNode) -> Iterator[FactRelation]:
    """Relate the shapes of a [M, K], b [K, N], either transposed, c broadcast to y [M, N]."""
    yield SameType([*node.given_inputs(), node.output])
    yield from relate_matrices(node, node.flag("transA"), node.flag("transB"))


def relate_matrices(node: InferenceNode, across: bool, down: bool) -> Iterator[FactRelation]:
    """Relate the shapes of a [M, K], transposed if ``across``, b [K, N], transposed if ``down``, and y [M, N]."""
    a, b, y = node.input(0), node.input(1), node.output
    yield HasRank([a, b, y], 2)
    yield SameSize([Axis(a, 0 if across else 1), Axis(b, 1 if down else 0)])
    yield SameSize([Axis(a, 1 if across else 0), Axis(y, 0)])
    yield SameSize([Axis(b, 0 if down else 1), Axis(y, 1)])


writes(MatMul)(lambda w, _: w.emit("MatMul", w.inputs))
