"""Rotary position embeddings."""

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.gather import look_up
from pulse.onnx.registry import onnx_op
from pulse.ops.concat import Concat
from pulse.ops.dims import unify
from pulse.ops.shape import AddAxis, Reshape, exact_quotient
from pulse.ops.slice import Slice
from pulse.support.wording import count_of


@onnx_op("RotaryEmbedding")
def rotary_embedding(node: NodeContext) -> OutletId:
    """Rotate pairs of channels by the angle of their frame: halves of each head, or neighbours (interleaved)."""
    x, shape = node.input(0), node.fact(0).shape
    node.require(len(shape) in (3, 4), f"{node.fact(0)} must have 3 or 4 axes")
    flat = len(shape) == 3
    if flat:
        heads = TDim.of(node.divisor("num_heads", node.fact(0).shape[2], "channels of its input"))
        size = exact_quotient([shape[2]], [heads], f"{node.wire_name} (RotaryEmbedding)")
        x = node.wire(Reshape((*shape[:2], heads, size)), [x], "heads")
    size = node.graph.fact(x).shape[3]
    rotary_dim = node.integer("rotary_embedding_dim", 0) or int(size)
    if rotary_dim % 2 or rotary_dim > int(size):
        raise node.error(f"{rotary_dim} of {count_of(size, 'channel')} cannot be rotated in pairs")
    cos, sin = (_angles(node, slot, rotary_dim // 2, 2 if flat else 1) for slot in (1, 2))
    first, second = _split(node, x, rotary_dim)
    real = _combine(node, "sub", (cos, first), (sin, second), "real")
    imaginary = _combine(node, "add", (sin, first), (cos, second), "imaginary")
    y = _join(node, real, imaginary, rotary_dim)
    if rotary_dim < int(size):
        unrotated = node.wire(Slice(3, TDim.of(rotary_dim), size), [x], "unrotated")
        y = node.wire(Concat(3), [y, unrotated], "heads")
    return node.name_result(node.wire(Reshape(shape), [y], "flat") if flat else y)


def _angles(node: NodeContext, slot: int, half: int, heads: int) -> OutletId:
    """Return cosines or sines [B, frames, half] with an axis for the heads; looked up by positions, if given."""
    name = "cos" if slot == 1 else "sin"
    angles = (
        look_up(node.with_name(f"{node.wire_name}.{name}"), node.input(slot), 0, node.input(3))
        if node.has(3)
        else node.input(slot)
    )
    fact = node.graph.fact(angles)
    node.require(fact.rank == 3, f"its {name} {fact} must have 3 axes, or 2 and positions")
    unify(fact.shape[2], TDim.of(half), f"{node.wire_name} (RotaryEmbedding): its {name}")
    return node.wire(AddAxis(heads), [angles], f"{name}_heads")


def _split(node: NodeContext, x: OutletId, rotary_dim: int) -> list[OutletId]:
    if node.flag("interleaved"):
        cuts = [Slice(3, TDim.of(start), TDim.of(rotary_dim), 2) for start in (0, 1)]
    else:
        cuts = [Slice(3, TDim.of(start), TDim.of(start + rotary_dim // 2)) for start in (0, rotary_dim // 2)]
    return [node.wire(op, [x], f"part{index}") for index, op in enumerate(cuts)]


def _combine(
    node: NodeContext,
    function: str,
    left: tuple[OutletId, OutletId],
    right: tuple[OutletId, OutletId],
    name: str,
) -> OutletId:
    products = [node.apply("mul", *pair, suffix=f"{name}{index}") for index, pair in enumerate((left, right))]
    return node.apply(function, *products, suffix=name)


def _join(node: NodeContext, real: OutletId, imaginary: OutletId, rotary_dim: int) -> OutletId:
    if not node.flag("interleaved"):
        return node.wire(Concat(3), [real, imaginary], "rotated")
    shape = node.graph.fact(real).shape
    columns = [
        node.wire(AddAxis(4), [part], f"column{index}") for index, part in enumerate((real, imaginary))
    ]
    return node.wire(
        Reshape((*shape[:3], TDim.of(rotary_dim))), [node.wire(Concat(4), columns, "pairs")], "rotated"
    )
