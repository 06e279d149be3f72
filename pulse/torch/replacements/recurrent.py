"""Recurrent layers that an export keeps as nodes, or as loops over all frames: not over those of the example."""

import contextlib
from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

from pulse.ops.recurrent_layers import CUDNN_CELLS, CudnnCell
from pulse.torch.own_thread import OwnThread
from pulse.torch.replacements.attributes import replace_attributes
from pulse.torch.replacements.loops import LoopTracer
from pulse.torch.replacements.packed_sequences import FullSizes, pack_full, pad_full


@contextlib.contextmanager
def write_recurrent_layers(torch: Any, loops: LoopTracer) -> Generator[None]:
    """Within this context, an export writes nn.RNN, nn.GRU and nn.LSTM as nodes of ONNX, which compute nothing.

    An LSTM with projections is a loop over its frames: ONNX has no operator for it. Packed sequences of full length are
    plain tensors for them. Layers in other threads are unaffected.
    """
    layers, packing = torch.nn.modules.rnn, torch.nn.utils.rnn
    functions = RecurrentFunctions(torch, loops, layers._VF)
    with replace_attributes(layers, _VF=functions), replace_attributes(packing, _VF=functions):
        yield


class RecurrentFunctions:
    """The functions that PyTorch's recurrent layers call."""

    def __init__(self, torch: Any, loops: LoopTracer, functions: Any) -> None:
        self._torch = torch
        self._loops = loops
        self._functions = functions
        self._owner = OwnThread()

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._functions, name)
        if not self._owner.is_here:
            return function
        match name:
            case "_pack_padded_sequence":
                return partial(_pack, self._torch, function)
            case "_pad_packed_sequence":
                return partial(_pad, function)
            case _ if name in CUDNN_CELLS:
                return partial(_layer, self._torch, self._loops, CUDNN_CELLS[name], function)
            case _:
                return function


def _pack(torch: Any, function: Any, x: Any, lengths: Any, batch_first: bool) -> Any:
    return pack_full(torch, x, lengths, batch_first) or function(x, lengths, batch_first)


def _pad(function: Any, data: Any, sizes: Any, *arguments: Any) -> Any:
    return (pad_full if isinstance(sizes, FullSizes) else function)(data, sizes, *arguments)


def _layer(torch: Any, loops: LoopTracer, cell: CudnnCell, function: Any, *arguments: Any) -> Any:
    """Return the layer's result; sequences of several lengths are left to PyTorch: ONNX has none."""
    if isinstance(arguments[1], FullSizes):
        data, sizes, initial, weights, biased, *others = arguments
        y, *ends = _layer(
            torch, loops, cell, function, sizes.unpack(data), initial, weights, biased, *others, False
        )
        return y.flatten(0, 1), *ends
    if not isinstance(arguments[3], bool):
        return function(*arguments)
    x, initial, weights, biased, count, _, _, bidirectional, batch_first = arguments
    states: list[Any] = [*initial] if cell.operator == "LSTM" else [initial]
    is_projected = states[0].shape[-1] != states[-1].shape[-1]
    directions = 2 if bidirectional else 1
    layer_size = len(weights) // (count * directions)
    if batch_first:
        x = x.transpose(0, 1)
    last: list[list[Any]] = []
    for layer in range(count):
        begin = layer * directions
        parts = [
            weights[index * layer_size : (index + 1) * layer_size]
            for index in range(begin, begin + directions)
        ]
        firsts = [state[begin : begin + directions] for state in states]
        if is_projected:
            x, *ends = _projected_lstm(torch, loops, x, parts, firsts, biased)
        else:
            x, *ends = _node(torch, cell, x, parts, firsts, biased)
        last.append(ends)
    if batch_first:
        x = x.transpose(0, 1)
    return x, *(torch.cat(ends_of_layers) for ends_of_layers in zip(*last))


def _node(
    torch: Any, cell: CudnnCell, x: Any, parts: Sequence[Sequence[Any]], states: Sequence[Any], biased: bool
) -> list[Any]:
    """Return one layer, in both directions if there are two parts: frames [T, B, D * H] and last states [D, B, H]."""
    frames, batch, _ = x.shape
    directions, size = len(parts), parts[0][1].shape[-1]

    def gather(index: int) -> Any:
        return torch.stack([_reorder(torch, part[index], cell.gates) for part in parts])

    biases = torch.cat([gather(2), gather(3)], 1) if biased else None
    y, *ends = torch.onnx.ops.symbolic_multi_out(
        cell.operator,
        [x, gather(0), gather(1), biases, None, *states],
        cell.attributes(size, directions),
        dtypes=[x.dtype] * (1 + len(states)),
        shapes=[[frames, directions, batch, size], *([directions, batch, size] for _ in states)],
    )
    return [y.transpose(1, 2).flatten(2), *ends]


def _projected_lstm(
    torch: Any, loops: LoopTracer, x: Any, parts: Sequence[Sequence[Any]], states: Sequence[Any], biased: bool
) -> list[Any]:
    """Return one layer with projections, as ``_node`` does, by a loop over its frames."""
    results: list[list[Any]] = []
    for direction, part in enumerate(parts):
        frames = torch.flip(x, (0,)) if direction else x
        gates_of_frames = torch.nn.functional.linear(frames, part[0], part[2] + part[3] if biased else None)
        h, c = (state[direction] for state in states)
        outputs: list[Any] = []
        for step in loops.steps(frames.shape[0]):
            gates = gates_of_frames[step] + torch.nn.functional.linear(h, part[1])
            i, f, g, o = gates.chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.nn.functional.linear(torch.sigmoid(o) * torch.tanh(c), part[-1])
            outputs.append(h)
        y = torch.stack(outputs)
        results.append([torch.flip(y, (0,)) if direction else y, h, c])
    y, h, c = zip(*results)
    return [torch.cat(y, -1), torch.stack(h), torch.stack(c)]


def _reorder(torch: Any, weight: Any, gates: Sequence[int]) -> Any:
    """Reorder the gates of weights or biases [G * H, ...] as ONNX has them."""
    split = weight.chunk(len(gates))
    return torch.cat([split[gate] for gate in gates])
