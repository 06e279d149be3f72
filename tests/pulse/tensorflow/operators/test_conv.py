"""Convolutions, pools and their blocks against numpy."""

from collections.abc import Sequence

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from pulse.ops.conv import Conv
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, GraphDefBuilder
from tests.pulse.tensorflow.operator_results import results_of_operator
from tests.pulse.tensorflow.windows import dilated_convolution


def windows(x: Array, size: Sequence[int], steps: Sequence[int], dilation: Sequence[int] = (1, 1)) -> Array:
    """[N, H, W, kh, kw, C] of an image without padding."""
    span = [(taps - 1) * wide + 1 for taps, wide in zip(size, dilation)]
    view = np.lib.stride_tricks.sliding_window_view(x, span, (1, 2))[:, :: steps[0], :: steps[1]]
    return view[..., :: dilation[0], :: dilation[1]].transpose(0, 1, 2, 4, 5, 3)


def padded_as_same(x: Array, size: Sequence[int], steps: Sequence[int], fill: float = 0.0) -> Array:
    """Padded as TensorFlow's SAME: the odd frame at the end."""
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
    (output,) = results_of_operator("Conv2D", (x, w), strides=strides, padding=padding)
    np.testing.assert_allclose(output, np.einsum("nhwijc,ijco->nhwo", parts, w), rtol=1e-5, atol=1e-5)
    (output,) = results_of_operator("DepthwiseConv2dNative", (x, deep), strides=strides, padding=padding)
    expected = np.einsum("nhwijc,ijcm->nhwcm", parts, deep)
    np.testing.assert_allclose(output, expected.reshape(*expected.shape[:3], -1), rtol=1e-5, atol=1e-5)
    (output,) = results_of_operator("MaxPool", (x,), ksize=[1, 3, 2, 1], strides=strides, padding=padding)
    low = windows(padded_as_same(x, (3, 2), steps, -np.inf) if padding == "SAME" else x, (3, 2), steps)
    np.testing.assert_allclose(output, low.max((3, 4)), rtol=1e-6)


def test_channels_may_be_second() -> None:
    x, w = normal_noise(1, 3, 7, 8), normal_noise(3, 2, 3, 5, seed=1)
    (output,) = results_of_operator(
        "Conv2D", (x, w), strides=[1, 1, 1, 1], padding="VALID", data_format="NCHW"
    )
    parts = windows(x.transpose(0, 2, 3, 1), (3, 2), (1, 1))
    np.testing.assert_allclose(output, np.einsum("nhwijc,ijco->nohw", parts, w), rtol=1e-5, atol=1e-5)
    (output,) = results_of_operator("BiasAdd", (x, np.float32([1, 2, 3])), data_format="NCHW")
    assert np.array_equal(output, x + np.float32([1, 2, 3])[:, None, None])


def test_explicit_padding_agrees_with_numpy() -> None:
    x, w = normal_noise(1, 7, 8, 3), normal_noise(3, 2, 3, 5)
    pads = [0, 0, 2, 1, 0, 3, 0, 0]
    (output,) = results_of_operator(
        "Conv2D", (x, w), strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=pads
    )
    parts = windows(np.pad(x, ((0, 0), (2, 1), (0, 3), (0, 0))), (3, 2), (1, 1))
    np.testing.assert_allclose(output, np.einsum("nhwijc,ijco->nhwo", parts, w), rtol=1e-5, atol=1e-5)


def test_batch_to_space_undoes_space_to_batch() -> None:
    x = normal_noise(1, 6, 5)
    block, pads, crops = np.int32([2]), np.int32([[1, 1]]), np.int32([[0, 2]])
    (batches,) = results_of_operator("SpaceToBatchND", (x, block, pads))
    padded = np.pad(x, ((0, 0), (1, 1), (0, 0)))
    assert np.array_equal(batches, np.concatenate([padded[:, ::2], padded[:, 1::2]]))
    (back,) = results_of_operator("BatchToSpaceND", (batches, block, crops))
    assert np.array_equal(back, padded[:, :6])
    with pytest.raises(pulse.LoadError, match="its crops are negative: 0, -1"):
        results_of_operator("BatchToSpaceND", (batches, block, np.int32([[0, -1]])))


def test_a_convolution_along_the_batch_of_blocks_is_not_dilated() -> None:
    typed = pulse.load(dilated_convolution(axis=0).data).model.analyse()
    assert [node.op.dilations for node in typed.graph.nodes if isinstance(node.op, Conv)] == [(1, 1)]


def test_a_convolution_between_blocks_streams_as_a_dilated_one() -> None:
    typed = pulse.load(dilated_convolution().data).model.analyse()
    convs = [node.op for node in typed.graph.nodes if isinstance(node.op, Conv)]
    assert [conv.dilations for conv in convs] == [(1, 3)]
    x, w = normal_noise(1, 7, 4), normal_noise(1, 2, 4, 5)
    padded = np.pad(x, ((0, 0), (3, 0), (0, 0)))
    expected = padded[:, :7] @ w[0, 0] + padded[:, 3:] @ w[0, 1]
    np.testing.assert_allclose(typed.run(x)["y"], expected, rtol=1e-5, atol=1e-5)
    assert pulse.verify(typed, pulse=1, backend="numpy").require()


def test_transposed_convolution_agrees_with_numpy() -> None:
    builder = GraphDefBuilder()
    builder.const("size", [1, 1, 11, 2], np.int32)
    builder.const("w", normal_noise(1, 3, 2, 4))
    builder.place("x", 1, 1, 5, 4)
    builder.node("y", "Conv2DBackpropInput", "size", "w", "x", T=F32, strides=[1, 1, 2, 1], padding="VALID")
    x, w, y = normal_noise(1, 1, 5, 4, seed=3), normal_noise(1, 3, 2, 4), np.zeros((1, 1, 11, 2), np.float32)
    for frame in range(5):
        y[0, 0, 2 * frame : 2 * frame + 3] += np.einsum("koc,c->ko", w[0], x[0, 0, frame])
    np.testing.assert_allclose(pulse.load(builder.data).model.analyse().run(x)["y"], y, rtol=1e-5, atol=1e-5)
