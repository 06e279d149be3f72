"""Interpolation that PyTorch's exporter writes as lookups at computed positions."""

import numpy as np
import pytest

from pulse.api import verify
from pulse.declutter.interpolation import with_interpolation
from pulse.errors import PulsifyError
from pulse.facts import F32, F64, I64
from pulse.graph import OutletId
from pulse.models import TypedModel, model_of
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather import Gather
from pulse.ops.resize import Interpolate
from pulse.ops.shape import Transpose
from pulse.ops.source import Const
from pulse.ops.time_position import Range
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise
from tests.pulse.declutter.decluttered_models import SmallModel, ops


def read_interpolation(small: SmallModel, output: OutletId) -> TypedModel:
    """The model as it is read; its outputs are those before, but for the rounding of positions."""
    model = small.model(output)
    read = model_of(with_interpolation(model))
    for frames in (1, 2, 7, 30):
        x = normal_noise(1, 4, frames)
        assert_outputs_close(read.run(x), model.run(x), 1e-5, 1e-5)
    return read


def add(small: SmallModel, name: str, kind: str, *inputs: OutletId | float) -> OutletId:
    return small.add(name, Elementwise(kind), *inputs)


def size(small: SmallModel, text: str) -> OutletId:
    value = np.empty((), object)
    value[()] = small.dim(text)
    return small.add(f"size of {text}", Const(value))


def add_positions(
    small: SmallModel, length: str, scale: OutletId | float, is_centred: bool = True
) -> OutletId:
    """``max((j + 0.5) * scale - 0.5, 0)``, or ``j * scale``."""
    numbers = small.add("numbers", Cast(F32), small.add("range", Range(0, 1, small.dim(length), I64)))
    if not is_centred:
        return add(small, "scaled", "mul", numbers, scale)
    scaled = add(small, "scaled", "mul", add(small, "centred", "add", numbers, 0.5), scale)
    return add(small, "positions", "max", add(small, "shifted", "sub", scaled, 0.5), 0.0)


def add_lines(small: SmallModel, positions: OutletId, step: int = 1, limit: str = "T-1") -> OutletId:
    """Straight lines between frames, as the exporter writes them: time first, and last again."""
    time_first = small.add("time_first", Transpose((2, 0, 1)), small.x)
    whole = small.add("whole", Cast(I64), positions)
    following = add(small, "following", "add", whole, small.constant(np.array(step)))
    following = add(small, "at most the last", "min", following, size(small, limit))

    def look_up(name: str, indices: OutletId) -> OutletId:
        return small.add(
            f"{name}_moved", Transpose((1, 2, 0)), small.add(name, Gather(0), time_first, indices)
        )

    start, end = look_up("start", whole), look_up("end", following)
    share = add(small, "share", "sub", positions, small.add("whole_real", Cast(F32), whole))
    share = add(small, "share_1", "min", add(small, "share_0", "max", share, 0.0), 1.0)
    change = add(small, "change", "mul", add(small, "difference", "sub", end, start), share)
    return add(small, "lines", "add", start, change)


@pytest.mark.parametrize(("length", "scale"), [
    pytest.param("2*T", 1 / 2, id="twice"),
    pytest.param("3*T", 1 / 3, id="three times"),
    pytest.param("T/2", 2.0, id="half"),
    pytest.param("3*T/2", 2 / 3, id="three for two"),
])  # fmt: skip
@pytest.mark.parametrize("is_centred", [True, False], ids=["half pixel", "asymmetric"])
def test_lines_between_looked_up_frames_are_one_op(length: str, scale: float, is_centred: bool) -> None:
    small = SmallModel()
    model = read_interpolation(small, add_lines(small, add_positions(small, length, scale, is_centred)))
    assert ops(model) == ["Transpose", "Interpolate", "Transpose"]
    verify(model, pulse=4).require()


def test_a_factor_that_is_computed_from_lengths() -> None:
    small = SmallModel()
    top, bottom = (small.add(f"{text} real", Cast(F32), size(small, text)) for text in ("T", "3*T"))
    twice_top = add(small, "twice", "mul", top, 2.0)
    factor = add(small, "factor", "div", twice_top, bottom)
    model = read_interpolation(small, add_lines(small, add_positions(small, "3*T/2", factor)))
    resize = next(node.op for node in model.graph.nodes if isinstance(node.op, Interpolate))
    assert resize.ratio == 1.5
    verify(model, pulse=4).require()


