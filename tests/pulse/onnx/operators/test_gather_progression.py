"""Lookups by evenly spaced indices are slices, and stream."""

import numpy as np
import pytest

import pulse
from pulse.ops.gather import Gather
from pulse.ops.slice_frames import Frames
from tests.pulse.cases.build import floats, model, node
from tests.pulse.onnx.reference import reference
from tests.pulse.ops.stream_proof import assert_streams


def unfold(starts: list[list[int]], stride: int, last: int) -> list:
    """Indices ``starts + j*stride`` while j*stride is less than T - last, as exporters of unfold write them."""
    return [
        node("Shape", "x", "dims"),
        node("Gather", "dims two", "length"),
        node("Sub", "length last", "limit"),
        node("Range", "zero limit stride", "range"),
        node("Unsqueeze", "range zeros", "row"),
        node("Add", "row starts", "indices"),
        node("Gather", "x indices", "y", axis=2),
    ], {
        "two": np.int64(2),
        "zero": np.int64(0),
        "zeros": np.array([0], np.int64),
        "stride": np.int64(stride),
        "last": np.int64(last),
        "starts": np.array(starts, np.int64),
    }


@pytest.mark.parametrize(
    ("starts", "stride", "last", "pulse_frames", "delay"),
    [
        ([[0]], 1, 0, 1, 0),
        ([[0], [1], [2]], 1, 2, 2, 2),
        ([[1], [0], [4]], 1, 4, 3, 4),
        ([[0], [2]], 2, 2, 4, 1),
    ],
)
def test_frames_unfolded_by_constants_stream_without_a_lookup(
    starts: list[list[int]], stride: int, last: int, pulse_frames: int, delay: int
) -> None:
    nodes, constants = unfold(starts, stride, last)
    for length in (last + 1, 9, 20):
        feeds = {"x": floats("x", 1, 3, length, 4)}
        typed = assert_streams(model(nodes, feeds, constants, 17, {"x": 2}), feeds, pulse_frames, delay)
        assert not any(isinstance(item.op, Gather) for item in typed.graph.nodes if item.outputs)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("length", [81, 200, 230])
def test_many_neighbours_are_frames(across: bool, length: int) -> None:
    """Windows of 80 frames, the windows first or last."""
    nodes, constants = unfold([[place] for place in range(1, 81)], 40, 80)
    if across:
        nodes[4] = node("Unsqueeze", "range ones", "row")
        constants |= {"ones": np.array([1], np.int64), "starts": constants["starts"].T}
    feeds = {"x": floats("x", 1, 3, length, 2)}
    typed = assert_streams(model(nodes, feeds, constants, 17, {"x": 2}), feeds, 40, 2)
    assert any(isinstance(item.op, Frames) for item in typed.graph.nodes if item.outputs)


@pytest.mark.parametrize(("mode", "delay"), [("reflect", 2), ("edge", 1), ("constant", 1)])
def test_frames_of_a_padded_signal_have_the_smallest_delay(mode: str, delay: int) -> None:
    """Windows of 16 frames by 4 of a signal with 8 frames added at both ends: a mirrored end needs the frame after."""
    nodes, constants = unfold([[place] for place in range(16)], 4, 15)
    nodes[0] = node("Shape", "padded", "dims")
    nodes[-1] = node("Gather", "padded indices", "y", axis=2)
    nodes.insert(0, node("Pad", "x ends", "padded", mode=mode))
    constants["ends"] = np.array([0, 0, 8, 0, 0, 0, 8, 0], np.int64)
    for length in (9, 32, 43):
        feeds = {"x": floats("x", 1, 3, length, 2)}
        typed = assert_streams(model(nodes, feeds, constants, 17, {"x": 2}), feeds, 4, delay)
        assert sum(isinstance(item.op, Frames) for item in typed.graph.nodes if item.outputs) == 1


@pytest.mark.parametrize(
    ("starts", "delay"), [([-1, 0, 1], 1), (list(range(-8, 4)), 3), ([-1], 0), ([-3, 0], 0)]
)
def test_limited_indices_repeat_the_ends(starts: list[int], delay: int) -> None:
    """Neighbours of each frame; beyond the ends, the first or the last frame."""
    nodes, constants = unfold([[start] for start in starts], 1, 0)
    nodes[5] = node("Add", "row starts", "places")
    nodes.insert(6, node("Sub", "length stride", "end"))
    nodes.insert(7, node("Clip", "places zero end", "indices"))
    for length in (1, 9, 20):
        feeds = {"x": floats("x", 1, 3, length, 4)}
        typed = assert_streams(model(nodes, feeds, constants, 17, {"x": 2}), feeds, 2, delay)
        assert not any(isinstance(item.op, Gather) for item in typed.graph.nodes if item.outputs)


