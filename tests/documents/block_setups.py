"""The setups of the Python blocks of the documents: files in the folder, and names."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx

import pulse
from bench.models.recipe_pages import recipes
from streaming import Session
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks.models import build
from tests.pulse.tensorflow.graphs import F32, I32, GraphDefBuilder, Shape, Type
from tests.pulse.tensorflow.saved import stateful
from tests.shared import shared_path
from tests.streaming.command import tone, write_sound

Setup: TypeAlias = Callable[[], Mapping[str, Any]]


def filter_model(time: str = "T") -> onnx.ModelProto:
    """Audio [1, T] -> y [1, T], a filter of 5 taps."""
    nodes = [
        node("Unsqueeze", "audio one", "deep"),
        node("Conv", "deep taps", "filtered", pads=[2, 2]),
        node("Squeeze", "filtered one", "y"),
    ]
    constants = {"one": np.array([1]), "taps": normal_noise(1, 1, 5)}
    return build(nodes, {"audio": [1, time]}, {"y": [1, time]}, constants)


def unknown() -> Mapping[str, Any]:
    """Write a model with an unknown operator."""
    nodes = [node("Relu", "x", "a"), node("Foo", "a", "foo", domain="my"), node("Tanh", "foo", "y")]
    onnx.save(build(nodes, {"x": [1, 3, "T"]}, {"y": [1, 3, "T"]}, {}), "unknown.onnx")
    return {}


def sound() -> Mapping[str, Any]:
    """Write a model of audio and a file; return the samples."""
    onnx.save(filter_model(), "model.onnx")
    write_sound("in.wav", tone(16_000))
    return {"x": normal_noise(1, 1_600)}


def chunks() -> Mapping[str, Any]:
    """Write a chunk model with 64 samples of context and the rate as an input."""
    nodes = [
        node("Cast", "sr", "rate", to=onnx.TensorProto.FLOAT),
        node("Div", "input rate", "y"),
        node("Slice", "y start end axis", "output"),
    ]
    constants = {"start": np.array([64]), "end": np.array([576]), "axis": np.array([1])}
    model = build(nodes, {"input": [1, 576], "sr": []}, {"output": [1, 512]}, constants)
    model.graph.input[1].type.tensor_type.elem_type = onnx.TensorProto.INT64
    onnx.save(model, "silero_vad.onnx")
    return {}


def lanes() -> Mapping[str, Any]:
    """The program of 64 lanes, and a pulse for each."""
    return {"program": pulse.stream(filter_model(), pulse=160), "x": normal_noise(64, 1, 160)}


def spectral() -> Mapping[str, Any]:
    """Write a model that takes spectra."""
    shape = [1, 257, "frames", 2]
    onnx.save(build([node("Relu", "x", "y")], {"x": shape}, {"y": shape}), "model.onnx")
    return {}


def published_models() -> Mapping[str, Any]:
    """The published models and the recipe of one of them."""
    for name in ("gtcrn_offline.onnx", "dtln_1.onnx", "dtln_2.onnx"):
        Path(name).symlink_to(shared_path(f"models/{name}"))
    Path("gtcrn.toml").write_text(recipes()["gtcrn.toml"])
    return {}


def probabilities() -> Mapping[str, Any]:
    """A model with 100 probabilities per second."""
    nodes = [
        node("Unsqueeze", "audio one", "deep"),
        node("AveragePool", "deep", "level", kernel_shape=[160], strides=[160]),
        node("Sigmoid", "level", "speech"),
        node("Transpose", "speech", "y", perm=[0, 2, 1]),
    ]
    model = build(nodes, {"audio": [1, "T"]}, {"y": [1, "T//160", 1]}, {"one": np.array([1])})
    onnx.save(model, "vad.onnx")
    Path("tokens.txt").write_text("<blk> 0\n▁a 1\n▁b 2\n", "utf-8")
    blocks = [normal_noise(1, 700, seed=seed) for seed in range(5)]
    return {"blocks": blocks, "probabilities": np.random.default_rng(0).random((5, 40))}


def devices() -> Mapping[str, Any]:
    """Programs, and the file that replaces a microphone."""
    write_sound("heard.wav", tone(16_000))
    onnx.save(filter_model(), "model.onnx")
    program, other = pulse.stream(filter_model(), pulse=160), pulse.stream(filter_model(), pulse=160)
    return {"program": program, "other": other}


def recipe_to_embed() -> Mapping[str, Any]:
    """A recipe that names the model in which it is."""
    Path("recipe_with_a_dot.toml").write_text(recipes()["gtcrn.toml"].replace("gtcrn_offline.onnx", "."))
    return {}


def two_sound_files() -> Mapping[str, Any]:
    """A session of a model with two audio inputs, and blocks for them."""
    shapes = {"mic": [1, "T"], "far": [1, "T"]}
    model = build([node("Sub", "mic far", "y")], shapes, {"y": [1, "T"]})
    return {
        "session": Session(pulse.stream(model, pulse=160)),
        "a": normal_noise(1, 700),
        "b": normal_noise(1, 300),
    }


def graphs() -> Mapping[str, Any]:
    """A SavedModel, and a graph with the nodes that the page names."""
    stateful(Path("saved_model_folder"))
    builder = GraphDefBuilder()
    builder.node("output", "Relu", builder.place("input", 4), T=F32)
    builder.node("conv/Relu", "Relu", builder.place("picture", 1, -1, 64), T=F32)
    builder.node("softmax", "Softmax", "conv/Relu", T=F32)
    builder.node("a", "Neg", builder.place("x", 4), T=F32)
    builder.const("axis", 0, np.int32)
    builder.node("b", "Split", "axis", "x", T=F32, num_split=2)
    builder.node("count", "VariableV2", dtype=F32, shape=Shape(()))
    builder.const("one", 1)
    builder.node("first", "Assign", "count", "one", T=F32)
    builder.node("init", "NoOp", "^first")
    builder.node("train_step", "AssignAdd", "count", "one", T=F32)
    Path("graph.pb").write_bytes(builder.data)
    return {}


def spotter() -> Mapping[str, Any]:
    """A graph that reads an audio file."""
    builder = GraphDefBuilder()
    builder.node("wav", "Placeholder", dtype=Type("string"), shape=Shape(()))
    builder.node("decoded_sample_data", "DecodeWav", "wav", desired_channels=1, desired_samples=16_000)
    sound = "decoded_sample_data"
    options = {"window_size": 640, "stride": 320, "magnitude_squared": True}
    builder.node("spectrogram", "AudioSpectrogram", sound, **options)
    builder.node("Mfcc", "Mfcc", "spectrogram", f"{sound}:1", dct_coefficient_count=10)
    Path("kws.pb").write_bytes(builder.data)
    return {}


def graph_of_x() -> Mapping[str, Any]:
    """A signal that the graph of the page is fed."""
    return {"x": normal_noise(4)}


def own_operator() -> Mapping[str, Any]:
    """A session on a graph with an operator that is not there yet."""
    builder = GraphDefBuilder()
    builder.node("y", "ZeroOut", builder.place("x", -1, dtype=I32))
    return {"session": pulse.tensorflow.load(builder.data).session()}


def no_names() -> Mapping[str, Any]:
    """The names that earlier blocks have defined."""
    return {}


def matrix() -> Mapping[str, Any]:
    """A model whose step is a product with a matrix."""
    nodes = [node("MatMul", "x w", "y")]
    onnx.save(
        build(nodes, {"x": [1, "T", 64]}, {"y": [1, "T", 64]}, {"w": normal_noise(64, 64)}), "model.onnx"
    )
    return {}


SETUPS: Mapping[str, tuple[Setup, ...]] = {
    "README.md": (sound,),
    "docs/aidge.md": (no_names, no_names, no_names, no_names, no_names, unknown, no_names, no_names),
    "docs/chains.md": (published_models, no_names),
    "docs/copies.md": (sound,),
    "docs/executor.md": (sound, no_names, no_names),
    "docs/events.md": (probabilities, no_names, no_names, no_names),
    "docs/front.md": (no_names, no_names),
    "docs/kernels.md": (sound,),
    "docs/live.md": (devices, no_names),
    "docs/programs.md": (sound,),
    "docs/proof.md": (sound,),
    "docs/quantisation.md": (matrix,),
    "docs/recipes.md": (published_models, recipe_to_embed),
    "docs/audio.md": (two_sound_files,),
    "docs/tour.md": (chunks, sound, no_names, sound, spectral, lanes),
    "docs/tensorflow.md": (graphs, spotter, graph_of_x, no_names, own_operator),
}
"""Page -> setups of its blocks; names that a block leaves stay for the next."""

ELSEWHERE = {
    "bench/README.md": "tests/bench/models/test_user_model.py",
    "docs/extend.md": "tests/pulse/extend/test_extend.py",
    "docs/fleet.md": "tests/streaming/fleet/test_page.py",
    "docs/pytorch.md": "tests/pulse/torch/test_page.py",  # with a codec of its author
    "docs/serve.md": "tests/streaming/serve/test_page.py",
    "docs/protocol.md": "tests/streaming/client/test_clients.py",
    "docs/threads.md": "tests/pulse/program/machine/test_threads.py",  # with as many cores as it needs
    "docs/specialised_kernels.md": "tests/pulse/program/specialise/test_specialised_kernels.py",  # takes seconds
}
"""Pages whose blocks are run by other tests."""
