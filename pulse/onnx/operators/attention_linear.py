"""Attention by a state that each frame updates: a scan."""

import math
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.facts import F32, DType, TypedFact
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.infer.scan_body import ScanBody
from pulse.onnx.registry import onnx_op
from pulse.ops.matmul import MatMul
from pulse.ops.scan import ScanAxis
from pulse.ops.shape import Expand, Reshape, Transpose, exact_quotient
from pulse.support.wording import count_of

RULES = {"linear": (), "gated": ("decay",), "delta": ("beta",), "gated_delta": ("decay", "beta")}
"""Update rule -> the optional inputs that it needs."""
PAST, DECAY, BETA = 3, 4, 5
"""The numbers of optional inputs."""
TIME = ScanAxis(1)
"""The time axis, forwards."""


@onnx_op("LinearAttention", "com.microsoft::LinearAttention")
def linear_attention(node: NodeContext) -> list[OutletId]:
    """Wire the state S [B, heads, dk, dv] of each frame, and queries times it; computed in f32 at least.

    ``linear``       S = S + k v
    ``gated``        S = exp(g) S + k v
    ``delta``        S = S + beta k (v - k S)
    ``gated_delta``  S = exp(g) S + beta k (v - k exp(g) S)
    """
    if node.integer("state_window", 0):
        raise node.error(
            "state_window is not supported; omit it; present_state is then the state after the last frame"
        )
    rule = node.text("update_rule", "gated_delta")
    node.require(rule in RULES, f"update_rule {rule!r} is not supported; use {', '.join(RULES)}")
    for name, slot in (("decay", DECAY), ("beta", BETA)):
        if name in RULES[rule] and not node.has(slot):
            raise node.error(f"update_rule {rule} needs the input {name}")
    dtype = node.fact(0).dtype
    state_dtype = F32 if dtype.itemsize < 4 else dtype
    frames = _frames(node, rule, state_dtype)
    q, v = node.graph.fact(frames["q"]), node.graph.fact(frames["v"])
    batch, _, heads, group, size = q.shape
    state = TypedFact(state_dtype, (batch, heads, size, v.shape[4]))
    body = ScanBody()
    before = body.add_state("S", state, _initial(node, state))
    x = {
        name: body.add_frames(name, node.graph.fact(outlet).without_axis(TIME.axis), outlet, TIME)
        for name, outlet in frames.items()
    }
    after, products = _wire_frame(replace(node, graph=body.graph, wire_name="frame"), before, x)
    results = body.wire(node, f"{node.wire_name}.scan", [after], [products], TIME)
    flat = (*q.shape[:2], heads * group * v.shape[4])
    y = node.wire(Reshape(flat), [results[0]], "flat")
    names = [*node.outputs, ""][:2]
    present = node.with_name(names[1]).cast(results[1], dtype) if names[1] else results[1]
    return [node.name_result(node.cast(y, dtype, "narrow")), present]


def _initial(node: NodeContext, state: TypedFact) -> OutletId:
    if node.has(PAST):
        return node.cast(node.input(PAST), state.dtype, "past")
    return node.wire(Expand(state.shape), [node.constant(np.zeros((), state.dtype), "zero")], "past")


def _frames(node: NodeContext, rule: str, state_dtype: DType) -> dict[str, OutletId]:
    """Return the inputs of each frame, time second.

    These are q [.., heads, group, dk], k [.., heads, dk, 1], v [.., heads, 1, dv] …
    """
    for slot, name in enumerate(("queries", "keys", "values")):
        node.require_rank(slot, (3,), name)
    heads = TDim.of(node.divisor("kv_num_heads", node.fact(1).shape[-1], "channels of its keys"))
    queries = node.divisor("q_num_heads", node.fact(0).shape[-1], "channels of its queries")
    if queries % int(heads):
        raise node.error(
            f"{count_of(queries, 'head')} of queries cannot share {count_of(heads, 'head')} of keys"
        )
    group, one = TDim.of(queries // int(heads)), TDim.of(1)

    def split(slot: int, name: str, inner: tuple[TDim, ...], axis: int, head_count: TDim = heads) -> OutletId:
        batch, frames, width = node.fact(slot).shape
        size = exact_quotient(
            [width], [head_count, *inner], f"{node.wire_name} (LinearAttention): its {name}"
        )
        shape = (batch, frames, head_count, *inner[:axis], size, *inner[axis:])
        return node.cast(node.wire(Reshape(shape), [node.input(slot)], name), state_dtype, f"{name}_wide")

    q = split(0, "q", (group,), 1)
    scale = node.real("scale", 0.0) or 1 / math.sqrt(int(node.graph.fact(q).shape[4]))
    q = node.apply("mul", q, scale, suffix="q_scaled")
    frames = {"q": q, "k": split(1, "k", (one,), 0), "v": split(2, "v", (one,), 1)}
    if "decay" in RULES[rule]:
        frames["g"] = node.apply("exp", split(DECAY, "decay", (one,), 0), suffix="g")
    if "beta" in RULES[rule]:
        beta_heads = one if node.fact(BETA).shape[2] == 1 else heads
        frames["b"] = split(BETA, "beta", (one,), 0, beta_heads)
    return frames


def _wire_frame(body: NodeContext, s: OutletId, x: dict[str, OutletId]) -> tuple[OutletId, OutletId]:
    """Wire one frame into a scan's body. Returns the new state, and the queries times it."""
    if "g" in x:
        s = body.apply("mul", x["g"], s, suffix="decayed")
    v = x["v"]
    if "b" in x:
        row = body.wire(Transpose((0, 1, 3, 2)), [x["k"]], "k_row")
        recalled = body.wire(MatMul(), [row, s], "recalled")
        v = body.apply("mul", x["b"], body.apply("sub", v, recalled, suffix="news"), suffix="weighted")
    s = body.apply("add", s, body.apply("mul", x["k"], v, suffix="update"), suffix="state")
    return s, body.wire(MatMul(), [x["q"], s], "y")
