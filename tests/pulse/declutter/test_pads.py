"""Pads that the next op takes over, and those that it must not."""

import numpy as np
import pytest

from pulse.api import verify
from pulse.dim import TDim
from pulse.ops.concat import Concat
from pulse.ops.conv import Conv, ConvTranspose, Pads, no_pads
from pulse.ops.elementwise import Elementwise
from pulse.ops.op import PadMode
from pulse.ops.pad import Pad
from pulse.ops.pool import Pool
from pulse.ops.shape import Expand, Tile
from pulse.ops.slice import Slice
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops
from tests.pulse.model_builder import pads_of

W = np.arange(4 * 4 * 3, dtype=np.float32).reshape(4, 4, 3) / 50


TIME = pads_of((0, 0), (0, 0), (2, 1))


def test_zeros_in_time_join_a_convolution() -> None:
    small = SmallModel()
    padded = small.add("pad", Pad(TIME), small.x)
    y = small.add("conv", Conv((1,), (1,), pads_of((1, 0))), padded, W)
    result, fired = declutter_and_compare(small.model(y))
    assert fired == {"pad_into_window": 1}
    assert [node.name for node in result.graph.nodes] == ["x", "c", "conv"]
    assert "pads 3:1" in result.graph.node(result.graph.outputs[0]).op.detail()


@pytest.mark.parametrize(("amounts", "mode", "fill"), [
    pytest.param(TIME, "constant", 1.0, id="fill of 1"),
    pytest.param(TIME, "edge", 0.0, id="edge"),
    pytest.param(TIME, "reflect", 0.0, id="reflect"),
    pytest.param(pads_of((0, 0), (1, 1), (2, 0)), "constant", 0.0, id="channels"),
    pytest.param(pads_of((1, 0), (0, 0), (2, 0)), "constant", 0.0, id="batch"),
])  # fmt: skip
def test_other_pads_do_not_join_a_convolution(amounts: Pads, mode: PadMode, fill: float) -> None:
    small = SmallModel()
    padded = small.add("pad", Pad(amounts, mode, fill), small.x)
    channels = 4 + sum(map(int, amounts[1]))
    w = np.ones((2, channels, 3), np.float32)
    result, fired = declutter_and_compare(
        small.model(small.add("conv", Conv((1,), (1,), no_pads(1)), padded, w))
    )
    assert not fired
    assert ops(result) == ["Pad", "Conv"]


def test_pads_of_several_readers_or_deconvolutions_stay() -> None:
    small = SmallModel()
    padded = small.add("pad", Pad(TIME), small.x)
    y = small.add("conv", Conv((1,), (1,), no_pads(1)), padded, W)
    assert ops(declutter_and_compare(small.model(y, padded))[0]) == ["Pad", "Conv"]
    z = small.add("deconv", ConvTranspose((1,), (1,), no_pads(1), (0,)), padded, W)
    assert ops(declutter_and_compare(small.model(z))[0]) == ["Pad", "ConvTranspose"]


@pytest.mark.parametrize(("after", "left"), [
    pytest.param((), ["Concat", "Pad"], id="last"),
    pytest.param((-2.5,), ["Concat", "Pad"], id="more of it"),
    pytest.param((-2.5, 1.0), ["Concat", "Pad", "Concat"], id="other numbers"),
])  # fmt: skip
def test_joined_fill_of_any_length_is_a_padding(after: tuple[float, ...], left: list[str]) -> None:
    small = SmallModel()
    rest = small.add("rest", Expand((TDim.of(1), TDim.of(4), small.dim("(T+7)/8*8-T"))), -2.5)
    ones = np.ones((1, 4, 2), np.float32)
    y = small.add("joined", Concat(2), ones, small.x, rest, *(fill * ones for fill in after))
    result, fired = declutter_and_compare(small.model(y))
    assert fired["pad_with_joined_fill"] == 1
    assert ops(result) == left
    assert verify(result, 8, lengths=[6, 7, 8, 17], backend="numpy").require().equal


@pytest.mark.parametrize(("first", "last"), [(1, 0), (2, 0), (0, 1), (0, "(T+7)/8*8-T"), (2, 3)])
@pytest.mark.parametrize("tiled", [False, True])
def test_joined_copies_of_the_end_frames_are_a_padding(first: int, last: int | str, tiled: bool) -> None:
    small = SmallModel()
    size = small.dim("T")
    ends = [small.dim("0"), small.dim("1")], [size - 1, size]
    parts = [small.x]
    for place, count in enumerate((small.dim(str(first)), small.dim(str(last)))):
        if count == 0:
            continue
        frame = small.add(f"end{place}", Slice(2, *ends[place]), small.x)
        counts = (TDim.of(1), TDim.of(1 if tiled else 4), count)
        repeated = small.add(f"copies{place}", (Tile if tiled else Expand)(counts), frame)
        parts = [*parts, repeated] if place else [repeated, *parts]
    result, fired = declutter_and_compare(small.model(small.add("joined", Concat(2), *parts)))
    assert fired["pad_with_joined_edges"] == 1
    assert ops(result) == ["Pad"]
    assert verify(result, 8, lengths=[6, 7, 8, 17], backend="numpy").require().equal


