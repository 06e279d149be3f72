"""Operators of onnxruntime's own domain, as onnxruntime runs them."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

import pulse
from pulse.errors import LoadError, PulseError
from pulse.loading.onnx_files import read_onnx
from pulse.program.whole_stream import stream_whole
from tests.onnxruntime_sessions import open_session
from tests.pulse.cases.build import Feeds, floats, model, node
from tests.pulse.onnx.reference import reference

X, CHANNELS, SQUARE = floats("x", 2, 5, 4), floats("channels", 4), floats("square", 2, 5, 4)
ROWS = floats("rows", 5, 5)
WEIGHTS = floats("weights", 3, 5, 2)


def one_node(kind: str, feeds: Feeds, outputs: str = "y", **attributes: Any) -> ModelProto:
    """A model of one node of the domain."""
    domain = "" if kind == "SimplifiedLayerNormalization" else "com.microsoft"
    operator = helper.make_node(kind, list(feeds), outputs.split(), domain=domain, **attributes)
    proto = model([operator], feeds, outputs=" ".join(filter(None, outputs.split())))
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


@pytest.mark.parametrize(
    ("proto", "feeds"),
    [
        pytest.param(one_node(kind, feeds, **attributes), feeds, id=f"{kind}-{number}")
        for number, (kind, feeds, attributes) in enumerate(
            [
                ("Gelu", {"x": X}, {}),
                ("BiasGelu", {"x": X, "b": CHANNELS}, {}),
                ("FastGelu", {"x": X}, {}),
                ("FastGelu", {"x": X, "b": CHANNELS}, {}),
                ("QuickGelu", {"x": X}, {"alpha": 1.5}),
                ("FusedMatMul", {"x": X, "z": SQUARE}, {"transB": 1, "alpha": 0.5}),
                ("FusedMatMul", {"x": X, "z": SQUARE}, {"transA": 1}),
                ("FusedConv", {"x": X, "w": WEIGHTS}, {"activation": "Relu"}),
                (
                    "FusedConv",
                    {"x": X, "w": WEIGHTS},
                    {"activation": "LeakyRelu", "activation_params": [0.3]},
                ),
                (
                    "FusedConv",
                    {"x": X, "w": WEIGHTS},
                    {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
                ),
                (
                    "FusedConv",
                    {"x": X, "w": WEIGHTS},
                    {"activation": "Clip", "activation_params": [-0.2, 0.3]},
                ),
                ("FusedGemm", {"a": X[0], "b": SQUARE[0], "c": ROWS}, {"transB": 1, "activation": "Relu"}),
                (
                    "FusedGemm",
                    {"a": X[0], "b": SQUARE[0]},
                    {"transA": 1, "alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.3},
                ),
                (
                    "FusedGemm",
                    {"a": X[0], "b": SQUARE[0], "c": ROWS},
                    {"transB": 1, "activation": "Selu", "activation_alpha": 1.5, "activation_gamma": 1.1},
                ),
                ("SkipLayerNormalization", {"x": X, "s": SQUARE, "g": CHANNELS}, {"epsilon": 1e-5}),
                (
                    "SkipLayerNormalization",
                    {"x": X, "s": SQUARE, "g": CHANNELS, "b": CHANNELS, "c": CHANNELS},
                    {},
                ),
                ("SimplifiedLayerNormalization", {"x": X, "g": CHANNELS}, {"axis": -1, "epsilon": 1e-3}),
                ("SkipSimplifiedLayerNormalization", {"x": X, "s": SQUARE, "g": CHANNELS}, {"epsilon": 1e-3}),
                (
                    "SkipSimplifiedLayerNormalization",
                    {"x": X, "s": SQUARE, "g": CHANNELS, "b": CHANNELS},
                    {"epsilon": 1e-6},
                ),
            ]
        )
    ],
)
def test_microsoft_operators_run_as_in_onnxruntime(proto: ModelProto, feeds: Feeds) -> None:
    typed = read_onnx(proto).analyse()
    (expected,) = reference(proto, feeds)
    np.testing.assert_allclose(typed.run(feeds)["y"], expected, 1e-4, 1e-5)


def linear_attention(feeds: Feeds, **attributes: Any) -> ModelProto:
    """Attention with a state, of two heads; T is the time axis."""
    operator = node(
        "LinearAttention",
        "q k v _ g b",
        "y s",
        domain="com.microsoft",
        q_num_heads=2,
        kv_num_heads=2,
        **attributes,
    )
    return model([operator], feeds, None, 17, dict.fromkeys(feeds, 1))


def attention_feeds(frames: int) -> Feeds:
    """Queries, keys, values, decays and rates of ``frames`` frames."""
    feeds = {name: floats(name, 1, frames, 6) * 0.5 for name in "qkv"}
    return feeds | {"g": -np.abs(floats("g", 1, frames, 2)), "b": np.abs(floats("b", 1, frames, 2)) * 0.3}


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_linear_attention_streams_as_onnxruntime_runs_it_whole(backend: str) -> None:
    feeds = attention_feeds(11)
    proto = linear_attention(feeds)
    (expected,) = reference(proto, feeds)
    pulsed = read_onnx(proto).analyse().pulsify(pulse=3)
    streamed = stream_whole(pulsed.compile(backend), feeds)["y"]
    assert pulsed.outputs[0].delay == 0
    np.testing.assert_allclose(streamed, expected, 1e-4, 1e-5)


def test_a_window_of_states_is_refused() -> None:
    proto = linear_attention(attention_feeds(3), state_window=2)
    with pytest.raises(PulseError, match="state_window is not supported; omit it"):
        read_onnx(proto).analyse().pulsify(pulse=3)


def test_a_pool_of_codes_with_channels_last_is_refused() -> None:
    x = {"x": np.zeros((1, 8, 4), np.uint8)}
    constants = {"s": np.float32(1), "p": np.uint8(0)}
    operator = node("QLinearGlobalAveragePool", "x s p s p", domain="com.microsoft", channels_last=1)
    with pytest.raises(
        LoadError, match="channels_last is not supported; quantise the model with channels first"
    ):
        read_onnx(model([operator], x, constants)).analyse()


def test_an_unknown_activation_of_a_fused_node_is_refused() -> None:
    proto = one_node("FusedConv", {"x": X, "w": WEIGHTS}, activation="Mish")
    with pytest.raises(LoadError, match="activation 'Mish' is not supported; use Clip, Elu, HardSigmoid"):
        read_onnx(proto).analyse()


def test_a_range_of_all_frames_is_refused_with_the_way_out() -> None:
    feeds = {"x": floats("x", 2, 3, 4)}
    proto = model([node("DynamicQuantizeLinear", "x", "y s z")], feeds, None, 17, {"x": 1}, "y s z")
    with pytest.raises(PulseError, match="all frames: quantise the model with constant scales") as caught:
        read_onnx(proto).analyse().pulsify()
    assert "pooling" not in str(caught.value)


def quantised_layer(frames: int, **attributes: Any) -> ModelProto:
    """A quantised LSTM, its states among the inputs and outputs."""
    operator = node(
        "DynamicQuantizeLSTM",
        "x w r _ _ h c _ s z t q",
        "y hn cn",
        domain="com.microsoft",
        hidden_size=3,
        **attributes,
    )
    random = np.random.default_rng(0)
    constants = {
        "w": random.integers(-127, 128, (1, 4, 12), np.int8),
        "r": random.integers(-127, 128, (1, 3, 12), np.int8),
        **dict.fromkeys("st", np.full(1, 0.01, np.float32)),
        **dict.fromkeys("zq", np.zeros(1, np.int8)),
    }
    feeds = {"x": floats("x", frames, 1, 4), "h": np.zeros((1, 1, 3)), "c": np.zeros((1, 1, 3))}
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    return model([operator], feeds, constants, stream=None if frames == 2 else {"x": 0}, outputs="y hn cn")


def test_a_quantised_layer_of_a_model_of_chunks_streams() -> None:
    """Each call quantises its own frames, as onnxruntime does."""
    proto = quantised_layer(2)
    program = pulse.load(proto, chunking=pulse.Chunking(axes={"x": 0, "y": 0})).compile()
    session, state = open_session(proto), program.spawn()
    states = {name: np.zeros((1, 1, 3), np.float32) for name in "hc"}
    for frames in np.split(floats("sound", 12, 1, 4), 6):
        expected, states["h"], states["c"] = session.run(None, {"x": frames, **states})
        np.testing.assert_allclose(state.step(frames)["y"], expected, 1e-5, 1e-6)


def test_a_layer_quantised_by_its_range_is_refused_likewise() -> None:
    with pytest.raises(PulseError, match="all frames: quantise the model with constant scales"):
        read_onnx(quantised_layer(5)).analyse().pulsify()


@pytest.mark.parametrize("name", ["w", "r", "s", "h", "hidden_size"])
def test_a_quantised_layer_whose_sizes_do_not_fit_is_refused(name: str) -> None:
    proto = quantised_layer(2)
    if name == "hidden_size":
        (attribute,) = proto.graph.node[0].attribute
        attribute.i = 5
    elif name == "h":
        proto.graph.input[1].type.tensor_type.shape.dim[1].dim_value = 2
    else:
        (tensor,) = (tensor for tensor in proto.graph.initializer if tensor.name == name)
        value = numpy_helper.to_array(tensor)
        longer = np.concatenate([value, value[:, :1]], 1) if value.ndim > 1 else np.tile(value, 2)
        tensor.CopyFrom(numpy_helper.from_array(longer, name))
    with pytest.raises(LoadError, match=r"export it again|hidden_size is 5"):
        read_onnx(proto).analyse()


@pytest.mark.parametrize(
    ("attributes", "name"),
    [({"clip": 1.0}, "clip"), ({"activations": ["Relu", "Tanh", "Tanh"]}, "activations")],
)
def test_an_unusual_quantised_layer_is_refused(attributes: dict[str, Any], name: str) -> None:
    with pytest.raises(
        LoadError, match=f"{name} is not supported in a quantised layer; load the model of floats"
    ):
        read_onnx(quantised_layer(2, **attributes)).analyse()


def test_operators_for_one_processor_are_refused() -> None:
    operator = helper.make_node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")
    with pytest.raises(
        LoadError, match="load the model as it was before, or optimise it at ORT_ENABLE_EXTENDED"
    ):
        read_onnx(model([operator], {"x": floats("x", 1, 8, 4)})).analyse()
