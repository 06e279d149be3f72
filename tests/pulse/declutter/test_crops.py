"""Slices of padded and joined tensors, whose dropped frames are not added."""

import numpy as np
import pytest

import pulse
from pulse.dim import dim_max
from pulse.ops.concat import Concat
from pulse.ops.elementwise import Elementwise
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.ops.shape import Transpose
from pulse.ops.slice import Slice
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops
from tests.pulse.model_builder import pads_of


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize(
    ("start", "end", "step", "left"),
    [
        pytest.param("2", "T+2", 1, [], id="both sides"),
        pytest.param("3", "T+1", 1, ["Slice"], id="also frames of x"),
        pytest.param("0", "T+2", 1, ["2:0"], id="the end"),
        pytest.param("1", "T+4", 1, ["1:2"], id="some of the start"),
        pytest.param("1", "T+3", 1, ["1:1"], id="some of both"),
        pytest.param("1", "T+2", 2, ["1:0", "Slice"], id="every other frame"),
        pytest.param("0", "T+4", 2, ["2:2", "Slice"], id="nothing"),
    ],
)
def test_a_slice_shortens_the_padding_before_it(
    mode: PadMode, start: str, end: str, step: int, left: list[str]
) -> None:
    small = SmallModel()
    padded = small.add("pad", Pad(pads_of((0, 0), (0, 0), (2, 2)), mode), small.x)
    model = small.model(small.add("y", Slice(2, small.dim(start), small.dim(end), step), padded))
    result, fired = declutter_and_compare(model)
    assert fired["crop"] == (left != ["2:2", "Slice"])
    nodes = [node for node in result.graph.nodes if node.op.name in ("Pad", "Slice")]
    assert len(nodes) == len(left)
    for node, word in zip(nodes, left):
        assert word == node.op.name or f"0:0 {word} {mode}" in node.op.detail()


@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        pytest.param("2", "T+2", [], id="the second part alone"),
        pytest.param("4", "T+2", ["Slice"], id="a slice of the second part"),
        pytest.param("2", "T+5", ["Concat"], id="the last two parts"),
        pytest.param("1", "T+2", ["Concat", "Slice"], id="the first two parts"),
        pytest.param("0", "T+4", ["Concat", "Slice"], id="some of all parts"),
    ],
)
def test_a_slice_leaves_parts_of_a_join_out(start: str, end: str, left: list[str]) -> None:
    small = SmallModel()
    head, tail = np.ones((1, 4, 2), np.float32), np.full((1, 4, 3), 2, np.float32)
    joined = small.add("join", Concat(2), head, small.x, tail)
    model = small.model(small.add("y", Slice(2, small.dim(start), small.dim(end)), joined))
    result, fired = declutter_and_compare(model)
    assert fired["crop"] == (end != "T+4")
    assert ops(result) == left


@pytest.mark.parametrize("transposed", [False, True])
def test_a_slice_drops_frames_that_come_from_the_other_end(transposed: bool) -> None:
    """A circular shift by two frames: the first two are the last ones, fewer if the stream is shorter."""
    small = SmallModel()
    last = small.add("last", Slice(2, dim_max(0, small.dim("T-2")), small.dim("T")), small.x)
    others = small.add("others", Slice(2, small.dim("0"), dim_max(0, small.dim("T-2"))), small.x)
    y = small.add("join", Concat(2), last, others)
    if transposed:
        y = small.add("turned", Transpose((2, 1, 0)), y)
    model = small.model(small.add("y", Slice(0 if transposed else 2, small.dim("2"), small.dim("T")), y))
    result, fired = declutter_and_compare(model)
    assert fired["crop"] == 1 + transposed
    assert "Concat" not in ops(result)
    pulse.verify(result, pulse=3, lengths=[1, 2, 3, 20]).require()


def test_a_padding_with_other_readers_is_not_copied() -> None:
    small = SmallModel()
    padded = small.add("pad", Pad(pads_of((0, 0), (0, 0), (2, 2))), small.x)
    cut = small.add("cut", Slice(2, small.dim("0"), small.dim("T+2")), padded)
    assert ops(declutter_and_compare(small.model(cut, padded))[0]) == ["Pad", "Slice"]


def test_differences_from_the_previous_frame_have_no_delay() -> None:
    """The frame before the first one is a copy of it, and both slices of the joined frames begin at once."""
    small = SmallModel()
    first = small.add("first", Slice(2, small.dim("0"), small.dim("1")), small.x)
    joined = small.add("join", Concat(2), first, small.x)
    later = small.add("later", Slice(2, small.dim("1"), small.dim("T+1")), joined)
    earlier = small.add("earlier", Slice(2, small.dim("0"), small.dim("T")), joined)
    result, _ = declutter_and_compare(small.model(small.add("y", Elementwise("sub"), later, earlier)))
    assert result.pulsify(pulse=1).outputs[0].delay == 0
    pulse.verify(result, pulse=3).require()
