"""Recurrent layers that are one operator."""

from dataclasses import replace

from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.infer.unrolling import graft
from pulse.ops.concat import Concat
from pulse.ops.matmul import MatMul
from pulse.ops.scan import Scan, ScanAxis
from pulse.ops.slice import Slice
from pulse.support.wording import count_of
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op
from pulse.typed import TypedGraph, TypedNetwork, add_source, sources
from pulse.wiring import wire

LSTM_OUTPUTS = ("i", "cs", "f", "o", "ci", "co", "h")
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
        raise node.error(f"its seq_len_max must be the {count_of(x.shape[0], 'frame')} of x")
    body, captures = _body(node, 1)
    scan = Scan(
        body,
        ("cs_before", "h_before"),
        ("x",),
        tuple(captures),
        (ScanAxis(0),),
        tuple(ScanAxis(0) for _ in LSTM_OUTPUTS),
    )
    outlets = wire(
        node.graph,
        node.wire_name,
        scan,
        [node.input(1), node.input(2), node.input(3), *(node.input(slot) for slot in captures.values())],
    )
    return outlets[: len(LSTM_OUTPUTS)]


@tensorflow_op("LSTMBlockCell")
def lstm_cell(node: TensorflowNode) -> list[OutletId]:
    """Wire one frame of ``BlockLSTM``; inputs are x, cs, h, w, wci, wcf, wco, b."""
    body, captures = _body(node, 0)
    slots = {"x": 0, "cs_before": 1, "h_before": 2, **captures}
    outlets = {outlet: node.input(slots[body.graph.label(outlet)]) for outlet in body.graph.inputs}
    return graft(body, body.graph.outputs[2:], node.graph, outlets, f"{node.wire_name}/")


@tensorflow_op("GRUBlockCell")
def gru_cell(node: TensorflowNode) -> list[OutletId]:
    """Wire one frame; inputs are x, h, weights of r and u, weights of c, and their biases. Returns r, u, c and h."""
    x, before = node.input(0), node.input(1)
    size = node.size(1, 1)

    def product(frame: OutletId, slot: int, name: str) -> OutletId:
        inputs = node.wire(Concat(1), [x, frame], f"{name}_inputs")
        y = node.wire(MatMul(), [inputs, node.input(slot)], f"{name}_product")
        return node.apply("add", y, node.input(slot + 2), suffix=f"{name}_sum")

    gates = node.apply("sigmoid", product(before, 2, "gates"), suffix="gates")
    r, u = (node.wire(Slice(1, size * n, size * (n + 1)), [gates], name) for n, name in enumerate("ru"))
    reset = node.apply("mul", before, r, suffix="reset")
    c = node.apply("tanh", product(reset, 3, "c"), suffix="c")
    difference = node.apply("sub", before, c, suffix="difference")
    retained = node.apply("mul", u, difference, suffix="retained")
    return [r, u, c, node.apply("add", c, retained, suffix="h")]


def _body(node: TensorflowNode, first: int) -> tuple[TypedNetwork, dict[str, int]]:
    """Return the body of one frame, and its captures: name -> input of the node; x is input ``first``."""
    graph, x, cs = TypedGraph(), node.fact(first), node.fact(first + 1)
    cell = replace(node, graph=graph, wire_name="frame")
    has_peepholes = node.flag("use_peephole")
    slots = {"w": 3, "b": 7, **({"wci": 4, "wcf": 5, "wco": 6} if has_peepholes else {})}
    captures = {name: first + slot for name, slot in slots.items()}
    facts = {"x": TypedFact(x.dtype, x.shape[-2:]), "cs_before": cs, "h_before": node.fact(first + 2)}
    facts |= {name: node.fact(slot) for name, slot in captures.items()}
    wires = {name: add_source(graph, name, fact) for name, fact in facts.items()}
    graph.inputs = sources(graph)
    xh = cell.wire(Concat(1), [wires["x"], wires["h_before"]], "xh")
    gates = cell.apply("add", cell.wire(MatMul(), [xh, wires["w"]], "product"), wires["b"], suffix="gates")
    size = cs.shape[1]
    for index, name in enumerate(GATES.get(node.op_type, GATES["BlockLSTM"])):
        wires[name] = cell.wire(Slice(1, size * index, size * (index + 1)), [gates], f"{name}_gate")
    bias = node.real("forget_bias", 1.0) if node.op_type != "BlockLSTMV2" else 0.0
    if bias:
        wires["f"] = cell.apply("add", wires["f"], bias, suffix="f_biased")
    if has_peepholes:
        for name in ("i", "f"):
            peephole = cell.apply("mul", wires["cs_before"], wires[f"wc{name}"], suffix=f"{name}_peephole")
            wires[name] = cell.apply("add", wires[name], peephole, suffix=f"{name}_with_peephole")
    for name, function in (("i", "sigmoid"), ("f", "sigmoid"), ("ci", "tanh")):
        wires[name] = cell.apply(function, wires[name], suffix=name)
    update = cell.apply("mul", wires["ci"], wires["i"], suffix="update")
    retained = cell.apply("mul", wires["cs_before"], wires["f"], suffix="retained")
    state = cell.apply("add", update, retained, suffix="cs")
    clip = node.real("cell_clip", 3.0 if node.op_type != "BlockLSTMV2" else 0.0)
    if clip > 0:
        state = cell.clip(state, -clip, clip, "cs_clipped")
    wires["cs"] = state
    if has_peepholes:
        peephole = cell.apply("mul", state, wires["wco"], suffix="o_peephole")
        wires["o"] = cell.apply("add", wires["o"], peephole, suffix="o_with_peephole")
    wires["o"] = cell.apply("sigmoid", wires["o"], suffix="o")
    wires["co"] = cell.apply("tanh", state, suffix="co")
    wires["h"] = cell.apply("mul", wires["co"], wires["o"], suffix="h")
    names = ["cs_next", "h_next", *(f"{name}_frame" for name in LSTM_OUTPUTS)]
    graph.set_outputs([wires["cs"], wires["h"], *(wires[name] for name in LSTM_OUTPUTS)], names)
    return TypedNetwork(graph, node.scope, f"{node.wire_name}.body"), captures
