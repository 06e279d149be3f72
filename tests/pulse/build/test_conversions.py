"""Views in another type or layout: the result is the same, and what converts is at the borders."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.build import (
    Add,
    BatchNorm2D,
    Concat,
    Connector,
    Conv2D,
    GenericOperator,
    GraphView,
    Parallel,
    ReLU,
    Sequential,
    Softmax,
    Tanh,
)
from pulse.errors import InputError
from pulse.program.native.native_program import NativeProgram
from tests.noise import normal_noise


def parts() -> tuple[GraphView, GraphView]:
    """The whole, and a part in the middle of it."""
    first, last = Conv2D(3, 4, [3, 3], "first", padding_dims=[2, 1, 0, 1]), Tanh("last")
    inner = [
        ReLU("relu"),
        Parallel(
            [
                Conv2D(4, 4, [1, 3], "left", padding_dims=[0, 1]),
                Conv2D(4, 4, [2, 1], "right", padding_dims=[1, 0, 0, 0]),
            ]
        ),
        Add("add"),
        BatchNorm2D(4, name="norm", scale=[1, 2, 3, 4]),
    ]
    part = Sequential(inner)
    return Sequential([first, part, last]), part


def sound() -> np.ndarray:
    return normal_noise(1, 3, 7, 8)


def test_a_view_of_half_precision_casts_at_its_borders() -> None:
    whole, part = parts()
    (before,) = whole.forward(sound()).values()
    part.set_dtype("f16")
    casts = [node for node in whole if node.type == "Cast"]
    assert len(casts) == len(part.inputs()) + len(part.outputs()) == 2
    assert all(node in part for node in casts)
    assert {node.op.value.dtype for node in part.parameters()} == {np.dtype(np.float16)}
    (after,) = whole.forward(sound()).values()
    assert after.dtype == np.float32
    assert 0 < np.abs(after - before).max() < 1e-2
    for backend in ("numba", "numpy"):
        pulse.verify(whole.graph("1,3,T,8"), pulse=2, backend=backend).require()
    part.set_backend("numpy")
    pulse.verify(whole.graph("1,3,T,8"), pulse=2).require()


def test_rounded_weights_are_stored_in_half_the_memory() -> None:
    """Kernels compute in f32 with f16 weights; there are no casts, and the stream is that of the rounded weights."""
    conv = Conv2D(32, 64, [3, 3], "conv", padding_dims=[2, 1, 0, 1])
    view, plain = (
        Sequential([conv, Tanh()]),
        pulse.stream(Sequential([conv.share()]).graph("1,32,T,8"), pulse=2),
    )
    before = conv.parent(1).op.value
    GraphView([conv]).set_dtype("f16", weights_only=True)
    after = conv.parent(1).op.value
    assert after.dtype == np.float32
    assert not np.array_equal(after, before)
    np.testing.assert_array_equal(after, before.astype(np.float16))
    program = pulse.stream(view.graph("1,32,T,8"), pulse=2)
    assert [node.type for node in view] == ["Conv", "Tanh"]
    assert isinstance(program, NativeProgram)
    assert isinstance(plain, NativeProgram)
    assert any(row.kernel.endswith("_f16") for row in program.instructions)
    assert program.weights.size < 0.6 * plain.weights.size
    pulse.verify(view.graph("1,32,T,8"), pulse=2).require()


def test_a_parameter_shared_with_the_outside_keeps_its_type() -> None:
    conv = Conv2D(3, 3, 1, "conv")
    x = Connector("x", "1,3,T,8")
    view = conv(conv(x)).graph()
    inside, outside = view.nodes
    GraphView([inside]).set_dtype("f16")
    assert inside.parent(1).op.value.dtype == np.float16
    assert outside.parent(1).op.value.dtype == np.float32
    with pytest.raises(InputError, match="unknown dtype 'i8'; choose one of f16, f32, f64"):
        view.set_dtype("i8")


def test_a_graph_in_channels_last_layout_computes_the_same() -> None:
    whole, _ = parts()
    (before,) = whole.forward(sound()).values()
    plain = whole.graph("1,3,T,8").analyse().declutter()
    whole.set_layout("NHWC")
    turned = [node for node in whole if node.type == "Transpose"]
    assert len(turned) == 2 * len([node for node in whole if node.type in ("Conv", "BatchNormalization")])
    (after,) = whole.forward(sound().transpose(0, 2, 3, 1)).values()
    np.testing.assert_allclose(after.transpose(0, 3, 1, 2), before, rtol=1e-6, atol=1e-6)
    model = whole.graph("1,T,8,3")
    pulse.verify(model, pulse=2).require()
    inner, expected = (
        [node.op.name for node in typed.graph.nodes] for typed in (model.analyse().declutter(), plain)
    )
    assert inner.count("Transpose") == 2  # those of the input and of the output
    assert sorted(name for name in inner if name != "Transpose") == sorted(expected)


def test_a_part_with_channels_last_changes_nothing_outside() -> None:
    whole, part = parts()
    (before,) = whole.forward(sound()).values()
    part.set_layout("NHWC")
    (after,) = whole.forward(sound()).values()
    np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6)
    pulse.verify(whole.graph("1,3,T,8"), pulse=2).require()
    part.set_layout("NCHW")


@pytest.mark.parametrize("function", ["Sin", "Mish", "Softsign"])
def test_each_elementwise_function_treats_all_axes_alike(function: str) -> None:
    whole = Sequential([Conv2D(3, 4, 1, "conv"), GenericOperator(function)])
    (before,) = whole.forward(sound()).values()
    whole.set_layout("NHWC")
    (after,) = whole.forward(sound().transpose(0, 2, 3, 1)).values()
    np.testing.assert_allclose(after.transpose(0, 3, 1, 2), before, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        pytest.param(
            lambda: Sequential([Conv2D(1, 2, 1), Softmax(1)]),
            r"softmax \(Softmax\): names axes",
            id="softmax names an axis",
        ),
        pytest.param(
            lambda: Sequential([Parallel([Conv2D(1, 2, 1), Conv2D(1, 2, 1)]), Concat(2, 1)]),
            "concat.*names axes",
            id="concat names an axis",
        ),
        pytest.param(lambda: Sequential([ReLU()]), "needs convolutions or pools", id="no convolution"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(view: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        view().set_layout("NHWC")
    with pytest.raises(InputError, match=r"'CHWN'.*; choose one of NCHW, NHWC"):
        view().set_layout("CHWN")
