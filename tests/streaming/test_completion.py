"""Streams of models that take only multiples of a number of frames: wherever the input ends, zeros complete it.

The outputs are those of the input with the zeros, without as many frames at their end.
"""

from functools import cache
from pathlib import Path

import anyio
import numpy as np
import pytest
import soundfile
from onnx import ModelProto

import pulse as library
from pulse.errors import InputError
from pulse.facts import Array
from pulse.ops.elementwise import Elementwise
from pulse.ops.pad import Pad
from pulse.program.program import Program
from streaming import Session
from streaming.executor import Executor
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise
from tests.pulse.cases.build import model, node
from tests.pulse.model_builder import pads_of
from tests.streaming.command import pulse, report
from tests.streaming.executor.streams import blocks, collect, join_pieces
from tests.streaming.live.runs import runs
from tests.streaming.models import TypedBuilder, both_backends, cached_program, ending_model, two_rate_model

GROUP, PULSE, FRAMES = 8, 16, 51
"""The last group has 3 frames, the last pulse too."""


def grouping_model() -> ModelProto:
    """x [1, T] -> y [1, T] and mean [1, T/8]: each group of 8 frames times a matrix, and its mean."""
    weights = np.arange(GROUP * GROUP, dtype=np.float32).reshape(GROUP, GROUP) / 50
    nodes = [
        node("Reshape", "x groups", "in_groups"),
        node("MatMul", "in_groups weights", "mixed"),
        node("Reshape", "mixed flat", "y"),
        node("ReduceMean", "mixed", "mean", axes=[2], keepdims=0),
    ]
    shapes = {"groups": np.array([1, -1, GROUP]), "flat": np.array([1, -1])}
    example = np.zeros((1, 2 * GROUP), np.float32)
    return model(nodes, {"x": example}, {**shapes, "weights": weights}, stream={"x": 1}, outputs="y mean")


@cache
def grouping_program(backend: str = "numba") -> Program:
    return library.stream(grouping_model(), pulse=PULSE, backend=backend)


def expected_outputs(x: Array) -> dict[str, Array]:
    """The outputs for the input with zeros after it; y without as many frames."""
    zeros = -x.shape[1] % GROUP
    outputs = library.load(grouping_model()).analyse().run(np.pad(x, ((0, 0), (0, zeros))))
    return {"y": outputs["y"][:, : x.shape[1]], "mean": outputs["mean"]}


@both_backends
@pytest.mark.parametrize("frames", [FRAMES, 48, 47, 1, 7, 0, PULSE - 1])
def test_a_session_completes_its_last_group(frames: int, backend: str) -> None:
    session, x = Session(grouping_program(backend)), normal_noise(1, frames)
    pieces = [session.push(x), session.flush(complete=True)]
    assert_outputs_close(join_pieces(pieces, session.program), expected_outputs(x))
    assert session.completed_frames == -frames % GROUP
    assert session.frames_in == frames


def test_a_session_completes_only_on_request() -> None:
    session, x = Session(grouping_program()), normal_noise(1, FRAMES)
    first = session.push(x)
    with pytest.raises(InputError, match=r"51 frames of T .* the model needs: .*complete=True of flush"):
        session.flush()
    assert_outputs_close(
        join_pieces([first, session.flush(complete=True)], session.program), expected_outputs(x)
    )


