"""A model whose audio has several channels: a filter from each input channel to each output channel."""

from functools import cache
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import pulse
from pulse.facts import Array
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks.models import build

TAPS, AHEAD = 9, 3
"""The taps of each filter, and how many are ahead of a frame: the model's delay."""
LAYOUTS = ("1,C,T", "C,T", "1,T,C", "T,C")


def channel_mixer(inputs: int, outputs: int, layout: str = "1,C,T") -> ModelProto:
    """x -> y, both in this layout: filters with ``TAPS`` taps."""
    axes = layout.replace("1,", "")
    first = [node("Transpose", "x", "rows", perm=[1, 0])] if layout == "T,C" else []
    if layout == "1,T,C":
        first = [node("Transpose", "x", "whole", perm=[0, 2, 1])]
    elif layout != "1,C,T":
        first.append(node("Unsqueeze", "x zero" if axes == "C,T" else "rows zero", "whole"))
    last = {
        "1,C,T": [node("Identity", "mixed", "y")],
        "1,T,C": [node("Transpose", "mixed", "y", perm=[0, 2, 1])],
        "C,T": [node("Squeeze", "mixed zero", "y")],
        "T,C": [node("Squeeze", "mixed zero", "columns"), node("Transpose", "columns", "y", perm=[1, 0])],
    }[layout]
    mixing = node(
        "Conv", f"{'x' if layout == '1,C,T' else 'whole'} taps", "mixed", pads=[TAPS - 1 - AHEAD, AHEAD]
    )
    constants = {"taps": normal_noise(outputs, inputs, TAPS, seed=5) / 5, "zero": np.array([0])}

    def shape(channels: int) -> list[Any]:
        return [{"1": 1, "C": channels, "T": "T"}[axis] for axis in layout.split(",")]

    return build([*first, mixing, *last], {"x": shape(inputs)}, {"y": shape(outputs)}, constants)


@cache
def mixing_program(
    inputs: int, outputs: int, layout: str = "1,C,T", pulse_frames: int = 160, backend: str = "numba"
) -> Any:
    """The compiled model."""
    return pulse.load(channel_mixer(inputs, outputs, layout)).compile(pulse_frames, backend=backend)


def mixed_sound(sound: Array, outputs: int) -> Array:
    """Run the offline model: audio [frames, inputs] -> [frames, outputs]."""
    model = pulse.load(channel_mixer(sound.shape[1], outputs)).analyse()
    return model.run({"x": np.ascontiguousarray(sound.T)[None]})["y"][0].T


def two_input_mixer(layout: str = "1,C,T") -> ModelProto:
    """mic of two channels and far of one -> y of three, filters of all of them; mic and y in this layout."""
    mixer = channel_mixer(3, 3, layout)
    axis = layout.split(",").index("C")
    (x,) = mixer.graph.input
    far = type(x)()
    far.CopyFrom(x)
    x.name, far.name = "mic", "far"
    x.type.tensor_type.shape.dim[axis].dim_value = 2
    far.type.tensor_type.shape.dim[axis].dim_value = 1
    mixer.graph.input.append(far)
    mixer.graph.node.insert(0, node("Concat", "mic far", "x", axis=axis))
    return mixer


def stereo_separator(with_mix: bool) -> ModelProto:
    """x [1, 2, T] -> y [1, sources, 2, T], filters of x, and mix [1, 2, T], minus x."""
    model = channel_mixer(2, 4)
    model.graph.node[-1].CopyFrom(node("Reshape", "mixed sources", "y"))
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 2, 2, -1]), "sources"))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 2, "T"]))
    if with_mix:
        model.graph.node.append(node("Neg", "x", "mix"))
        model.graph.output.append(helper.make_tensor_value_info("mix", TensorProto.FLOAT, [1, 2, "T"]))
    return model