@pytest.mark.parametrize(("mode", "added", "is_padding"), [
    pytest.param("edge", (3, 0), True, id="copies of the first frame"),
    pytest.param("edge", (3, 2), True, id="copies of both ends"),
    pytest.param("constant", (3, 0), True, id="zeros before"),
    pytest.param("constant", (0, 2), False, id="zeros after"),
])  # fmt: skip
def test_copies_of_the_end_of_a_padded_stream(
    mode: PadMode, added: tuple[int, int], is_padding: bool
) -> None:
    """The copies are of the last frame before the padding, which is the padded stream's if it adds none after."""
    small = SmallModel()
    padded = small.add("padded", Pad(pads_of((0, 0), (0, 0), added), mode), small.x)
    last = small.add("last", Slice(2, small.dim("T-1"), small.dim("T")), small.x)
    copies = small.add("copies", Expand((TDim.of(1), TDim.of(4), TDim.of(2))), last)
    result, fired = declutter_and_compare(small.model(small.add("joined", Concat(2), padded, copies)))
    assert fired["pad_with_joined_edges"] == is_padding
    if is_padding:
        assert verify(result, 8, lengths=[6, 7, 8, 17], backend="numpy").require().equal


@pytest.mark.parametrize(("count", "kept", "fires"), [(1, 1, True), (3, 3, True), (3, 2, False)])
def test_numbers_before_all_but_the_last_frames_are_a_shift(count: int, kept: int, fires: bool) -> None:
    """``cat([zeros_like(y[:count]), y[:-kept]])`` of frames y, which may be fewer than those."""
    small = SmallModel()
    y = small.add("even", Slice(2, small.dim("0"), small.dim("T"), 2), small.x)
    first = small.add("first", Expand((TDim.of(1), TDim.of(4), small.dim(f"min((T+1)/2,{count})"))), 2.0)
    rest = small.add("rest", Slice(2, small.dim("0"), small.dim(f"max((T+1)/2-{kept},0)")), y)
    result, fired = declutter_and_compare(small.model(small.add("joined", Concat(2), first, rest)))
    assert fired["shift_by_joined_fill"] == fires
    if fires:
        assert verify(result, 2, lengths=[1, 2, 6, 7, 17], backend="numpy").require().equal


def test_joined_copies_of_other_frames_stay() -> None:
    small = SmallModel()
    second = small.add("second", Slice(2, small.dim("1"), small.dim("2")), small.x)
    result, fired = declutter_and_compare(small.model(small.add("joined", Concat(2), second, small.x)))
    assert not fired
    assert ops(result) == ["Slice", "Concat"]


def test_joined_fill_before_the_stream_stays() -> None:
    small = SmallModel()
    rest = small.add("rest", Expand((TDim.of(1), TDim.of(4), small.dim("(T+7)/8*8-T"))), 0.0)
    result, fired = declutter_and_compare(small.model(small.add("joined", Concat(2), rest, small.x)))
    assert not fired
    assert ops(result) == ["Expand", "Concat"]


@pytest.mark.parametrize(("kind", "fill", "folds"), [
    ("max", -np.inf, True),
    ("max", 0.0, False),
    ("average", 0.0, False),
    ("average", -np.inf, False),
    ("sum", 0.0, False),
])  # fmt: skip
def test_only_pads_of_minus_infinity_join_a_pool_of_maxima(kind: str, fill: float, folds: bool) -> None:
    small = SmallModel()
    small.x = small.add("bounded", Elementwise("tanh"), small.x)
    padded = small.add("pad", Pad(TIME, fill=fill), small.x)
    y = small.add("pool", Pool(kind, (4,), (2,), (1,), no_pads(1)), padded)
    result, fired = declutter_and_compare(small.model(y))
    assert fired == ({"pad_into_window": 1} if folds else {})
    assert ops(result) == (["tanh", "Pool"] if folds else ["tanh", "Pad", "Pool"])


def test_joined_negative_zeros_stay() -> None:
    """A padding of zeros would lose their sign, which a quotient shows."""
    small = SmallModel()
    rest = small.add("rest", Expand((TDim.of(1), TDim.of(4), small.dim("(T+7)/8*8-T"))), -0.0)
    y = small.add("quotient", Elementwise("reciprocal"), small.add("joined", Concat(2), small.x, rest))
    result, fired = declutter_and_compare(small.model(y))
    assert not fired
    assert ops(result) == ["Expand", "Concat", "reciprocal"]
