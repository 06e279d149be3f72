"""RNN, GRU, LSTM: scans over cells, made of ONNX nodes that are written then."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, helper

from pulse.errors import WriteError
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads
from pulse.nnef.write.expansion import Expansion, expands
from pulse.ops.recurrent_cells import ACTIVATION_DEFAULTS, USUAL_ACTIVATIONS, Activation
from pulse.ops.recurrent_gates import GATE_COUNTS
from pulse.ops.recurrent_layers import CELL_KINDS, ONNX_ACTIVATIONS, read_activations
from pulse.support.record import record
from pulse.support.wording import count_of


@record(eq=False)
class CellWriter:
    """One time step of a layer, as ONNX nodes.

    e           writes nodes and constants
    cell        the ONNX operator: RNN, GRU or LSTM
    attributes  the attributes of its node
    hidden      the size of the state
    functions   the activations of the gates
    recurrent, bias, peepholes  names of the weights; None: no peepholes
    body        the nodes so far
    """

    e: Expansion
    cell: str
    attributes: Mapping[str, Any]
    hidden: int
    functions: Sequence[Activation]
    recurrent: str
    bias: str
    peepholes: str | None
    body: list[NodeProto] = field(default_factory=list[NodeProto])

    def add_op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node to the body; return its output."""
        return self.e.add_node(self.body, op_type, inputs, op_type.lower(), **attributes)

    def part(self, x: str, first: int, last: int) -> str:
        """Return some gates of [B, G*H], or of [G*H]."""
        return self.e.crop(self.body, x, first * self.hidden, last * self.hidden)

    def apply(self, gate: int, x: str) -> str:
        """Return an activation, with its inputs clipped if the node has a clip."""
        clip = self.attributes.get("clip")
        if clip is not None:
            x = self.add_op("Min", self.add_op("Max", x, self.e.number(-clip)), self.e.number(clip))
        return self.activation(gate, x)

    def activation(self, gate: int, x: str) -> str:
        function = self.functions[gate]
        if function.name == "affine":
            scaled = self.add_op("Mul", x, self.e.number(function.alpha))
            return self.add_op("Add", scaled, self.e.number(function.beta))
        if function.name == "scaled_tanh":
            inner = self.add_op("Tanh", self.add_op("Mul", x, self.e.number(function.beta)))
            return self.add_op("Mul", inner, self.e.number(function.alpha))
        parameters = zip(ACTIVATION_DEFAULTS[function.name], function.parameters)
        return self.add_op(ONNX_ACTIVATIONS[function.name], x, **dict(parameters))

    def product(self, x: str, first: int, last: int) -> str:
        """Return some gates of a state times the recurrent weights, plus their bias."""
        span = first * self.hidden, last * self.hidden
        weights, bias = (self.e.crop(self.body, tensor, *span) for tensor in (self.recurrent, self.bias))
        return self.add_op("Add", self.add_op("MatMul", x, weights), bias)

    def states(self, x: str, before: Sequence[str]) -> list[str]:
        """Return the states after a frame [B, G*H]."""
        if self.cell == "RNN":
            return [self.apply(0, self.add_op("Add", x, self.product(before[0], 0, 1)))]
        return [self._gru(x, before[0])] if self.cell == "GRU" else self._lstm(x, *before)

    def _gru(self, x: str, h: str) -> str:
        gates = self.apply(0, self.add_op("Add", self.part(x, 0, 2), self.product(h, 0, 2)))
        update, reset = self.part(gates, 0, 1), self.part(gates, 1, 2)
        if self.attributes.get("linear_before_reset"):
            recurrent = self.add_op("Mul", reset, self.product(h, 2, 3))
        else:
            recurrent = self.product(self.add_op("Mul", reset, h), 2, 3)
        candidate = self.apply(1, self.add_op("Add", self.part(x, 2, 3), recurrent))
        complement = self.add_op("Sub", self.e.number(1), update)
        return self.add_op("Add", self.add_op("Mul", complement, candidate), self.add_op("Mul", update, h))

    def _lstm(self, x: str, h: str, c: str) -> list[str]:
        total = self.add_op("Add", x, self.product(h, 0, 4))
        i, o, f, candidate = (self.part(total, gate, gate + 1) for gate in range(4))
        input_gate = self.apply(0, self._peek(i, c, 0))
        if self.attributes.get("input_forget"):
            forget_gate = self.add_op("Sub", self.e.number(1), input_gate)
        else:
            forget_gate = self.apply(0, self._peek(f, c, 2))
        update = self.add_op("Mul", input_gate, self.apply(1, candidate))
        after = self.add_op("Add", self.add_op("Mul", forget_gate, c), update)
        output_gate = self.apply(0, self._peek(o, after, 1))
        return [self.add_op("Mul", output_gate, self.activation(2, after)), after]

    def _peek(self, gate: str, c: str, index: int) -> str:
        if self.peepholes is None:
            return gate
        return self.add_op("Add", gate, self.add_op("Mul", self.part(self.peepholes, index, index + 1), c))


