"""Writes to neighbouring frames of a stream, as PyTorch's exporters write ``y[..., a:b] = z``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, NodeProto

import pulse
from tests.noise import next_noise
from tests.pulse.cases.build import ints, model, node

END = np.iinfo(np.int64).max
RAMP = np.linspace(1, 0, 3, dtype=np.float32)
PARTS = [
    pytest.param(-3, END, 3, id="last frames"),
    pytest.param(3, 6, 0, id="inner frames"),
    pytest.param(0, 3, 0, id="first frames"),
    pytest.param(2, -2, 2, id="all but some"),
]


def positions(start: int, end: int) -> list[NodeProto]:
    """The nodes of ``places``: the frames of x from ``start`` to ``end``, as a vector."""
    return [
        node("Shape", "x", "sizes"),
        node("Gather", "sizes last", "length", axis=0),
        node("Range", "zero length one", "every"),
        node("Slice", "every from to first_axis", "places"),
    ]


def written_by_rows(updates: Sequence[NodeProto], start: int, end: int, **constants: Any) -> ModelProto:
    """Rows of a transposed x are written, as the newer exporter does; ``updates`` makes z from ``part``, x's frames."""
    nodes = [
        *positions(start, end),
        node("Unsqueeze", "places last_axis", "indices"),
        node("Slice", "x from to third_axis", "part"),
        node("Shape", "part", "part_sizes"),
        *updates,
        node("Transpose", "z", "rows", perm=[2, 1, 0]),
        node("Transpose", "x", "turned", perm=[2, 1, 0]),
        node("ScatterND", "turned indices rows", "written"),
        node("Transpose", "written", perm=[2, 1, 0]),
    ]
    return model(
        nodes, {"x": np.zeros((1, 2, 9), np.float32)}, bounds(start, end) | constants, stream={"x": 2}
    )


def bounds(start: int, end: int) -> dict[str, Any]:
    return {
        "last": np.array(2),
        "zero": np.array(0),
        "one": np.array(1),
        "from": ints(start),
        "to": ints(end),
        "first_axis": ints(0),
        "third_axis": ints(2),
        "last_axis": ints(-1),
    }


def prove(proto: ModelProto, start: int, end: int, written: Any, delay: int, shortest: int) -> None:
    """Compare with numpy, and the stream with the whole; ``written`` makes the new frames from the old ones."""
    typed = pulse.load(proto).analyse().declutter()
    rng = np.random.default_rng(0)
    for length in range(shortest, 12):
        x = next_noise(rng, 1, 2, length)
        y = x.copy()
        y[..., start:end] = written(y[..., start:end])
        np.testing.assert_array_equal(next(iter(typed.run({"x": x}).values())), y)
    assert typed.pulsify(pulse=1).outputs[0].delay == delay
    for size in (1, 4):
        pulse.verify(typed, pulse=size, lengths=[*range(shortest, 12), 40]).require()


@pytest.mark.parametrize(("start", "end", "delay"), PARTS)
def test_a_number_is_written_to_neighbouring_frames(start: int, end: int, delay: int) -> None:
    """The stream may be shorter than what is written."""
    fill = [node("Expand", "number part_sizes", "z")]
    proto = written_by_rows(fill, start, end, number=np.float32(0.5))
    prove(proto, start, end, lambda part: np.full_like(part, 0.5), delay, 1)


@pytest.mark.parametrize(("start", "end", "delay"), PARTS[:3])
def test_frames_are_multiplied_by_a_table(start: int, end: int, delay: int) -> None:
    """A fade at the end or at the start."""
    proto = written_by_rows([node("Mul", "part ramp", "z")], start, end, ramp=RAMP)
    prove(proto, start, end, lambda part: part * RAMP, delay, 6 if start == 3 else 3)


def test_later_frames_are_copied_to_earlier_ones() -> None:
    copy = [node("Slice", "x copied_from copied_to third_axis", "z")]
    proto = written_by_rows(copy, 3, 5, copied_from=ints(5), copied_to=ints(7))
    typed = pulse.load(proto).analyse().declutter()
    x = next_noise(np.random.default_rng(0), 1, 2, 20)
    y = x.copy()
    y[..., 3:5] = x[..., 5:7]
    np.testing.assert_array_equal(next(iter(typed.run({"x": x}).values())), y)
    assert typed.pulsify(pulse=1).outputs[0].delay == 2
    pulse.verify(typed, pulse=3, lengths=[7, 8, 9, 40]).require()


@pytest.mark.parametrize(("start", "end", "delay"), PARTS)
def test_one_channel_is_written_by_indices_of_all_axes(start: int, end: int, delay: int) -> None:
    """The older exporter writes a column of indices for each axis."""
    columns = [
        node("Unsqueeze", "places grid_axes", "frames"),
        node("Shape", "frames", "grid"),
        node("Expand", "zero grid", "batches"),
        node("Expand", "one grid", "channels"),
        node("Concat", "batches channels frames", "indices", axis=-1),
        node("Slice", "x from to third_axis", "part"),
        node("Gather", "part channel", "one_channel", axis=1),
        node("Shape", "one_channel", "update_sizes"),
        node("Expand", "number update_sizes", "z"),
        node("ScatterND", "x indices z"),
    ]
    constants = {"grid_axes": ints(0, 1, 3), "channel": ints(1), "number": np.float32(0.5)}
    x = {"x": np.zeros((1, 2, 9), np.float32)}
    proto = model([*positions(start, end), *columns], x, bounds(start, end) | constants, stream={"x": 2})

    def write_half(part: np.ndarray) -> np.ndarray:
        return np.concatenate([part[:, :1], np.full_like(part[:, 1:], 0.5)], 1)

    prove(proto, start, end, write_half, delay, 1)


def test_constant_indices_inside_a_stream_choose_by_position() -> None:
    """The stream must have the written frame, as the operator itself requires."""
    constants = {"indices": np.array([[3]]), "rows": np.full((1, 2), 7, np.float32)}
    nodes = [node("ScatterND", "x indices rows")]
    proto = model(nodes, {"x": np.zeros((9, 2), np.float32)}, constants, stream={"x": 0})
    typed = pulse.load(proto).analyse().declutter()
    x = next_noise(np.random.default_rng(0), 12, 2)
    y = x.copy()
    y[3] = 7
    np.testing.assert_array_equal(next(iter(typed.run({"x": x}).values())), y)
    assert typed.pulsify(pulse=1).outputs[0].delay == 0
    report = pulse.verify(typed, pulse=2, lengths=[3, 4, 5, 12])
    assert report.require().skipped == (3,)