@pytest.mark.parametrize(("low", "high"), [(1, 8), (0, 7), (-2, 8)])
def test_indices_limited_elsewhere_are_looked_up(low: int, high: int) -> None:
    nodes, constants = unfold([[-3], [0]], 1, 0)
    nodes[5:6] = [node("Add", "row starts", "places"), node("Clip", "places low high", "indices")]
    feeds = {"x": floats("x", 1, 3, 9, 4)}
    limits = {"low": np.int64(low), "high": np.int64(high)}
    proto = model(nodes, feeds, constants | limits, 17, {"x": 2})
    typed = pulse.load(proto).analyse()
    assert any(isinstance(item.op, Gather) for item in typed.graph.nodes)
    np.testing.assert_array_equal(typed.run(feeds)["y"], reference(proto, feeds)[0])


def test_many_neighbouring_features_are_a_view() -> None:
    """Windows of 9 of 24 features of each frame: one view in place of 9 copies."""
    rows = np.arange(16)[None] + np.arange(9)[:, None]
    feeds = {"x": floats("x", 1, 7, 24, 2)}
    proto = model([node("Gather", "x rows", "y", axis=2)], feeds, {"rows": rows}, 17, {"x": 1})
    typed = assert_streams(proto, feeds, 3, 0)
    assert sum(isinstance(item.op, Frames) for item in typed.graph.nodes if item.outputs) == 1


def test_indices_that_may_leave_the_tensor_are_looked_up() -> None:
    nodes, constants = unfold([[0], [3]], 1, 2)
    feeds = {"x": floats("x", 1, 3, 9, 4)}
    typed = pulse.load(model(nodes, feeds, constants, 17, {"x": 2})).analyse()
    assert any(isinstance(item.op, Gather) for item in typed.graph.nodes)


@pytest.mark.parametrize("length", [4, 7])
def test_indices_spaced_by_a_factor_follow_the_length(length: int) -> None:
    """Each pair of frames has two indices, ``2*j`` and ``2*j + 1``."""
    nodes = [
        node("Shape", "x", "dims"),
        node("Gather", "dims two", "length"),
        node("Div", "length two", "half"),
        node("Range", "zero half one", "range"),
        node("Mul", "range two", "even"),
        node("Gather", "x even", "y", axis=2),
    ]
    constants = {"two": np.int64(2), "zero": np.int64(0), "one": np.int64(1)}
    feeds = {"x": floats("x", 1, 3, length, 4)}
    proto = model(nodes, feeds, constants, 17, {"x": 2})
    output = pulse.load(proto).analyse().run(feeds)["y"]
    np.testing.assert_array_equal(output, reference(proto, feeds)[0])
    assert_streams(proto, feeds, 2)


@pytest.mark.parametrize("step", [1, 2])
def test_constant_rows_are_slices(step: int) -> None:
    """The rows are neighbouring features, as from an unfold over frequency."""
    rows = (np.arange(9) * step)[None] + np.array([[0], [2], [1]])
    feeds = {"x": floats("x", 1, 7, 24, 2)}
    proto = model([node("Gather", "x rows", "y", axis=2)], feeds, {"rows": rows}, 17, {"x": 1})
    typed = assert_streams(proto, feeds, 3, 0)
    assert not any(isinstance(item.op, Gather) for item in typed.graph.nodes)


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([0, 1], id="too few"),
        pytest.param(list(range(9, 0, -1)), id="reversed"),
        pytest.param([0, 1, 2, 3, 4, 5, 6, 8, 9], id="one skipped"),
        pytest.param([3] * 9, id="all equal"),
    ],
)
def test_other_constants_are_looked_up(rows: list[int]) -> None:
    feeds = {"x": floats("x", 1, 7, 24, 2)}
    proto = model([node("Gather", "x rows", "y", axis=2)], feeds, {"rows": np.array(rows)}, 17, {"x": 1})
    typed = assert_streams(proto, feeds, 3, 0)
    assert any(isinstance(item.op, Gather) for item in typed.graph.nodes)
