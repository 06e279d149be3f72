"""SVDF: a filter over features, and one over time, whose memory is a variable of the file."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import F32, F64, Array
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.matmul import MatMul
from pulse.ops.reduce import Reduce
from pulse.ops.shape import AddAxis, RemoveAxis, Reshape
from pulse.ops.slice import Slice
from pulse.tflite.codes import activate, exact_sum, largest_code, rescale_codes
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.conv import read_bias, read_kernel
from pulse.tflite.operators.recurrent_hybrid import multiply_rows, read_rows
from pulse.tflite.registry import tflite_op


@tflite_op("SVDF", states=(4,))
def svdf(node: TfliteNode) -> list[OutletId]:
    """Wire each unit's F/U filters of x [B, I]; features [F, I], time [F, M], bias [U], memory [B, F*M].

    LiteRT takes a quantised layer's fused relu for the range of the output and nothing more.
    """
    coded = node.has_codes
    features, time = read_kernel(node, 1, (1, 0), coded), read_kernel(node, 2, (0, 1), coded)
    count, size, rank = time.shape[0], time.shape[1], node.integer("Rank", 1)
    if features.shape[1] != count or rank < 1 or count % rank:
        raise node.error(
            f"features {list(features.shape)}, time {list(time.shape)} and rank {rank} do not fit"
        )
    node.require(node.has(4), "input 4, its memory, is missing")
    batch = node.fact(0).shape[0]
    memory = node.wire(Reshape((batch, TDim.of(count), TDim.of(size))), [node.input(4)], "memory")
    new = node.wire(AddAxis(2), [_features(node, features)], "newest")
    older = node.wire(Slice(2, TDim.of(1), TDim.of(size)), [memory], "older")
    window = node.wire(Concat(2), [older, new], "window")
    after = node.wire(Reshape((batch, TDim.of(count * size))), [window], "after")
    y = _filter(node, window, time, batch, count // rank, rank)
    bias = read_bias(node, 3)
    if not coded:
        if bias is not None:
            y = node.apply("add", y, node.constant(bias.astype(np.float32), "bias"), suffix="sum")
        return [activate(node, y), after]
    if bias is not None:
        y = node.apply("add", y, node.constant(bias.astype(np.float64), "bias"), suffix="sum")
    quantization = node.output_tensors[0].quantization
    assert quantization is not None
    factor = node.quantization(4).scale * node.quantization(2).scale / quantization.scale
    return [rescale_codes(node, node.cast(y, F32, "total"), factor.reshape(())), after]


def _features(node: TfliteNode, weights: Array) -> OutletId:
    """Return the newest entry of each filter's memory."""

    def apply(x: OutletId, matrix: Array, offsets: Array | None, suffix: str) -> OutletId:
        return node.wire(MatMul(), [x, node.constant(matrix, f"{suffix}.matrix")], suffix)

    if not node.has_codes and node.input_tensor(1).has_codes and node.input_tensor(1).data is not None:
        return multiply_rows(node, node.values(0), read_rows(node, (1,)), "features")
    if not node.has_codes:
        return apply(node.values(0), weights, None, "features")
    total = exact_sum(node, node.codes(0), weights, None, 1, largest_code(node.input_tensor(0)), apply)
    factor = node.quantization(0).scale * node.quantization(1).scale / node.quantization(4).scale
    scale = node.constant(factor.astype(np.float32).reshape(()), "feature_scale")
    y = node.apply("mul_round", node.cast(total, F32, "features32"), scale, suffix="features")
    dtype = node.input_tensor(4).dtype
    assert dtype is not None
    info = np.iinfo(dtype)
    return node.clip(y, float(info.min), float(info.max), "new_features")


def _filter(node: TfliteNode, memory: OutletId, time: Array, batch: TDim, units: int, rank: int) -> OutletId:
    """Return the filters over their memory, summed for each unit; sums of codes in f64."""
    dtype = F64 if node.has_codes else F32
    weights = node.constant(time.astype(dtype), "time")
    product = node.apply("mul", node.cast(memory, dtype, "wide"), weights, suffix="products")
    split = (batch, TDim.of(units), TDim.of(rank * time.shape[1]))
    parts = node.wire(Reshape(split), [product], "units")
    if not node.has_codes:
        return node.wire(Reduce("sum", (2,), False), [parts], "filtered")
    total = node.wire(Slice(2, TDim.of(0), TDim.of(1)), [parts], "tap0")
    for tap in range(1, rank * time.shape[1]):
        entry = node.wire(Slice(2, TDim.of(tap), TDim.of(tap + 1)), [parts], f"tap{tap}")
        total = node.apply("add", total, entry, suffix=f"taps{tap}")
    return node.wire(RemoveAxis(2), [total], "filtered")
