"""Recurrent layers, whose states are variables of the file."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.recurrent import Recurrent
from pulse.ops.recurrent_cells import Activation, Cell
from pulse.ops.shape import AddAxis, RemoveAxis, Transpose
from pulse.tflite.codes import RELU, TANH, fused_activation
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.conv import read_numbers
from pulse.tflite.operators.recurrent_codes import lstm_of_codes, read_weights
from pulse.tflite.operators.recurrent_hybrid import lstm_of_floats, read_rows, rnn_of_floats
from pulse.tflite.registry import tflite_op
from pulse.wiring import wire

ACTIVATIONS = {RELU: "relu", TANH: "tanh"}
"""The activations of recurrent layers, by their numbers in the schema."""
GATE_ORDER = (0, 3, 1, 2)
"""The gates input, output, forget and cell, as places in the order of the file: input, forget, cell, output."""


def _read_needed(node: TfliteNode, slots: Sequence[int]) -> list[Array]:
    missing = [slot for slot in slots if not node.has(slot)]
    node.require(not missing, f"inputs {missing} are omitted, which is not supported")
    return [read_numbers(node, slot, f"input {slot}") for slot in slots]


def _meets_codes(node: TfliteNode, slot: int) -> bool:
    """Return whether floats are multiplied by stored 8-bit codes."""
    return (
        not node.input_tensor(0).has_codes
        and node.input_tensor(slot).has_codes
        and node.input_tensor(slot).data is not None
    )


def _activation(node: TfliteNode) -> Activation:
    code = fused_activation(node)
    node.require(code in ACTIVATIONS, f"activation {code} is not supported")
    return Activation(ACTIVATIONS[code])


def _frames_first(node: TfliteNode, x: OutletId, forward: bool) -> OutletId:
    return x if node.flag("TimeMajor") else node.wire(Transpose((1, 0, 2)), [x], "frames" if forward else "")


def _layer(
    node: TfliteNode, cell: Cell, weights: Sequence[Array], states: Sequence[int], peepholes: Array | None
) -> list[OutletId]:
    """Return the frames, and the states after them."""
    if node.has_codes or node.input_tensor(0).has_codes:
        raise node.error(
            "codes are not supported (of the recurrent layers only an LSTM takes 8-bit codes); convert it with "
            "dynamic-range quantisation, or unfused"
        )
    hidden = weights[1].shape[1]
    single = node.fact(0).rank == 2
    x = (
        node.wire(AddAxis(0), [node.values(0)], "frames")
        if single
        else _frames_first(node, node.values(0), True)
    )
    names = ("h", "c")[: len(states)]
    optional = names if peepholes is None else (*names, "p")
    operands = [x, *(node.constant(value, f"weights{index}") for index, value in enumerate(weights))]
    operands += [node.input(slot) for slot in states]
    if peepholes is not None:
        operands.append(node.constant(peepholes, "peepholes"))
    outlets = wire(node.graph, f"{node.wire_name}.all", Recurrent(cell, hidden, optional=optional), operands)
    y = node.wire(RemoveAxis(0), [outlets[0]], "frame") if single else _frames_first(node, outlets[0], False)
    return [y, *outlets[1:]]


@tflite_op("UNIDIRECTIONAL_SEQUENCE_LSTM", states=(18, 19))
def lstm(node: TfliteNode) -> list[OutletId]:
    """Wire four gates, each with its own weights; without projection and normalisation."""
    for slots, what in (((16, 17), "a projection"), ((20, 21, 22, 23), "normalised gates")):
        if any(node.has(slot) for slot in slots):
            raise node.error(f"{what} is not supported; convert the model with unfused layers")
    node.require(not node.attributes.get("ProjClip", 0.0), "a limit of the projection is not supported")
    has_peepholes = any(node.has(slot) for slot in (9, 10, 11))
    if node.input_tensor(0).has_codes or _meets_codes(node, 4) or node.attributes.get("CellClip", 0.0):
        if has_peepholes:
            raise node.error(
                "gates that see the cell (peepholes) are not supported together with codes or a limit of the cell; "
                "convert the model with unfused layers"
            )
        if node.input_tensor(0).has_codes:
            return lstm_of_codes(node, read_weights(node, GATE_ORDER))
        w, r = (read_rows(node, [first + gate for gate in GATE_ORDER]) for first in (1, 5))
        bias = np.concatenate(_read_needed(node, [12 + gate for gate in GATE_ORDER]))
        return lstm_of_floats(node, w, r, bias, _activation(node).name)
    w, r, b = (_read_needed(node, [first + gate for gate in GATE_ORDER]) for first in (1, 5, 12))
    bias = np.concatenate([*b, np.zeros(sum(part.size for part in b), np.float32)])
    peepholes = np.concatenate(_read_needed(node, (9, 11, 10))) if has_peepholes else None
    cell = Cell("lstm", (Activation("sigmoid"), _activation(node), _activation(node)))
    return _layer(node, cell, [np.concatenate(w), np.concatenate(r), bias], (18, 19), peepholes)


@tflite_op("UNIDIRECTIONAL_SEQUENCE_RNN", "RNN", states=(4,))
def rnn(node: TfliteNode) -> list[OutletId]:
    """Wire a plain layer: h = f(W x + R h + b)."""
    if _meets_codes(node, 1):
        bias = np.concatenate(_read_needed(node, (3,)))
        return rnn_of_floats(node, read_rows(node, (1,)), read_rows(node, (2,)), bias, _activation(node).name)
    w, r, b = _read_needed(node, (1, 2, 3))
    bias = np.concatenate([b, np.zeros_like(b)])
    return _layer(node, Cell("rnn", (_activation(node),)), [w, r, bias], (4,), None)
