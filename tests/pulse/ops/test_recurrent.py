"""Recurrent layers and running sums as streams: over time, over the batch, after prefixes, delays and strides."""

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import ModelProto, NodeProto

import pulse
from pulse.errors import CompileError, FactError, PulsifyError
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import stream_whole
from tests.agreement import Expected
from tests.backends import BACKENDS
from tests.pulse.cases import cumulative, recurrent
from tests.pulse.cases.build import Feeds, floats, model, node
from tests.pulse.ops.stream_proof import assert_streams

LENGTHS = (1, 2, 3, 7, 16)


def symbolic() -> Iterator[tuple[str, ModelProto, Feeds]]:
    """The cases in which time or the batch is T."""
    for generator in (*recurrent.ALL, cumulative.cumsum):
        for name, proto, feeds in generator():
            if name.endswith("-T") and "-7-" not in name:
                yield name, proto, feeds


CASES = {name: (proto, feeds) for name, proto, feeds in symbolic()}
SUMS_FROM_THE_END = ("CumSum_1_0_1", "CumSum_1_1_1")
"""Running sums over time in reverse, which cannot stream."""
NUMPY_ONLY = ("Elu", "Softsign", "Softplus", "ThresholdedRelu", "ScaledTanh")
"""Rare activations without a kernel."""


def parts_of(name: str) -> list[str]:
    """The operator of a case and its variants."""
    return name.partition("-")[0].split("_")


@pytest.mark.parametrize(
    ("number", "name"),
    [(number, name) for number, name in enumerate(CASES) if not name.startswith(SUMS_FROM_THE_END)],
)
def test_a_case_with_a_symbol_streams(number: int, name: str) -> None:
    """Pulses have 1 to 4 frames."""
    proto, feeds = CASES[name]
    typed = pulse.load(proto).analyse()
    pulsed = typed.pulsify(pulse=1 + number % 4)
    expected = Expected(typed, feeds)
    for backend in BACKENDS:
        if backend == "numba" and not {*NUMPY_ONLY}.isdisjoint(parts_of(name)):
            with pytest.raises(CompileError, match="no kernel for the activation"):
                compile_model(pulsed, backend)
        else:
            expected.assert_agrees(stream_whole(compile_model(pulsed, backend), feeds), (name, backend))


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(SUMS_FROM_THE_END)])
def test_a_sum_from_the_end_is_refused(name: str) -> None:
    with pytest.raises(PulsifyError, match="sum from the end"):
        pulse.load(CASES[name][0]).analyse().pulsify(pulse=2)


LAYERS = ("RNN", "GRU", "LSTM")


def layer_after(op: str, first: list[NodeProto], outputs: str = "y h") -> list[NodeProto]:
    """``first`` makes z [1, C, L]; the layer runs over L."""
    over = node("Transpose", "z", "zt", perm=[2, 0, 1])
    names = "y h c" if op == "LSTM" and outputs == "y h" else outputs
    before = {"linear_before_reset": 1} if op == "GRU" else {}
    return [*first, over, node(op, "zt w r b", names, hidden_size=recurrent.H, **before)]


@pytest.mark.parametrize("op", LAYERS)
@pytest.mark.parametrize(
    ("name", "pads", "stride", "pulse_frames", "delay"),
    [
        ("causal", [2, 0], 1, 3, 0),
        ("look ahead", [1, 1], 1, 2, 1),
        ("no pad", [0, 0], 1, 2, 2),
        ("stride", [2, 0], 2, 4, 0),
        ("stride and delay", [0, 1], 2, 4, 1),
    ],
)
@pytest.mark.parametrize("length", [3, 4, 9, 30])
def test_a_layer_after_a_convolution_streams_as_offline(
    op: str, name: str, pads: list[int], stride: int, pulse_frames: int, delay: int, length: int
) -> None:
    constants = {
        **recurrent.weights(op, 1),
        "k": floats("k", recurrent.I, 2, 3),
        "kb": floats("kb", recurrent.I),
    }
    nodes = layer_after(op, [node("Conv", "x k kb", "z", pads=pads, strides=[stride])])
    feeds = {"x": floats(name, 1, 2, length)}
    outputs = "y h c" if op == "LSTM" else "y h"
    assert_streams(model(nodes, feeds, constants, 14, {"x": 2}, outputs), feeds, pulse_frames, delay)


@pytest.mark.parametrize("op", LAYERS)
@pytest.mark.parametrize("frames", [1, 2, 5])
@pytest.mark.parametrize("length", LENGTHS)
def test_frames_before_the_stream_are_in_the_state(op: str, frames: int, length: int) -> None:
    """The layer has read a constant pad before the first pulse; a causal convolution after it has a prefix too."""
    constants = {
        **recurrent.weights(op, 1),
        "pads": np.array([0, 0, frames, 0, 0, 0], np.int64),
        "value": np.float32(0.3),
        "k": floats("k", 2, recurrent.H, frames + 1),
    }
    layer = layer_after(op, [node("Pad", "x pads value", "z")], "s")
    turn = [node("Squeeze", "s axes", "flat"), node("Transpose", "flat", "ct", perm=[1, 2, 0])]
    constants["axes"] = np.array([1], np.int64)
    nodes = [*layer, *turn, node("Conv", "ct k", "y")]
    feeds = {"x": floats(length, 1, recurrent.I, length)}
    assert_streams(model(nodes, feeds, constants, 14, {"x": 2}), feeds, 2, 0)


