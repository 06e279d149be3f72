"""Recurrent layers that are one operator."""

import numpy as np

from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.op import Op
from pulse.ops.scan import Course, Scan
from pulse.ops.slice import Slice
from pulse.ops.source import Source
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op
from pulse.typed import TypedGraph, TypedNetwork, constant
from pulse.wiring import wire

RESULTS = ("i", "cs", "f", "o", "ci", "co", "h")
"""What ``BlockLSTM`` gives, in this order."""
GATES = {"BlockLSTM": ("i", "ci", "f", "o"), "BlockLSTMV2": ("i", "f", "ci", "o")}


@tensorflow_op(*GATES)
def block_lstm(node: TensorflowNode) -> list[OutletId]:
    """Inputs are seq_len_max, x [time, batch, features], cs, h, w, wci, wcf, wco, b; the cell is a scan over time."""
    x, cell = node.fact(1), node.fact(2)
    if x.rank != 3 or cell.rank != 2:
        raise node.error(f"x must be [time, batch, features] and cs [batch, cells], got {x} and {cell}")
    longest = node.dims(0, "seq_len_max")
    if len(longest) != 1 or not longest[0].prove_ge(x.shape[0]).yes:
        raise node.error(f"its seq_len_max must be the {x.shape[0]} frames of x")
    body, captured = _body(node)
    scan = Scan(
        body,
        ("cs_before", "h_before"),
        ("x",),
        tuple(captured),
        (Course(0),),
        tuple(Course(0) for _ in RESULTS),
    )
    outlets = wire(
        node.graph,
        node.wire_name,
        scan,
        [node.input(1), node.input(2), node.input(3), *(node.input(slot) for slot in captured.values())],
    )
    return outlets[: len(RESULTS)]


class _Cell:
    """A body under construction."""

    def __init__(self) -> None:
        self.graph = TypedGraph()

    def source(self, name: str, fact: TypedFact) -> OutletId:
        plain = TypedFact(fact.dtype, fact.shape)
        return self.graph.add(name, Source(plain), (), [plain])[0]

    def wire(self, name: str, op: Op, *inputs: OutletId) -> OutletId:
        return wire(self.graph, name, op, inputs)[0]

    def number(self, name: str, value: float, like: TypedFact) -> OutletId:
        return constant(self.graph, name, np.array(value, like.dtype))


def _body(node: TensorflowNode) -> tuple[TypedNetwork, dict[str, int]]:
    """One frame; the captured names and the node's inputs that they are."""
    cell, x, cs = _Cell(), node.fact(1), node.fact(2)
    peeps = node.flag("use_peephole")
    wires = {
        "x": cell.source("x", TypedFact(x.dtype, x.shape[1:])),
        "cs_before": cell.source("cs_before", cs),
        "h_before": cell.source("h_before", node.fact(3)),
    }
    captured = {"w": 4, "b": 8, **({"wci": 5, "wcf": 6, "wco": 7} if peeps else {})}
    wires |= {name: cell.source(name, node.fact(slot)) for name, slot in captured.items()}
    joined = cell.wire("xh", Concat(1), wires["x"], wires["h_before"])
    product = cell.wire("product", MatMul(), joined, wires["w"])
    gates = cell.wire("gates", Elementwise("add"), product, wires["b"])
    size = cs.shape[1]
    for place, name in enumerate(GATES[node.op_type]):
        start = size * place
        wires[name] = cell.wire(f"{name}_gate", Slice(1, start, start + size), gates)
    bias = node.real("forget_bias", 1.0) if node.op_type == "BlockLSTM" else 0.0
    if bias:
        wires["f"] = cell.wire(
            "f_biased", Elementwise("add"), wires["f"], cell.number("forget_bias", bias, cs)
        )
    for name in ("i", "f") if peeps else ():
        seen = cell.wire(f"{name}_seen", Elementwise("mul"), wires["cs_before"], wires[f"wc{name}"])
        wires[name] = cell.wire(f"{name}_peeping", Elementwise("add"), wires[name], seen)
    for name, kind in (("i", "sigmoid"), ("f", "sigmoid"), ("ci", "tanh")):
        wires[name] = cell.wire(name, Elementwise(kind), wires[name])
    fresh = cell.wire("fresh", Elementwise("mul"), wires["ci"], wires["i"])
    kept = cell.wire("kept", Elementwise("mul"), wires["cs_before"], wires["f"])
    state = cell.wire("cs", Elementwise("add"), fresh, kept)
    clip = node.real("cell_clip", 3.0 if node.op_type == "BlockLSTM" else 0.0)
    if clip > 0:
        state = cell.wire("cs_below", Elementwise("min"), state, cell.number("most", clip, cs))
        state = cell.wire("cs_clipped", Elementwise("max"), state, cell.number("least", -clip, cs))
    wires["cs"] = state
    if peeps:
        seen = cell.wire("o_seen", Elementwise("mul"), state, wires["wco"])
        wires["o"] = cell.wire("o_peeping", Elementwise("add"), wires["o"], seen)
    wires["o"] = cell.wire("o", Elementwise("sigmoid"), wires["o"])
    wires["co"] = cell.wire("co", Elementwise("tanh"), state)
    wires["h"] = cell.wire("h", Elementwise("mul"), wires["co"], wires["o"])
    graph = cell.graph
    graph.inputs = [OutletId(each.id) for each in graph.nodes if isinstance(each.op, Source)]
    names = ["cs_next", "h_next", *(f"{name}_frame" for name in RESULTS)]
    graph.set_outputs([wires["cs"], wires["h"], *(wires[name] for name in RESULTS)], names)
    return TypedNetwork(graph, node.scope, f"{node.wire_name}.body"), captured
