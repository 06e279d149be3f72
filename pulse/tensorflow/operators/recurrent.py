"""Recurrent layers that are one operator."""

import numpy as np

from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.op import Op
from pulse.ops.scan import Scan, ScanAxis
from pulse.ops.slice import Slice
from pulse.ops.source import Source
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.operators.control_loop_parts import graft, source_like
from pulse.tensorflow.registry import tensorflow_op
from pulse.typed import TypedGraph, TypedNetwork, constant
from pulse.wiring import wire

RESULTS = ("i", "cs", "f", "o", "ci", "co", "h")
"""The outputs of ``BlockLSTM``, in order."""
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
    body, captures = _body(node, 1)
    scan = Scan(
        body,
        ("cs_before", "h_before"),
        ("x",),
        tuple(captures),
        (ScanAxis(0),),
        tuple(ScanAxis(0) for _ in RESULTS),
    )
    outlets = wire(
        node.graph,
        node.wire_name,
        scan,
        [node.input(1), node.input(2), node.input(3), *(node.input(slot) for slot in captures.values())],
    )
    return outlets[: len(RESULTS)]


@tensorflow_op("LSTMBlockCell")
def lstm_cell(node: TensorflowNode) -> list[OutletId]:
    """One frame of ``BlockLSTM``; inputs are x, cs, h, w, wci, wcf, wco, b."""
    body, captures = _body(node, 0)
    slots = {"x": 0, "cs_before": 1, "h_before": 2, **captures}
    outlets = {outlet: node.input(slots[body.graph.label(outlet)]) for outlet in body.graph.inputs}
    return graft(body, body.graph.outputs[2:], node.graph, outlets, f"{node.wire_name}/")


@tensorflow_op("GRUBlockCell")
def gru_cell(node: TensorflowNode) -> list[OutletId]:
    """One frame; inputs are x, h, the weights of r and u, those of c, and their biases. Gives r, u, c and h."""
    x, before = node.input(0), node.input(1)
    size = node.fact(1).shape[1]

    def product(frame: OutletId, slot: int, name: str) -> OutletId:
        both = node.wire(Concat(1), [x, frame], f"{name}_both")
        y = node.wire(MatMul(), [both, node.input(slot)], f"{name}_product")
        return node.wire(Elementwise("add"), [y, node.input(slot + 2)], f"{name}_sum")

    gates = node.wire(Elementwise("sigmoid"), [product(before, 2, "gates")], "gates")
    r, u = (node.wire(Slice(1, size * n, size * (n + 1)), [gates], name) for n, name in enumerate("ru"))
    reset = node.wire(Elementwise("mul"), [before, r], "reset")
    c = node.wire(Elementwise("tanh"), [product(reset, 3, "c")], "c")
    change = node.wire(Elementwise("sub"), [before, c], "left")
    kept = node.wire(Elementwise("mul"), [u, change], "kept")
    return [r, u, c, node.wire(Elementwise("add"), [c, kept], "h")]


class _Cell:
    """A body under construction."""

    def __init__(self) -> None:
        self.graph = TypedGraph()

    def source(self, name: str, fact: TypedFact) -> OutletId:
        return source_like(self.graph, name, fact)

    def wire(self, name: str, op: Op, *inputs: OutletId) -> OutletId:
        return wire(self.graph, name, op, inputs)[0]

    def number(self, name: str, value: float, like: TypedFact) -> OutletId:
        return constant(self.graph, name, np.array(value, like.dtype))


def _body(node: TensorflowNode, first: int) -> tuple[TypedNetwork, dict[str, int]]:
    """Return the body of one frame, and its captures: name -> input of the node; x is input ``first``."""
    cell, x, cs = _Cell(), node.fact(first), node.fact(first + 1)
    peeps = node.flag("use_peephole")
    wires = {
        "x": cell.source("x", TypedFact(x.dtype, x.shape[-2:])),
        "cs_before": cell.source("cs_before", cs),
        "h_before": cell.source("h_before", node.fact(first + 2)),
    }
    slots = {"w": 3, "b": 7, **({"wci": 4, "wcf": 5, "wco": 6} if peeps else {})}
    captures = {name: first + slot for name, slot in slots.items()}
    wires |= {name: cell.source(name, node.fact(slot)) for name, slot in captures.items()}
    xh = cell.wire("xh", Concat(1), wires["x"], wires["h_before"])
    product = cell.wire("product", MatMul(), xh, wires["w"])
    gates = cell.wire("gates", Elementwise("add"), product, wires["b"])
    size = cs.shape[1]
    for index, name in enumerate(GATES.get(node.op_type, GATES["BlockLSTM"])):
        start = size * index
        wires[name] = cell.wire(f"{name}_gate", Slice(1, start, start + size), gates)
    bias = node.real("forget_bias", 1.0) if node.op_type != "BlockLSTMV2" else 0.0
    if bias:
        wires["f"] = cell.wire(
            "f_biased", Elementwise("add"), wires["f"], cell.number("forget_bias", bias, cs)
        )
    for name in ("i", "f") if peeps else ():
        peephole = cell.wire(f"{name}_seen", Elementwise("mul"), wires["cs_before"], wires[f"wc{name}"])
        wires[name] = cell.wire(f"{name}_peeping", Elementwise("add"), wires[name], peephole)
    for name, kind in (("i", "sigmoid"), ("f", "sigmoid"), ("ci", "tanh")):
        wires[name] = cell.wire(name, Elementwise(kind), wires[name])
    fresh = cell.wire("fresh", Elementwise("mul"), wires["ci"], wires["i"])
    kept = cell.wire("kept", Elementwise("mul"), wires["cs_before"], wires["f"])
    state = cell.wire("cs", Elementwise("add"), fresh, kept)
    clip = node.real("cell_clip", 3.0 if node.op_type != "BlockLSTMV2" else 0.0)
    if clip > 0:
        state = cell.wire("cs_below", Elementwise("min"), state, cell.number("most", clip, cs))
        state = cell.wire("cs_clipped", Elementwise("max"), state, cell.number("least", -clip, cs))
    wires["cs"] = state
    if peeps:
        peephole = cell.wire("o_seen", Elementwise("mul"), state, wires["wco"])
        wires["o"] = cell.wire("o_peeping", Elementwise("add"), wires["o"], peephole)
    wires["o"] = cell.wire("o", Elementwise("sigmoid"), wires["o"])
    wires["co"] = cell.wire("co", Elementwise("tanh"), state)
    wires["h"] = cell.wire("h", Elementwise("mul"), wires["co"], wires["o"])
    graph = cell.graph
    graph.inputs = [OutletId(each.id) for each in graph.nodes if isinstance(each.op, Source)]
    names = ["cs_next", "h_next", *(f"{name}_frame" for name in RESULTS)]
    graph.set_outputs([wires["cs"], wires["h"], *(wires[name] for name in RESULTS)], names)
    return TypedNetwork(graph, node.scope, f"{node.wire_name}.body"), captures
