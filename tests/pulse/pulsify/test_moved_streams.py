"""Operators that read a stream which is late, early or cut short."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.errors import PulsifyError
from pulse.facts import Array, TypedFact
from pulse.models import PulsedModel
from pulse.onnx.write.model import to_onnx
from pulse.ops.op import Env, Op, Relation, Window
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.pulsify.driver import pulsify
from pulse.runtimes.onnx_runtimes import RuntimeProgram
from tests.backends import BACKENDS
from tests.invariants.operator_cases import compare_programs
from tests.pulse.cases.build import floats, model, node
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.onnx.write.file_proof import reopen


def programs(pulsed: PulsedModel) -> list[Program]:
    """Both backends, the file in onnxruntime, and the file read back."""
    proto = to_onnx(pulsed)
    return [
        *(compile_model(pulsed, backend) for backend in BACKENDS),
        RuntimeProgram(pulsed, proto),
        *(compile_model(reopen(proto), backend) for backend in BACKENDS),
    ]


def model_of_groups(frames: int, pads: tuple[int, int], kernel: int = 3) -> ModelProto:
    """A convolution of x [1, 1, T], and its frames in groups."""
    return model(
        [node("Conv", "x w", "c", pads=list(pads)), node("Reshape", "c shape")],
        {"x": floats("x", 1, 1, 12)},
        {"w": floats("w", 1, 1, kernel), "shape": np.array([1, 1, -1, frames])},
        stream={"x": 2},
    )


@pytest.mark.parametrize("frames", [2, 3, 4])
@pytest.mark.parametrize("pads", [(1, 1), (2, 0), (0, 2)])
@pytest.mark.parametrize("times", [1, 3])
def test_groups_that_do_not_begin_with_a_pulse_are_late_by_one(
    frames: int, pads: tuple[int, int], times: int
) -> None:
    """A late stream delays them by one group; one whose prefix makes up for it, not at all."""
    pulsed = pulsify(pulse.load(model_of_groups(frames, pads)).analyse(), pulse=frames * times)
    assert pulsed.port("y").delay == (0 if pads == (2, 0) else 1)
    compiled = programs(pulsed)
    for length in range(frames, 6 * frames + 1, frames):
        assert compare_programs(pulsed.typed, compiled, {"x": floats(length, 1, 1, length)}, length)


@pytest.mark.parametrize("before", [1, 2, 3, 5])
def test_groups_known_before_the_stream_are_a_prefix(before: int) -> None:
    """Frames before a split: whole groups of them are a prefix, the rest is history."""
    typed = pulse.load(model_of_groups(2, (before, 0), kernel=1), inputs={"x": "1,1,T,f32"}).analyse()
    pulsed = pulsify(typed, pulse=2)
    compiled = programs(pulsed)
    for length in range(1, 12):
        if (length + before) % 2 == 0:
            assert compare_programs(typed, compiled, {"x": floats(length, 1, 1, length)}, length)


CUTS = ((0, 2, 2), (2, 0, 0), (2, 2, 0), (3, 5, 2), (0, 0, 0))
"""Frames before x, frames cut from its end, and the delay of an output that waits for frames to be sure."""


def recurrent_model(before: int, cut: int, outputs: str) -> ModelProto:
    """A recurrent layer over x [T, 1, 2] with frames before it and without its last ones."""
    constants = {
        "front": floats("front", before, 1, 2),
        "start": np.array([0]),
        "end": np.array([-cut if cut else 1 << 40]),
        "w": floats("w", 1, 3, 2),
        "r": floats("r", 1, 3, 3),
    }
    nodes = [
        node("Concat", "front x", "padded", axis=0),
        node("Slice", "padded start end start", "moved"),
        node("RNN", "moved w r", "y h", hidden_size=3),
    ]
    return model(nodes, {"x": floats("x", 8, 1, 2)}, constants, stream={"x": 0}, outputs=outputs)


@pytest.mark.parametrize(("before", "cut", "delay"), CUTS)
@pytest.mark.parametrize("times", [1, 3])
def test_an_output_state_waits_until_its_frames_surely_exist(
    before: int, cut: int, delay: int, times: int
) -> None:
    """The state takes each frame when that surely exists, which costs nothing where only the frames are outputs."""
    pulsed = pulsify(pulse.load(recurrent_model(before, cut, "y h")).analyse(), pulse=times)
    assert pulsed.port("y").delay == delay
    compiled = programs(pulsed)
    for length in range(max(1, cut - before), 12):
        assert compare_programs(pulsed.typed, compiled, {"x": floats(length, length, 1, 2)}, length)
    frames_alone = pulsify(pulse.load(recurrent_model(before, cut, "y")).analyse(), pulse=times)
    assert frames_alone.port("y").delay == 0


@dataclass(frozen=True)
class TurnedPairs(Op):
    """The frames of each pair along axis 2 in the other order; it takes whole pairs only."""

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        (x,) = inputs
        return [TypedFact(x.dtype, (*x.shape[:2], x.shape[2] // 2 * 2))]

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        (x,) = inputs
        frames = x.shape[2] // 2 * 2
        pairs = x[:, :, :frames].reshape(*x.shape[:2], frames // 2, 2)
        return [pairs[..., ::-1].reshape(*x.shape[:2], frames)]

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return Window(2, span=2, stride=2, up=2, op=self)


@pytest.mark.parametrize(("pads", "delay"), [((0, 0), 0), ((1, 1), 2), ((2, 0), 0)])
def test_a_pulse_has_whole_groups_even_if_every_rate_is_one(pads: tuple[int, int], delay: int) -> None:
    """Pairs need an even pulse, though two frames become two."""
    builder = ModelBuilder(x="1,2,T")
    x = builder.conv(builder["x"], 3, pads) if any(pads) else builder["x"]
    typed = builder.model(builder.add("turned", TurnedPairs(), x))
    pulsed = pulsify(typed)
    assert (pulsed.pulse, pulsed.outputs[0].delay) == (2, delay)
    for wrong, instead in ((1, "use 2"), (3, "use 2 or 4")):
        message = rf"turned \(TurnedPairs\): pulse {wrong} makes {wrong}/2 groups of 2 frames .*: {instead}$"
        with pytest.raises(PulsifyError, match=message):
            pulsify(typed, pulse=wrong)
    for times in (1, 2, 3):
        compiled = [compile_model(pulsify(typed, pulse=2 * times), "numpy")]
        assert all(
            compare_programs(typed, compiled, {"x": floats(length, 1, 2, length)}, length)
            for length in range(1, 12)
        )