def test_a_factor_that_differs_with_the_length_is_refused() -> None:
    small = SmallModel()
    top, bottom = (small.add(f"{text} real", Cast(F32), size(small, text)) for text in ("T", "2*T+1"))
    factor = add(small, "factor", "div", top, bottom)
    model = read_interpolation(small, add_lines(small, add_positions(small, "2*T", factor)))
    assert "Interpolate" not in ops(model)
    with pytest.raises(PulsifyError, match="depends on the length of the stream"):
        model.pulsify()


@pytest.mark.parametrize(("step", "limit"), [
    pytest.param(2, "T-1", id="the frame after the next"),
    pytest.param(1, "T-2", id="a frame before the last"),
])  # fmt: skip
def test_other_lookups_are_not_interpolation(step: int, limit: str) -> None:
    small = SmallModel()
    model = small.model(add_lines(small, add_positions(small, "2*T", 0.5), step, limit))
    assert with_interpolation(model) is model


@pytest.mark.parametrize(("length", "scale", "shift"), [
    pytest.param("2*T", 0.5, 0.5, id="twice, nearest exact"),
    pytest.param("3*T", 1 / 3, 0.5, id="three times, nearest exact"),
    pytest.param("4*T", 0.25, 0.0, id="four times"),
    pytest.param("T/2", 2.0, 0.5, id="half, nearest exact"),
])  # fmt: skip
def test_frames_at_the_whole_part_of_positions_are_resampled(length: str, scale: float, shift: float) -> None:
    small = SmallModel()
    numbers = small.add("range", Range(0, 1, small.dim(length), F32))
    if shift:
        numbers = add(small, "shifted", "add", numbers, shift)
    indices = small.add("indices", Cast(I64), add(small, "scaled", "mul", numbers, scale))
    model = read_interpolation(small, small.add("y", Gather(2), small.x, indices))
    assert ops(model) == ["Interpolate"]
    verify(model, pulse=4).require()


def test_positions_that_round_on_their_way_are_not_interpolation() -> None:
    """The positions, or the factor, are quotients of integers: ``j // 2 * 0.75``, and ``3*T // (2*T)``."""
    small = SmallModel()
    halves = add(
        small,
        "halves",
        "div",
        small.add("range", Range(0, 1, small.dim("2*T"), I64)),
        small.constant(np.array(2)),
    )
    scaled = add(small, "scaled", "mul", small.add("real", Cast(F32), halves), 0.75)
    model = small.model(small.add("y", Gather(2), small.x, small.add("whole", Cast(I64), scaled)))
    assert with_interpolation(model) is model
    small = SmallModel()
    quotient = add(small, "quotient", "div", size(small, "3*T"), size(small, "2*T"))
    factor = small.add("factor", Cast(F32), quotient)
    model = small.model(add_lines(small, add_positions(small, "T", factor)))
    assert with_interpolation(model) is model


def test_lookups_in_different_orders_are_not_interpolation() -> None:
    small = SmallModel("4,4,T,f32")
    positions = add_positions(small, "2*T", 0.5)
    whole = small.add("whole", Cast(I64), positions)
    following = add(small, "following", "add", whole, small.constant(np.array(1)))
    following = add(small, "at most the last", "min", following, size(small, "T-1"))
    start = small.add("start", Gather(2), small.x, whole)
    end = small.add("swapped", Transpose((1, 0, 2)), small.add("end", Gather(2), small.x, following))
    share = add(small, "share", "sub", positions, small.add("whole_real", Cast(F32), whole))
    change = add(small, "change", "mul", add(small, "difference", "sub", end, start), share)
    model = small.model(add(small, "y", "add", start, change))
    assert with_interpolation(model) is model


@pytest.mark.parametrize("scale", [0.9871234567, 0.7])
def test_steps_that_are_no_simple_fractions_stay(scale: float) -> None:
    small = SmallModel()
    numbers = small.add("range", Range(0, scale, small.dim("T"), F64))
    model = small.model(small.add("y", Gather(2), small.x, small.add("indices", Cast(I64), numbers)))
    assert with_interpolation(model) is model


@pytest.mark.parametrize(("length", "scale", "reason"), [
    pytest.param("3*T", 1 / 3, "f32 may round a whole number down", id="whole positions that f32 rounds"),
    pytest.param("2*T+9", 0.5, "the last positions are behind the last frame", id="beyond the last frame"),
])  # fmt: skip
def test_lookups_that_may_differ_stay(length: str, scale: float, reason: str) -> None:
    small = SmallModel()
    numbers = small.add("range", Range(0, 1, small.dim(length), F32))
    indices = small.add("indices", Cast(I64), add(small, "scaled", "mul", numbers, scale))
    model = small.model(small.add("y", Gather(2), small.x, indices))
    assert with_interpolation(model) is model, reason