@expands("RNN", "GRU", "LSTM")
def expand_layer(e: Expansion, node: NodeProto) -> None:
    """The product with the input weights for all frames at once, then a scan."""
    op_type = node.op_type
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    inputs = [*node.input, *[""] * (8 - len(node.input))]
    outputs = [*node.output, *[""] * (3 - len(node.output))]
    direction = attributes.get("direction", b"forward").decode()
    if direction not in ("forward", "reverse") or attributes.get("layout", 0) or inputs[4]:
        raise WriteError(
            f"{node.name} ({op_type}): NNEF and tract only have layers with one direction, frames first, without "
            "lengths; "
            "give the model two layers, or inputs that are not padded"
        )
    x, w, r, bias, _, h, c, p = inputs
    hidden = int(attributes["hidden_size"])
    rows = GATE_COUNTS[CELL_KINDS[op_type]] * int(attributes["hidden_size"])
    input_bias, recurrent_bias = _biases(e, bias, rows)
    cell = CellWriter(
        e=e,
        cell=op_type,
        attributes=attributes,
        hidden=hidden,
        functions=_functions(op_type, attributes),
        recurrent=e.transpose(e.nodes, e.squeeze(e.nodes, r)),
        bias=recurrent_bias,
        peepholes=e.squeeze(e.nodes, p) if p else None,
    )
    product = e.add_node(e.nodes, "MatMul", (x, e.transpose(e.nodes, e.squeeze(e.nodes, w))), "product")
    frames = e.add_node(e.nodes, "Add", (product, input_bias), "frames")
    starts = [h, c][: 2 if op_type == "LSTM" else 1]
    sequence, last = _scan(cell, frames, starts, e.sizes(x)[1], rows, direction == "reverse")
    for name, value, axis in (
        (outputs[0], sequence, 1),
        *((out, value, 0) for out, value in zip(outputs[1:], last)),
    ):
        if name:
            e.add("Unsqueeze", [value, e.integers([axis])], [name])


def _biases(e: Expansion, bias: str, rows: int) -> list[str]:
    """Return the biases of the input weights and of the recurrent weights."""
    if not bias:
        return [e.constant(np.zeros(rows, np.float32))] * 2
    return [e.crop(e.nodes, e.squeeze(e.nodes, bias), half * rows, (half + 1) * rows) for half in (0, 1)]


