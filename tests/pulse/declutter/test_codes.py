"""Floats that are quantised and read back stay floats; where a code may differ from its float, it is stored."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pulse.declutter.codes import CODES
from pulse.dim import TDim
from pulse.errors import FaultError
from pulse.facts import DType
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.shape import Transpose
from pulse.ops.slice import Slice
from pulse.program.compiler import compile_model
from tests.backends import BACKENDS
from tests.pulse.declutter.decluttered_models import SmallModel, declutter_and_compare, ops

F = np.float32
U8 = (0, 255)


def number(value: float) -> np.ndarray:
    return np.array(value, F)


def quantise(small: SmallModel, dtype: DType, bounds: Sequence[float], zero: float = 0.0) -> OutletId:
    """The codes of x / 0.1."""
    y = small.add(
        "rounded", Elementwise("round"), small.add("scaled", Elementwise("div"), small.x, number(0.1))
    )
    if zero:
        y = small.add("moved", Elementwise("add"), y, number(zero))
    low, high = bounds
    y = small.add("above", Elementwise("max"), y, number(low))
    return small.add("codes", Cast(dtype), small.add("below", Elementwise("min"), y, number(high)))


def read_back(small: SmallModel, codes: OutletId, zero: float = 0.0) -> OutletId:
    y = small.add("wide", Cast(np.dtype(F)), codes)
    if zero:
        y = small.add("centred", Elementwise("sub"), y, number(zero))
    return small.add("y", Elementwise("mul"), y, number(0.1))


def of_codes(fired: Mapping[str, int]) -> list[str]:
    """The rewrites of codes that were applied, each once."""
    applied = sorted(name for name in fired if name in {rewrite.name for rewrite in CODES})
    assert all(fired[name] == 1 for name in applied)
    return applied


@pytest.mark.parametrize(
    ("dtype", "bounds", "zero", "limits"),
    [
        (np.uint8, U8, 0, (0, 255)),
        (np.uint8, U8, 128, (-128, 127)),
        (np.int8, (-127, 127), 0, (-127, 127)),
        (np.int16, (-32768, 32767), -5, (-32763, 32772)),
    ],
)
def test_codes_that_are_read_back_stay_floats(
    dtype: type, bounds: tuple[int, int], zero: int, limits: tuple[int, int]
) -> None:
    small = SmallModel()
    y = read_back(small, quantise(small, np.dtype(dtype), bounds, zero), zero)
    result, fired = declutter_and_compare(small.model(y))
    assert of_codes(fired) == (["float_codes", "zero_point"] if zero else ["float_codes"])
    assert ops(result) == ["div", "round_within", "RangeCheck", "mul"]
    (rounding,) = (node.op for node in result.graph.nodes if node.op.name == "round_within")
    assert isinstance(rounding, Elementwise)
    assert rounding.params == limits


def test_parts_of_codes_are_parts_of_the_floats() -> None:
    """Both halves of the channels are read back, the second one transposed."""
    small = SmallModel()
    codes = quantise(small, np.dtype(np.uint8), U8, 3)
    halves = [
        small.add(f"half{start}", Slice(1, TDim.of(start), TDim.of(start + 2)), codes) for start in (0, 2)
    ]
    turned = small.add("turned", Transpose((0, 2, 1)), halves[1])
    floats = [small.add(f"y{i}", Cast(np.dtype(F)), half) for i, half in enumerate((halves[0], turned))]
    result, fired = declutter_and_compare(small.model(*floats))
    assert fired["floats_before_view"] >= 2
    assert fired["float_codes"] == 1
    assert "Cast" not in ops(result)


def test_another_zero_point_is_subtracted() -> None:
    small = SmallModel()
    y = read_back(small, quantise(small, np.dtype(np.uint8), U8, 3), 5)
    result, fired = declutter_and_compare(small.model(y))
    assert of_codes(fired) == ["float_codes"]
    assert ops(result) == ["div", "round_within", "RangeCheck", "add", "sub", "mul"]


@pytest.mark.parametrize(
    ("dtype", "bounds", "zero"),
    [
        pytest.param(np.int8, U8, 0, id="codes wrap around"),
        pytest.param(np.uint8, (0, 254.5), 0, id="not whole"),
        pytest.param(np.uint8, (0, 255), 0.5, id="moved by a half"),
        pytest.param(np.int32, (0, 255), 0, id="32 bits"),
    ],
)
def test_codes_that_differ_from_their_floats_are_stored(
    dtype: type, bounds: tuple[float, float], zero: float
) -> None:
    small = SmallModel()
    y = read_back(small, quantise(small, np.dtype(dtype), bounds, zero), zero)
    result, fired = declutter_and_compare(small.model(y))
    assert not of_codes(fired)
    assert ops(result).count("Cast") == 2


def test_codes_that_something_else_reads_are_stored() -> None:
    small = SmallModel()
    codes = quantise(small, np.dtype(np.uint8), U8)
    result, fired = declutter_and_compare(small.model(read_back(small, codes), codes))
    assert not of_codes(fired)
    assert ops(result).count("Cast") == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_nan_is_still_a_fault_of_the_quantiser(backend: str) -> None:
    """NaN has no code; infinities are limited."""
    small = SmallModel("1,T,f32")
    y = read_back(small, quantise(small, np.dtype(np.uint8), U8, 128), 128)
    program = compile_model(small.model(y).declutter().pulsify(pulse=2), backend=backend)
    state = program.spawn()
    (ready,) = state.step(np.array([[np.inf, -0.26]], F)).values()
    np.testing.assert_allclose(ready, [[12.7, -0.3]], rtol=1e-6)
    with pytest.raises(
        FaultError, match=r"codes\.checked .*1 value of input 0: NaN, infinite, or more than u8 holds"
    ):
        state.step(np.array([[np.nan, 1.0]], F))