def test_a_declared_multiple_is_completed_too() -> None:
    """The shape says what the model takes; then no length of the stream has 51 frames."""
    builder = TypedBuilder()
    x = builder.source("x", f"1,{GROUP}*(T/{GROUP}),f32")
    session = Session(builder.finish(y=x).pulsify(pulse=PULSE).compile("numpy"))
    session.push(normal_noise(1, FRAMES))
    with pytest.raises(
        InputError, match=r"x has 51 frames, but the model takes 8\*\(T/8\) of them: end after 48 or 56"
    ):
        session.flush()
    assert session.flush(complete=True)["y"].shape == (1, FRAMES - FRAMES // PULSE * PULSE)


def test_a_restored_session_has_not_been_completed() -> None:
    session, x = Session(grouping_program()), normal_noise(1, 40)
    snapshot = session.snapshot()
    session.push(x[:, : FRAMES - 14])
    session.flush(complete=True)
    session.restore(snapshot)
    assert session.completed_frames == 0
    pieces = [session.push(x[:, :20]), session.push(x[:, 20:]), session.flush()]
    assert_outputs_close(join_pieces(pieces, session.program), expected_outputs(x))


@both_backends
def test_an_input_shorter_than_the_stream_is_not_completed(backend: str) -> None:
    """An input of T - 3 frames, and three before it: 14 frames are a stream of 17, and nothing is left out."""
    builder = TypedBuilder()
    x = builder.source("x", "1,T-3,f32")
    padded = builder.wire("padded", Pad(pads_of((0, 0), (3, 0))), x)
    y = builder.wire("y", Elementwise("mul"), padded, builder.constant("two", [[2.0]]))
    session = Session(builder.finish(y=y).pulsify(pulse=4).compile(backend))
    frames = normal_noise(1, 14)
    pieces = [session.push(frames), session.flush(complete=True)]
    assert session.completed_frames == 0
    expected = {"y": 2 * np.pad(frames, ((0, 0), (3, 0)))}
    assert_outputs_close(join_pieces(pieces, session.program), expected)


@pytest.mark.parametrize("frames", [99, 101, 203])
def test_an_output_of_limited_length_keeps_its_frames(frames: int) -> None:
    """The zeros are beyond its end, so that it leaves out none."""
    nodes = [
        node("Reshape", "x groups", "in_groups"),
        node("Reshape", "in_groups flat", "y"),
        node("Slice", "y first last axis", "head"),
    ]
    numbers = {"first": np.array([0]), "last": np.array([100]), "axis": np.array([1])}
    shapes = {"groups": np.array([1, -1, GROUP]), "flat": np.array([1, -1])}
    example = np.zeros((1, 2 * GROUP), np.float32)
    proto = model(nodes, {"x": example}, {**shapes, **numbers}, stream={"x": 1}, outputs="y head")
    session, x = Session(library.stream(proto, pulse=PULSE)), normal_noise(1, frames)
    outputs = join_pieces([session.push(x), session.flush(complete=True)], session.program)
    assert_outputs_close(outputs, {"y": x, "head": x[:, :100]})


def slow_and_fast(rate: str) -> Session:
    """x [1, T], where T is a multiple of 8, and y [1, rate], as they are."""
    builder = TypedBuilder()
    builder.scope.assume("T-8*(T/8)==0")
    x, y = builder.source("x", "1,T,f32"), builder.source("y", f"1,{rate},f32")
    one = builder.constant("one", [[1.0]])
    u, v = (builder.wire(name, Elementwise("mul"), wire, one) for name, wire in (("u", x), ("v", y)))
    return Session(builder.finish(u=u, v=v).pulsify(pulse=8).compile("numpy"))


def test_inputs_of_several_rates_are_completed_together() -> None:
    session = slow_and_fast("T/8")
    x, y = normal_noise(1, FRAMES), normal_noise(1, 6, seed=1)
    outputs = join_pieces([session.push({"x": x, "y": y}), session.flush(complete=True)], session.program)
    assert session.completed_frames == 5
    assert_outputs_close(outputs, {"u": x, "v": np.pad(y, ((0, 0), (0, 1)))})


@pytest.mark.parametrize("frames", [49, 53])
def test_inputs_that_end_within_a_group_must_end_together(frames: int) -> None:
    session = slow_and_fast("T")
    session.push({"x": normal_noise(1, FRAMES), "y": normal_noise(1, frames)})
    with pytest.raises(InputError, match="the inputs end at different times"):
        session.flush(complete=True)


def test_short_streams_and_unequal_inputs_are_not_completed() -> None:
    session = Session(cached_program(ending_model, 4, "numpy"))
    session.push(normal_noise(1, 2))
    with pytest.raises(InputError, match=r"2 frames of T does not satisfy \(T>=3\)"):
        session.flush(complete=True)
    session = Session(cached_program(two_rate_model, 2, "numpy"), {"gain": np.ones((1, 1, 1), np.float32)})
    session.push({"fast": normal_noise(1, 1, 12), "slow": normal_noise(1, 1, 2)})
    with pytest.raises(InputError, match="the inputs end at different times"):
        session.flush(complete=True)


@both_backends
def test_an_executor_completes_its_streams(backend: str) -> None:
    """The engine is the one of its backend."""

    async def run() -> list[dict[str, Array]]:
        async with (
            Executor(program) as executor,
            executor.stream(blocks(x, 1, (20,))) as stream,
        ):
            return await collect(stream)

    program, x = grouping_program(backend), normal_noise(1, FRAMES)
    assert_outputs_close(join_pieces(anyio.run(run), program), expected_outputs(x))


def test_a_live_run_completes_its_stream() -> None:
    x = normal_noise(FRAMES, 1)
    with runs(grouping_program(), block=FRAMES, records=True) as (host, live):
        host.run(x)
    assert_outputs_close(live.outputs.flush()[0], expected_outputs(x.T))


def test_a_file_is_completed_and_keeps_its_length(tmp_path: Path) -> None:
    paths = tmp_path / "model.onnx", tmp_path / "in.wav", tmp_path / "out.wav", tmp_path / "mean.npy"
    paths[0].write_bytes(grouping_model().SerializeToString())
    x = 0.05 * normal_noise(1, FRAMES)
    soundfile.write(paths[1], x[0], 16_000, subtype="FLOAT")
    routes = "--out", f"y={paths[2]}", "--out", f"mean={paths[3]}"
    assert report("run", paths[0], paths[1], *routes, "--pulse", PULSE)["completed_frames"] == 5
    outputs = {"y": soundfile.read(paths[2], dtype="float32")[0][None], "mean": np.load(paths[3])}
    assert_outputs_close(outputs, expected_outputs(x))
    text = pulse("run", paths[0], paths[1], paths[2], "--pulse", PULSE).output
    assert "5 frames of zeros follow the last one" in text