def _scan(
    cell: CellWriter, frames: str, starts: Sequence[str], batch: int, rows: int, reverse: bool
) -> tuple[str, list[str]]:
    """Run a cell over all frames [T, B, rows]. Returns its outputs, and its last states.

    starts  the initial states, empty if they are zeros
    """
    e, hidden = cell.e, cell.hidden
    begin = [
        e.squeeze(e.nodes, start) if start else e.constant(np.zeros((batch, hidden), np.float32))
        for start in starts
    ]
    states = [e.name(f"state{index}") for index in range(len(begin))]
    frame = e.name("frame")
    after = cell.states(frame, states)
    output = e.add_node(cell.body, "Identity", (after[0],), "output")
    after = [e.add_node(cell.body, "Identity", (value,), "next") for value in after]
    body: GraphProto = helper.make_graph(
        cell.body,
        "cell",
        [e.value(name, (batch, hidden)) for name in states] + [e.value(frame, (batch, rows))],
        [e.value(name, (batch, hidden)) for name in (*after, output)],
    )
    last = [e.name(f"last{index}") for index in range(len(begin))]
    sequence = e.name("outputs")
    e.add(
        "Scan",
        [*begin, frames],
        [*last, sequence],
        body=body,
        num_scan_inputs=1,
        scan_input_directions=[int(reverse)],
        scan_output_directions=[int(reverse)],
    )
    return sequence, last


def _functions(op_type: str, attributes: Mapping[str, Any]) -> list[Activation]:
    """Return the node's activations, else the usual ones."""
    names = [activation.decode() for activation in attributes.get("activations", ())]
    alphas, betas = (attributes.get(f"activation_{name}", ()) for name in ("alpha", "beta"))
    return read_activations(names or USUAL_ACTIVATIONS[CELL_KINDS[op_type]], alphas, betas)


def _gate(node: NodeReader, x: NnefWire, index: int, hidden: int, name: str) -> NnefWire:
    """Return some entries of the last axis."""
    return node.slice_axis(x, x.rank - 1, index * hidden, (index + 1) * hidden, name)


@reads("tract_core_gru_epilogue", parameters="xh rh h_prev hidden")
def read_gru(node: NodeReader) -> NnefWire:
    """Read the cell after its products [B, 3H], gates z r h: the reset gate multiplies the recurrent product."""
    x, r, h, hidden = node.wire("xh"), node.wire("rh"), node.wire("h_prev"), node.integer("hidden")
    update, reset = (
        node.apply(
            "Sigmoid",
            node.apply("Add", *(_gate(node, y, index, hidden, name) for y in (x, r)), suffix=f"{name}.sum"),
            suffix=name,
        )
        for index, name in enumerate(("update", "reset"))
    )
    recurrent = node.apply("Mul", reset, _gate(node, r, 2, hidden, "candidate.r"), suffix="candidate.product")
    total = node.apply("Add", _gate(node, x, 2, hidden, "candidate.x"), recurrent, suffix="candidate.sum")
    candidate = node.apply("Tanh", total, suffix="candidate")
    difference = node.apply("Sub", h, candidate, suffix="difference")
    retained = node.apply("Mul", update, difference, suffix="retained")
    return node.apply("Add", candidate, retained)


@reads("tract_core_lstm_epilogue", parameters="preact c_prev hidden")
def read_lstm(node: NodeReader) -> tuple[NnefWire, NnefWire]:
    """Read the cell after its products [B, 4H], gates i o f c."""
    x, c, hidden = node.wire("preact"), node.wire("c_prev"), node.integer("hidden")
    if x.rank != 2:
        raise node.error(f"its products have {count_of(x.rank, 'axis', 'axes')}, not 2")
    input_gate, output_gate, forget_gate = (
        node.apply("Sigmoid", _gate(node, x, index, hidden, f"{name}.x"), suffix=name)
        for index, name in enumerate(("input_gate", "output_gate", "forget_gate"))
    )
    candidate = node.apply("Tanh", _gate(node, x, 3, hidden, "candidate.x"), suffix="candidate")
    retained = node.apply("Mul", forget_gate, c, suffix="retained")
    update = node.apply("Mul", input_gate, candidate, suffix="update")
    cell = node.apply("Add", retained, update, suffix="cell")
    squashed = node.apply("Tanh", cell, suffix="cell.tanh")
    return node.apply("Mul", output_gate, squashed, suffix="hidden"), cell