@pytest.mark.parametrize("op", LAYERS)
@pytest.mark.parametrize("length", LENGTHS)
def test_the_last_state_feeds_a_classifier(op: str, length: int) -> None:
    constants = {**recurrent.weights(op, 1), "v": floats("v", recurrent.H, 3)}
    nodes = [node(op, "x w r b", "_ h", hidden_size=recurrent.H), node("MatMul", "h v", "y")]
    feeds = {"x": floats(length, length, 2, recurrent.I)}
    assert_streams(model(nodes, feeds, constants, 14, {"x": 0}), feeds, 3)


@pytest.mark.parametrize("op", LAYERS)
def test_an_initial_state_of_zeros_may_have_the_stream_length(op: str) -> None:
    """Exporters write it like this: the batch is the stream, and the state is made by its length."""
    last = node("Concat", "one batch size", "shape", axis=0)
    nodes = [
        node("Shape", "x", "dims"),
        node("Slice", "dims from to", "batch"),
        last,
        node("ConstantOfShape", "shape", "h0"),
        node(op, "x w r b _ h0", "y", hidden_size=recurrent.H, direction="bidirectional"),
    ]
    constants = {
        **recurrent.weights(op, 2),
        **{name: np.array([value], np.int64) for name, value in (("one", 2), ("from", 1), ("to", 2))},
        "size": np.array([recurrent.H], np.int64),
    }
    feeds = {"x": floats("batch", 6, 9, recurrent.I)}
    assert_streams(model(nodes, feeds, constants, 14, {"x": 1}), feeds, 2, 0)


@pytest.mark.parametrize("op", LAYERS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_snapshot_holds_the_state(op: str, backend: str) -> None:
    proto = model(
        [node(op, "x w r b", "y", hidden_size=recurrent.H)],
        {"x": floats("x", 8, 2, recurrent.I)},
        recurrent.weights(op, 1),
        14,
        {"x": 0},
    )
    x = floats("x", 8, 2, recurrent.I)
    pulsed = pulse.load(proto).analyse().pulsify(pulse=2)
    program = compile_model(pulsed, backend)
    state = program.spawn()
    state.step(x[:2])
    saved = state.snapshot()
    first = state.step(x[2:4])["y"]
    state.step(x[4:6])
    state.restore(saved)
    np.testing.assert_array_equal(state.step(x[2:4])["y"], first)
    state.reset()
    np.testing.assert_array_equal(
        state.step(x[:2])["y"], compile_model(pulsed, backend).spawn().step(x[:2])["y"]
    )


@pytest.mark.parametrize("op", LAYERS)
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_batch_first_is_the_same_transposed(op: str, direction: str) -> None:
    """Layout 1, which onnxruntime does not run."""
    count = 1 if direction == "forward" else 2
    x, h0 = floats("x", 4, 3, recurrent.I), floats("h", count, 3, recurrent.H)
    names = "y h c" if op == "LSTM" else "y h"
    weights = recurrent.weights(op, count)

    def run_in_layout(layout: int, feeds: Feeds) -> Feeds:
        operator = node(op, "x w r b _ h", names, hidden_size=recurrent.H, direction=direction, layout=layout)
        feeds = {"x": feeds["x"], "h0": feeds["h0"]}
        operator.input[5] = "h0"
        return pulse.load(model([operator], feeds, weights, 14, None, names)).model.analyse().run(feeds)

    usual = run_in_layout(0, {"x": x, "h0": h0})
    turned = run_in_layout(1, {"x": x.transpose(1, 0, 2), "h0": h0.transpose(1, 0, 2)})
    np.testing.assert_allclose(turned["y"], usual["y"].transpose(2, 0, 1, 3), 1e-6)
    for name in names.split()[1:]:
        np.testing.assert_allclose(turned[name], usual[name].transpose(1, 0, 2), 1e-6)


@pytest.mark.parametrize(
    ("inputs", "stream", "attributes", "reason"),
    [
        ("x w r b", 0, {"direction": "reverse"}, "the first frame needs the last one"),
        ("x w r b", 0, {"direction": "bidirectional"}, "the first frame needs the last one"),
        ("x w r b", 2, {}, "sums over its features"),
        ("x w r b l", 0, {}, "sequence_lens are constant"),
    ],
)
def test_recurrent_layers_that_cannot_stream_are_refused(
    inputs: str, stream: int, attributes: dict[str, str], reason: str
) -> None:
    count = 2 if attributes.get("direction") == "bidirectional" else 1
    constants = {**recurrent.weights("GRU", count), "l": np.array([2, 3, 1], np.int32)}
    feeds = {"x": floats("x", 4, 3, recurrent.I)}
    operator = node("GRU", inputs, hidden_size=recurrent.H, **attributes)
    typed = pulse.load(model([operator], feeds, constants, 14, {"x": stream})).analyse()
    with pytest.raises(PulsifyError, match=reason):
        typed.pulsify()


def test_weights_that_do_not_fit_are_refused() -> None:
    constants = {**recurrent.weights("GRU", 1), "b": floats("b", 1, 7)}
    feeds = {"x": floats("x", 4, 3, recurrent.I)}
    with pytest.raises(FactError, match="its input b"):
        pulse.load(model([node("GRU", "x w r b", hidden_size=recurrent.H)], feeds, constants)).analyse()


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int32, np.float64])
@pytest.mark.parametrize("length", LENGTHS)
def test_running_sums_begin_with_the_left_context(
    exclusive: int, dtype: type[np.generic], length: int
) -> None:
    constants = {
        "pads": np.array([2, 0, 0, 0], np.int64),
        "value": np.array(3, dtype),
        "axis": np.array(0, np.int64),
    }
    nodes = [node("Pad", "x pads value", "z"), node("CumSum", "z axis", exclusive=exclusive)]
    feeds = {"x": (floats(length, length, 3) * 4).astype(dtype)}
    assert_streams(model(nodes, feeds, constants, 14, {"x": 0}), feeds, 3, 0)
