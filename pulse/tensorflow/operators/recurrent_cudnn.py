"""Recurrent layers of cuDNN, their weights in one vector: all matrices, then all biases (the canonical order)."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.onnx.wiring import wire_onnx_all
from pulse.ops.concat import Concat
from pulse.ops.recurrent_layers import CUDNN_CELLS
from pulse.ops.shape import Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.support.naming import require_name
from pulse.support.wording import count_of
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op

H, C, PARAMS, LENGTHS = 1, 2, 3, 4
"""The numbers of inputs."""


class _Vector:
    """Weights that are taken in sequence."""

    def __init__(self, node: TensorflowNode) -> None:
        self._node, self._at = node, 0
        self._values = node.numbers(PARAMS, "weights").ravel()

    def take(self, *shape: int) -> Array:
        """Take the next ones, in this shape. Raises LoadError: there are too few."""
        size = int(np.prod(shape))
        if self._at + size > self._values.size:
            raise self._node.error(
                f"its layers need at least {count_of(self._at + size, 'weight')}, got {self._values.size}; export "
                "the model again"
            )
        self._at += size
        return self._values[self._at - size : self._at].reshape(shape)

    def check_end(self) -> None:
        """Raise LoadError if some weights are left."""
        if self._at != self._values.size:
            raise self._node.error(f"its layers need {count_of(self._at, 'weight')}, got {self._values.size}")


@tensorflow_op("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
def cudnn_rnn(node: TensorflowNode) -> list[OutletId]:
    """Inputs are x [time, batch, features], h and c [layers, batch, cells], weights; of V3 lengths, those of x.

    Without time_major, x, h, c and the results have the batch first.
    """
    mode, x, h = node.text("rnn_mode", "lstm"), node.fact(0), node.fact(H)
    require_name("rnn_mode", mode, CUDNN_CELLS, node.error)
    if node.text("input_mode", "linear_input") == "skip_input":
        raise node.error("input_mode skip_input is not supported; export the model with linear_input")
    if node.integer("num_proj", 0):
        raise node.error("projections (num_proj) are not supported; export the model without them")
    major = node.flag("time_major", True)
    first_axis = 0 if major else 1
    if (
        x.rank != 3
        or h.rank != 3
        or not (x.shape[2].is_const and h.shape[first_axis].is_const and h.shape[2].is_const)
    ):
        shapes = "[time, batch, features] and h [layers, batch, cells]"
        if not major:
            shapes = "[batch, time, features] and h [batch, layers, cells]"
        raise node.error(f"x must be {shapes}, got {x} and {h}")
    directions = 2 if node.text("direction", "unidirectional") == "bidirectional" else 1
    layers, size = int(h.shape[first_axis]) // directions, int(h.shape[2])
    if node.has(LENGTHS):
        _require_whole(node, x.shape[first_axis])
    weights = node.numbers(PARAMS, "weights").size
    node.require(layers <= weights, f"its layers need at least {count_of(layers, 'weight')}, got {weights}")
    widths = [int(x.shape[2]), *[size * directions] * (layers - 1)]
    vector = _Vector(node)
    gates = len(CUDNN_CELLS[mode].gates)
    matrices = [
        [(vector.take(gates, size, width), vector.take(gates, size, size)) for _ in range(directions)]
        for width in widths
    ]
    biases = [
        [(vector.take(gates, size), vector.take(gates, size)) for _ in range(directions)] for _ in widths
    ]
    vector.check_end()
    slots = (H, C) if mode == "lstm" else (H,)
    y, *begin = (node.input(slot) for slot in (0, *slots))
    if not major:
        y, *begin = (
            swap_time_and_batch(node, operand, f"transposed{slot}")
            for slot, operand in enumerate((y, *begin))
        )
    last: list[list[OutletId]] = []
    for layer in range(layers):
        y, ends = _layer(node, y, begin, layer, matrices[layer], biases[layer])
        last.append(ends)
    states = [
        _join(node, list(states_of_layers), f"last{index}")
        for index, states_of_layers in enumerate(zip(*last))
    ]
    if not major:
        y, *states = (
            swap_time_and_batch(node, result, f"transposed_back{index}")
            for index, result in enumerate((y, *states))
        )
    return [node.name_result(y), *states, *([node.input(C)] if mode != "lstm" else [])]


def swap_time_and_batch(node: TensorflowNode, x: OutletId, name: str) -> OutletId:
    """Return the first two axes exchanged."""
    return node.wire(Transpose((1, 0, 2)), [x], name)


def _require_whole(node: TensorflowNode, time: TDim) -> None:
    lengths = node.dims(LENGTHS, "sequence_lengths")
    if not all(length.prove_eq(time).yes for length in lengths):
        raise node.error(f"its sequence_lengths must be those of x, {time}")


def _join(node: TensorflowNode, parts: list[OutletId], name: str) -> OutletId:
    return parts[0] if len(parts) == 1 else node.wire(Concat(0), parts, name)


def _layer(
    node: TensorflowNode,
    x: OutletId,
    begin: list[OutletId],
    layer: int,
    matrices: list[tuple[Array, Array]],
    biases: list[tuple[Array, Array]],
) -> tuple[OutletId, list[OutletId]]:
    """Return one layer: its frames [time, batch, cells of both ways], and its last states.

    begin  the first states of all layers, [layers, batch, cells]
    """
    cell = CUDNN_CELLS[node.text("rnn_mode", "lstm")]
    order = list(cell.gates)
    directions, size = len(matrices), matrices[0][1].shape[1]

    def stack(name: str, values: list[Array]) -> OutletId:
        return node.constant(np.ascontiguousarray(np.stack(values)), f"{name}{layer}")

    w, r = (
        stack(name, [pair[index][order].reshape(len(order) * size, -1) for pair in matrices])
        for index, name in enumerate("wr")
    )
    b = stack("b", [np.concatenate([part[order].ravel() for part in pair]) for pair in biases])
    of_layer = Slice(0, TDim.of(directions * layer), TDim.of(directions * (layer + 1)))
    first = [node.wire(of_layer, [state], f"first{slot}_{layer}") for slot, state in enumerate(begin, H)]
    attributes = cell.attributes(size, directions)
    outlets = wire_onnx_all(
        node, cell.operator, [x, w, r, b, None, *first], f"layer{layer}", 1 + len(first), **attributes
    )
    frames = node.graph.fact(outlets[0]).shape
    transposed = node.wire(Transpose((0, 2, 1, 3)), [outlets[0]], f"transposed{layer}")
    flat = (frames[0], frames[2], TDim.of(directions * size))
    return node.wire(Reshape(flat), [transposed], f"frames{layer}"), outlets[1:]
