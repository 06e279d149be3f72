"""Operators against numpy."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import pulse
from pulse import tensorflow
from pulse.errors import LoadError
from pulse.facts import Array
from pulse.ops.conv import Conv
from pulse.tensorflow.registry import TRANSLATORS
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import BOOL, F32, I32, I64, GraphDefBuilder, Type
from tests.pulse.tensorflow.windows import dilated_convolution, overlap_added

X = normal_noise(2, 5, 4)
POSITIVE = np.abs(X) + np.float32(0.1)
I = np.array([[7, -7, 3], [5, 0, -4]], np.int32)


PADS = ((0, 0), (1, 2), (0, 1))
EYE = np.eye(3, dtype=np.float32)
IMAGE = normal_noise(1, 4, 6, 3)
BLOCKS = IMAGE.reshape(1, 2, 2, 3, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 3, 12)


def result(op: str, inputs: Sequence[Any], count: int = 1, **attributes: Any) -> list[Array]:
    """What an operator gives; the first input is fed, the others are constants."""
    builder = GraphDefBuilder()
    arrays = [np.asarray(value) for value in inputs]
    types = {
        np.dtype(np.float32): F32,
        np.dtype(np.int32): I32,
        np.dtype(np.int64): I64,
        np.dtype(np.bool_): BOOL,
    }
    names = [builder.place("x", *arrays[0].shape, dtype=types[arrays[0].dtype])]
    names += [builder.const(f"c{place}", array, array.dtype) for place, array in enumerate(arrays[1:])]
    builder.node("y", op, *names, **{"T": types[arrays[0].dtype], **attributes})
    outputs = ["y", *(f"y:{slot}" for slot in range(1, count))]
    for slot, name in enumerate(outputs):
        builder.node(f"out{slot}", "Identity", name, T=F32)
    typed = pulse.load(builder.data).model.analyse()
    results = typed.run({"x": arrays[0]})
    return [results[f"out{slot}"] for slot in range(count)]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


ELEMENTWISE: dict[str, tuple[Sequence[Any], Callable[..., Any]]] = {
    "AddV2": ((X, X[0]), np.add),
    "Sub": ((X, X[0]), np.subtract),
    "Mul": ((X, X[0]), np.multiply),
    "RealDiv": ((X, POSITIVE), np.divide),
    "FloorDiv": ((I, np.int32(2)), np.floor_divide),
    "FloorMod": ((I, np.int32(3)), np.mod),
    "TruncateMod": ((I, np.int32(3)), np.fmod),
    "Maximum": ((X, X[0]), np.maximum),
    "Minimum": ((X, X[0]), np.minimum),
    "SquaredDifference": ((X, X[0]), lambda a, b: (a - b) ** 2),
    "Pow": ((POSITIVE, np.float32(1.5)), np.power),
    "Abs": ((X,), np.abs),
    "Neg": ((X,), np.negative),
    "Square": ((X,), np.square),
    "Sqrt": ((POSITIVE,), np.sqrt),
    "Rsqrt": ((POSITIVE,), lambda a: 1 / np.sqrt(a)),
    "Exp": ((X,), np.exp),
    "Log": ((POSITIVE,), np.log),
    "Log1p": ((POSITIVE,), np.log1p),
    "Expm1": ((X,), np.expm1),
    "Relu": ((X,), lambda a: np.maximum(a, 0)),
    "Relu6": ((4 * X,), lambda a: np.clip(a, 0, 6)),
    "Elu": ((X,), lambda a: np.where(a < 0, np.expm1(a), a)),
    "Sigmoid": ((X,), sigmoid),
    "Tanh": ((X,), np.tanh),
    "Softplus": ((X,), lambda a: np.log1p(np.exp(a))),
    "Round": ((np.float32([0.5, 1.5, -0.5, 2.4]),), np.rint),
    "Greater": ((X, X[0]), np.greater),
    "NotEqual": ((I, np.int32(7)), np.not_equal),
    "LogicalXor": ((X > 0, X[0] > 0), np.logical_xor),
    "Atan2": ((X, X[0] + np.float32(0.5)), np.arctan2),
    "ClipByValue": ((X, np.float32(-0.5), np.float32(0.25)), lambda a, b, c: np.clip(a, b, c)),
    "SelectV2": ((X > 0, X, -X), np.where),
    "ZerosLike": ((X,), np.zeros_like),
    "Softmax": ((X,), lambda a: np.exp(a) / np.exp(a).sum(-1, keepdims=True)),
    "IsFinite": ((np.float32([1, np.inf, np.nan]),), np.isfinite),
}


@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise_operators_give_what_numpy_gives(op: str) -> None:
    inputs, expected = ELEMENTWISE[op]
    (output,) = result(op, inputs)
    np.testing.assert_allclose(output, expected(*inputs), rtol=2e-6, atol=2e-6)


SHAPES: dict[str, tuple[str, Sequence[Any], Mapping[str, Any], Any]] = {
    "reshape": ("Reshape", (X, np.int32([-1, 2])), {}, X.reshape(-1, 2)),
    "expand": ("ExpandDims", (X, np.int32(-1)), {}, X[..., None]),
    "squeeze": ("Squeeze", (X[:, None],), {"squeeze_dims": [1]}, X),
    "transpose": ("Transpose", (X, np.int32([2, 0, 1])), {}, X.transpose(2, 0, 1)),
    "concat": ("ConcatV2", (X, X, np.int32(-2)), {"N": 2}, np.concatenate([X, X], 1)),
    "pack": ("Pack", (X, X), {"axis": 1, "N": 2}, np.stack([X, X], 1)),
    "slice": ("Slice", (X, np.int32([0, 1, 2]), np.int32([-1, 3, 1])), {}, X[:, 1:4, 2:3]),
    "strided": (
        "StridedSlice",
        (X, np.int32([0, 4, 1]), np.int32([0, 0, 2]), np.int32([1, -2, 1])),
        {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 4},
        X[:, 4:0:-2, 1],
    ),
    "strided_new": (
        "StridedSlice",
        (X, np.int32([0, 0, -2]), np.int32([0, 0, 0]), np.int32([1, 1, 1])),
        {"ellipsis_mask": 1, "new_axis_mask": 2, "end_mask": 4},
        X[..., None, -2:],
    ),
    "gather": ("GatherV2", (X, np.int32([3, 0]), np.int32(1)), {}, X[:, [3, 0]]),
    "div_no_nan": ("DivNoNan", (X, np.float32([2, 0, -1, 0.5])), {}, X * np.float32([0.5, 0, -1, 2])),
    "cumprod": ("Cumprod", (X, np.int32(1)), {}, np.cumprod(X, 1)),
    "cumprod_back": (
        "Cumprod",
        (X, np.int32(-1)),
        {"exclusive": True, "reverse": True},
        np.pad(np.cumprod(X[..., :0:-1], 2)[..., ::-1], ((0, 0), (0, 0), (0, 1)), constant_values=1),
    ),
    "l2_loss": ("L2Loss", (X,), {}, (X * X).sum() / 2),
    "lrn": (
        "LRN",
        (IMAGE,),
        {"depth_radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.75},
        IMAGE
        / (2 + 0.5 * np.stack([(IMAGE[..., max(0, c - 1) : c + 2] ** 2).sum(-1) for c in range(3)], -1))
        ** 0.75,
    ),
    "xdivy": ("Xdivy", (np.float32([0, 3]), np.float32([0, 2])), {}, np.float32([0, 1.5])),
    "xlogy": ("Xlogy", (np.float32([0, 3]), np.float32([0, 2])), {}, np.float32([0, 3 * np.log(2)])),
    "xlog1py": ("Xlog1py", (np.float32([0, 3]), np.float32([-1, 2])), {}, np.float32([0, 3 * np.log(3)])),
    "mul_no_nan": ("MulNoNan", (np.float32([np.inf, 3]), np.float32([0, 2])), {}, np.float32([0, 6])),
    "roll": ("Roll", (X, np.int32([1, -2]), np.int32([2, 1])), {}, np.roll(X, (1, -2), (2, 1))),
    "roll_by_nothing": ("Roll", (X, np.int32([4]), np.int32([-1])), {}, X),
    "top_k": ("TopKV2", (X, np.int32(2)), {}, -np.sort(-X, -1)[..., :2]),
    "scatter": (
        "TensorScatterUpdate",
        (X, np.int32([[1, 2], [0, 4]]), X[0, :2]),
        {},
        np.stack([np.concatenate([X[0, :4], X[0, 1:2]]), np.concatenate([X[1, :2], X[0, :1], X[1, 3:]])]),
    ),
    "scatter_add": (
        "TensorScatterAdd",
        (X, np.int32([[1, 2], [1, 2]]), X[0, :2]),
        {},
        X + np.pad((X[0, :1] + X[0, 1:2])[None], ((1, 0), (2, 2), (0, 0))),
    ),
    "gather_nd": ("GatherNd", (X, np.int32([[1, 2], [0, 4]])), {}, X[[1, 0], [2, 4]]),
    "tile": ("Tile", (X, np.int32([1, 2, 1])), {}, np.tile(X, (1, 2, 1))),
    "pad": ("PadV2", (X, np.int32(PADS), np.float32(9)), {}, np.pad(X, PADS, constant_values=9)),
    "mirror": ("MirrorPad", (X, np.int32(PADS)), {"mode": "REFLECT"}, np.pad(X, PADS, mode="reflect")),
    "reverse": ("ReverseV2", (X, np.int32([1])), {}, X[:, ::-1]),
    "broadcast": ("BroadcastTo", (X[:, :1], np.int32([2, 5, 4])), {}, np.broadcast_to(X[:, :1], X.shape)),
    "sum": ("Sum", (X, np.int32([0, 2])), {"keep_dims": True}, X.sum((0, 2), keepdims=True)),
    "mean": ("Mean", (X, np.int32(-1)), {}, X.mean(-1)),
    "max": ("Max", (X, np.int32(1)), {}, X.max(1)),
    "all": ("All", (X > -1, np.int32(1)), {}, (X > -1).all(1)),
    "argmax": ("ArgMax", (X, np.int32(2)), {"output_type": I64}, X.argmax(2)),
    "cumsum": ("Cumsum", (X, np.int32(1)), {"exclusive": True}, X.cumsum(1) - X),
    "matmul": ("MatMul", (X[0], X[1]), {"transpose_b": True}, X[0] @ X[1].T),
    "batched": ("BatchMatMulV2", (X, X), {"adj_y": True}, X @ X.transpose(0, 2, 1)),
    "einsum": ("Einsum", (X, X[0]), {"equation": "abc,dc->abd", "N": 2}, np.einsum("abc,dc->abd", X, X[0])),
    "onehot": ("OneHot", (I % 3, np.int32(3), np.float32(2), np.float32(1)), {}, EYE[I % 3] + 1),
    "cast": ("Cast", (X,), {"SrcT": F32, "DstT": I32}, X.astype(np.int32)),
    "bias": ("BiasAdd", (X, X[0, 0]), {}, X + X[0, 0]),
    "space_to_depth": ("SpaceToDepth", (IMAGE,), {"block_size": 2}, BLOCKS),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_sums_equal_numpy(name: str) -> None:
    op, inputs, attributes, expected = SHAPES[name]
    (output,) = result(op, inputs, **attributes)
    assert output.shape == expected.shape
    np.testing.assert_allclose(output, expected, rtol=2e-6, atol=2e-6)


def test_parts_of_tensors_give_what_numpy_gives() -> None:
    parts = result("SplitV", (X, np.int32([1, -1, 2]), np.int32(1)), 3)
    for part, expected in zip(parts, (X[:, :1], X[:, 1:3], X[:, 3:])):
        assert np.array_equal(part, expected)
    for place, part in enumerate(result("Unpack", (X,), 2, num=2, axis=0)):
        assert np.array_equal(part, X[place])


def windows(x: Array, size: Sequence[int], steps: Sequence[int], dilation: Sequence[int] = (1, 1)) -> Array:
    """[N, H, W, kh, kw, C] of an image without padding."""
    span = [(taps - 1) * wide + 1 for taps, wide in zip(size, dilation)]
    view = np.lib.stride_tricks.sliding_window_view(x, span, (1, 2))[:, :: steps[0], :: steps[1]]
    return view[..., :: dilation[0], :: dilation[1]].transpose(0, 1, 2, 4, 5, 3)


def padded_as_same(x: Array, size: Sequence[int], steps: Sequence[int], fill: float = 0.0) -> Array:
    """Padded as TensorFlow's SAME: the odd frame behind."""
    pads = [(0, 0)]
    for length, span, step in zip(x.shape[1:3], size, steps):
        total = max((-(-length // step) - 1) * step + span - length, 0)
        pads.append((total // 2, total - total // 2))
    return np.pad(x, [*pads, (0, 0)], constant_values=fill)


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
@pytest.mark.parametrize("steps", [(1, 1), (2, 1), (2, 3)])
def test_convolutions_and_pools_have_their_channels_last(padding: str, steps: tuple[int, int]) -> None:
    x, w, deep = normal_noise(1, 7, 8, 3), normal_noise(3, 2, 3, 5, seed=1), normal_noise(3, 2, 3, 2, seed=2)
    strides = [1, *steps, 1]
    wide = padded_as_same(x, (3, 2), steps) if padding == "SAME" else x
    parts = windows(wide, (3, 2), steps)
    (output,) = result("Conv2D", (x, w), strides=strides, padding=padding)
    np.testing.assert_allclose(output, np.einsum("nhwijc,ijco->nhwo", parts, w), rtol=1e-5, atol=1e-5)
    (output,) = result("DepthwiseConv2dNative", (x, deep), strides=strides, padding=padding)
    expected = np.einsum("nhwijc,ijcm->nhwcm", parts, deep)
    np.testing.assert_allclose(output, expected.reshape(*expected.shape[:3], -1), rtol=1e-5, atol=1e-5)
    (output,) = result("MaxPool", (x,), ksize=[1, 3, 2, 1], strides=strides, padding=padding)
    low = windows(padded_as_same(x, (3, 2), steps, -np.inf) if padding == "SAME" else x, (3, 2), steps)
    np.testing.assert_allclose(output, low.max((3, 4)), rtol=1e-6)


def test_channels_may_be_second() -> None:
    x, w = normal_noise(1, 3, 7, 8), normal_noise(3, 2, 3, 5, seed=1)
    (output,) = result("Conv2D", (x, w), strides=[1, 1, 1, 1], padding="VALID", data_format="NCHW")
    parts = windows(x.transpose(0, 2, 3, 1), (3, 2), (1, 1))
    np.testing.assert_allclose(output, np.einsum("nhwijc,ijco->nohw", parts, w), rtol=1e-5, atol=1e-5)
    (output,) = result("BiasAdd", (x, np.float32([1, 2, 3])), data_format="NCHW")
    assert np.array_equal(output, x + np.float32([1, 2, 3])[:, None, None])


def test_explicit_padding_equals_numpy() -> None:
    x, w = normal_noise(1, 7, 8, 3), normal_noise(3, 2, 3, 5)
    pads = [0, 0, 2, 1, 0, 3, 0, 0]
    (output,) = result("Conv2D", (x, w), strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=pads)
    parts = windows(np.pad(x, ((0, 0), (2, 1), (0, 3), (0, 0))), (3, 2), (1, 1))
    np.testing.assert_allclose(output, np.einsum("nhwijc,ijco->nhwo", parts, w), rtol=1e-5, atol=1e-5)


def test_space_to_batch_and_back() -> None:
    x = normal_noise(1, 6, 5)
    block, pads, crops = np.int32([2]), np.int32([[1, 1]]), np.int32([[0, 2]])
    (batches,) = result("SpaceToBatchND", (x, block, pads))
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    assert np.array_equal(batches, np.concatenate([padded[:, ::2], padded[:, 1::2]]))
    (back,) = result("BatchToSpaceND", (batches, block, crops))
    assert np.array_equal(back, padded[:, :6])


def test_a_convolution_between_blocks_is_a_dilated_one_and_streams() -> None:
    typed = pulse.load(dilated_convolution().data).model.analyse()
    convs = [node.op for node in typed.graph.nodes if isinstance(node.op, Conv)]
    assert [conv.dilations for conv in convs] == [(1, 3)]
    x, w = normal_noise(1, 7, 4), normal_noise(1, 2, 4, 5)
    padded = np.pad(x, ((0, 0), (3, 0), (0, 0)))
    expected = padded[:, :7] @ w[0, 0] + padded[:, 3:] @ w[0, 1]
    np.testing.assert_allclose(typed.run(x)["y"], expected, rtol=1e-5, atol=1e-5)
    assert pulse.verify(typed, pulse=1, backend="numpy").require()


def test_transposed_convolution_equals_numpy() -> None:
    builder = GraphDefBuilder()
    builder.const("size", [1, 1, 11, 2], np.int32)
    builder.const("w", normal_noise(1, 3, 2, 4))
    builder.place("x", 1, 1, 5, 4)
    builder.node("y", "Conv2DBackpropInput", "size", "w", "x", T=F32, strides=[1, 1, 2, 1], padding="VALID")
    x, w, y = normal_noise(1, 1, 5, 4, seed=3), normal_noise(1, 3, 2, 4), np.zeros((1, 1, 11, 2), np.float32)
    for frame in range(5):
        y[0, 0, 2 * frame : 2 * frame + 3] += np.einsum("koc,c->ko", w[0], x[0, 0, frame])
    np.testing.assert_allclose(pulse.load(builder.data).model.analyse().run(x)["y"], y, rtol=1e-5, atol=1e-5)


def test_spectra_give_what_numpy_gives() -> None:
    builder = GraphDefBuilder()
    builder.place("x", 2, 8)
    builder.const("points", [8], np.int32)
    builder.node("bins", "RFFT", "x", "points", Tcomplex=Type("c64"), Treal=F32)
    builder.node("size", "ComplexAbs", "bins", T=Type("c64"), Tout=F32)
    builder.node("phase", "Angle", "bins", T=Type("c64"), Tout=F32)
    builder.node("turned", "Conj", "bins", T=Type("c64"))
    builder.node("power", "Mul", "bins", "turned", T=Type("c64"))
    builder.node("y", "IRFFT", "power", "points", Tcomplex=Type("c64"), Treal=F32)
    x = normal_noise(2, 8)
    outputs = pulse.load(builder.data).model.analyse().run({"x": x})
    bins = np.fft.rfft(x)
    np.testing.assert_allclose(outputs["size"], np.abs(bins), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.exp(1j * outputs["phase"]), np.exp(1j * np.angle(bins)), atol=1e-5)
    np.testing.assert_allclose(outputs["y"], np.fft.irfft(bins * bins.conj()), rtol=1e-4, atol=1e-4)
    session = pulse.tensorflow.load(builder.data).session()
    np.testing.assert_allclose(session.run("bins", {"x": x}), bins, rtol=1e-5, atol=1e-5)


def test_complex_numbers_elsewhere_are_refused() -> None:
    builder = GraphDefBuilder()
    builder.place("x", 2, 8)
    builder.const("points", [8], np.int32)
    builder.node("bins", "RFFT", "x", "points", Tcomplex=Type("c64"), Treal=F32)
    builder.node("y", "Tanh", "bins", T=Type("c64"))
    with pytest.raises(LoadError, match=r"y \(Tanh\): complex"):
        pulse.load(builder.data).model.analyse()


def test_batch_norm_and_fake_quantisation() -> None:
    x = normal_noise(1, 3, 4, 5)
    scale, offset, mean, variance = (normal_noise(5, seed=seed) for seed in range(4))
    variance = np.abs(variance)
    (output,) = result(
        "FusedBatchNormV3", (x, scale, offset, mean, variance), is_training=False, epsilon=0.01
    )
    np.testing.assert_allclose(
        output, (x - mean) / np.sqrt(variance + 0.01) * scale + offset, rtol=1e-4, atol=1e-5
    )
    (output,) = result("FakeQuantWithMinMaxArgs", (x,), min=-1.0, max=1.0, num_bits=8)
    step = 2 / 255
    assert np.abs(output - np.clip(x, -1, 1)).max() <= step
    assert np.abs(output / np.float32(step) - np.rint(output / np.float32(step))).max() < 1e-3
    own_mean, own_variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    (output,) = result("FusedBatchNormV3", (x, scale, offset, mean, variance), is_training=True, epsilon=0.01)
    np.testing.assert_allclose(
        output, (x - own_mean) / np.sqrt(own_variance + 0.01) * scale + offset, rtol=1e-4, atol=1e-5
    )
    with pytest.raises(LoadError, match="training"):
        result("FusedBatchNormV3", (x, scale, offset, mean, variance), 2, is_training=True)


def test_block_lstm_clips_its_cells() -> None:
    builder = GraphDefBuilder()
    builder.place("x", -1, 1, 3)
    builder.const("longest", 6, np.int64)
    zeros = np.zeros((1, 2))
    for name, value in {
        "s": zeros,
        "w": 3 * normal_noise(5, 8),
        "p": zeros[0],
        "b": normal_noise(8, seed=2),
    }.items():
        builder.const(name, value)
    inputs = ("longest", "x", "s", "s", "w", "p", "p", "p", "b")
    builder.node("cell", "BlockLSTM", *inputs, T=F32, forget_bias=0.5, cell_clip=0.75)
    builder.node("y", "Identity", "cell:6", T=F32)
    typed = pulse.load(builder.data, inputs={"x": "6,1,3"}).model.analyse()
    x, w, b = normal_noise(6, 1, 3, seed=5), 3 * normal_noise(5, 8), normal_noise(8, seed=2)
    cs, h, expected = np.zeros((1, 2)), np.zeros((1, 2)), []
    for frame in x:
        i, ci, f, o = np.split(np.concatenate([frame, h], 1) @ w + b, 4, 1)
        cs = np.clip(np.tanh(ci) * sigmoid(i) + cs * sigmoid(f + 0.5), -0.75, 0.75)
        h = np.tanh(cs) * sigmoid(o)
        expected.append(h)
    np.testing.assert_allclose(typed.run(x)["y"], np.stack(expected), rtol=1e-5, atol=1e-5)


def test_a_cell_is_a_frame_of_a_block() -> None:
    x, cs, h = normal_noise(1, 1, 3), normal_noise(1, 2, seed=1), normal_noise(1, 2, seed=2)
    peeps = [normal_noise(2, seed=seed) for seed in (3, 4, 5)]
    weights = (normal_noise(5, 8), *peeps, normal_noise(8, seed=6))
    how = {"forget_bias": 0.5, "cell_clip": 0.75, "use_peephole": True}
    cells = result("LSTMBlockCell", (x[0], cs, h, *weights), 7, **how)
    builder = GraphDefBuilder()
    builder.place("x", 1, 1, 3)
    for place, value in enumerate((cs, h, *weights)):
        builder.const(f"c{place}", value)
    builder.const("longest", 1, np.int64)
    builder.node("y", "BlockLSTM", "longest", "x", *(f"c{place}" for place in range(7)), T=F32, **how)
    names = ["y", *(f"y:{slot}" for slot in range(1, 7))]
    frames = tensorflow.load(builder.data, outputs=names).analyse().run(x)
    for name, cell in zip(names, cells):
        np.testing.assert_allclose(cell, frames[name][0], rtol=1e-5, atol=1e-6)


def test_a_gated_cell_equals_numpy() -> None:
    x, h = normal_noise(1, 3), normal_noise(1, 2, seed=1)
    w_ru, w_c, b_ru, b_c = (normal_noise(*dims, seed=2) for dims in ((5, 4), (5, 2), (4,), (2,)))
    outputs = result("GRUBlockCell", (x, h, w_ru, w_c, b_ru, b_c), 4)
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ w_ru + b_ru), 2, 1)
    c = np.tanh(np.concatenate([x, h * r], 1) @ w_c + b_c)
    for array, expected in zip(outputs, (r, u, c, u * h + (1 - u) * c)):
        np.testing.assert_allclose(array, expected, rtol=1e-5, atol=1e-6)


def test_enough_operators_are_supported() -> None:
    assert len(TRANSLATORS) >= 100


def test_overlap_and_add_streams() -> None:
    typed = pulse.load(overlap_added().data).model.analyse()
    x = normal_noise(1, 5, 6)
    expected = np.zeros((1, 14), np.float32)
    for frame in range(5):
        expected[0, 2 * frame : 2 * frame + 6] += x[0, frame]
    np.testing.assert_allclose(typed.run(x)["y"], expected, rtol=1e-5, atol=1e-5)
    pulse.verify(typed, pulse=1, backend="numpy").require()


@pytest.mark.parametrize(("below", "above"), [(1, 0), (-1, 1), (0, -1), (-1, -1)])
def test_bands_of_matrices_give_what_numpy_gives(below: int, above: int) -> None:
    (output,) = result("MatrixBandPart", (X, np.int64(below), np.int64(above)))
    expected = X
    expected = np.triu(expected, -below) if below >= 0 else expected
    expected = np.tril(expected, above) if above >= 0 else expected
    assert np.array_equal(output, expected)


def test_shapes_are_broadcast() -> None:
    builder = GraphDefBuilder()
    builder.place("x", -1, 4)
    builder.const("other", [3, 1, 1], np.int32)
    builder.node("shape", "Shape", "x", T=F32, out_type=I32)
    builder.node("both", "BroadcastArgs", "shape", "other", T=I32)
    builder.node("y", "BroadcastTo", "x", "both", T=F32)
    x = normal_noise(2, 4)
    assert np.array_equal(pulse.load(builder.data).model.analyse().run(x)["y"], np.broadcast_to(x, (3, 2, 4)))
