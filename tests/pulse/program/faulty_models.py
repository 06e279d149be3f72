"""Models of one op with a value of its input for which it has no result."""

from collections.abc import Callable

import numpy as np

from pulse.facts import Array
from pulse.models import TypedModel
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.gather import Gather
from pulse.ops.gather_elements import GatherBatches, GatherElements
from pulse.ops.scatter import ScatterElements
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from pulse.pulsify.driver import pulsify
from tests.backends import BACKENDS
from tests.pulse.model_builder import ModelBuilder

I64, I32, U8, F32 = (np.dtype(kind) for kind in (np.int64, np.int32, np.uint8, np.float32))
ROWS = 7
Feeds = dict[str, Array]
Case = tuple[TypedModel, Feeds, int | float]
"""A model whose node ``the`` has no result for one value of its input ``i``, inputs that are well, that value."""

CASES: dict[str, Callable[[], Case]] = {}


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    CASES[make.__name__] = make
    return make


def table(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype=F32).reshape(shape)


def indices(frames: int, low: int = -ROWS, high: int = ROWS) -> Array:
    return np.random.default_rng(3).integers(low, high, (1, 2, frames))


def lookup(i: str, dtype: np.dtype, value: int) -> Case:
    builder = ModelBuilder(i=i)
    rows = builder.constant(table(ROWS, 3), "rows")
    return (
        builder.model(builder.add("the", Gather(0), rows, builder["i"])),
        {"i": indices(29).astype(dtype)},
        value,
    )


@case
def gather() -> Case:
    return lookup("1,2,T,i64", I64, ROWS)


@case
def gather_i32() -> Case:
    return lookup("1,2,T,i32", I32, -ROWS - 1)


@case
def gather_of_a_stream() -> Case:
    """The data stream, the indices stream on the same frames: one for each element."""
    builder = ModelBuilder(x="1,7,T", i="1,2,T,i64")
    the = builder.add("the", GatherElements(1), builder["x"], builder["i"])
    return builder.model(the), {"x": table(1, ROWS, 29), "i": indices(29)}, -ROWS - 1


@case
def gather_nd() -> Case:
    """The last value of an index is out of range."""
    builder = ModelBuilder(x="T,7,3", i="T,2,1,i64")
    the = builder.add("the", GatherBatches(1), builder["x"], builder["i"])
    return (
        builder.model(the),
        {"x": table(29, ROWS, 3), "i": np.moveaxis(indices(29), -1, 0).reshape(29, 2, 1)},
        ROWS,
    )


@case
def scatter_elements() -> Case:
    builder = ModelBuilder(x="1,7,T", i="1,2,T,i64", u="1,2,T")
    the = builder.add("the", ScatterElements(1), builder["x"], builder["i"], builder["u"])
    return builder.model(the), {"x": table(1, ROWS, 29), "i": indices(29), "u": table(1, 2, 29)}, 1 << 40


def of_integers(kind: str, dtype: np.dtype, value: int, name: str, low: int = 1) -> Case:
    builder = ModelBuilder(x=f"1,2,T,{name}", i=f"1,2,T,{name}")
    feeds = {"x": indices(29, low, 5).astype(dtype), "i": indices(29, low, 5).astype(dtype)}
    return builder.model(builder.add("the", Elementwise(kind), builder["x"], builder["i"])), feeds, value


@case
def division() -> Case:
    return of_integers("div", I64, 0, "i64")


@case
def division_i32() -> Case:
    return of_integers("div", I32, 0, "i32")


@case
def remainder() -> Case:
    return of_integers("mod", I64, 0, "i64")


@case
def c_remainder() -> Case:
    return of_integers("fmod", I32, 0, "i32")


@case
def power() -> Case:
    return of_integers("pow", I64, -1, "i64", 0)


def conversion(value: float, dtype: np.dtype) -> Case:
    builder = ModelBuilder(i="1,2,T")
    feeds = {"i": np.random.default_rng(1).uniform(0, 100, (1, 2, 29)).astype(F32)}
    return builder.model(builder.add("the", Cast(dtype), builder["i"])), feeds, value


@case
def nan_to_i64() -> Case:
    return conversion(np.nan, I64)


@case
def infinity_to_i32() -> Case:
    return conversion(-np.inf, I32)


@case
def large_to_i32() -> Case:
    return conversion(2.0**31, I32)


@case
def large_to_i64() -> Case:
    return conversion(2.0**63, I64)


@case
def negative_to_u8() -> Case:
    return conversion(-1.0, U8)


@case
def broadcast_divisor() -> Case:
    """A model that divides all channels of a frame by one divisor."""
    builder = ModelBuilder(x="1,2,T,i64", i="1,1,T,i64")
    the = builder.add("the", Elementwise("div"), builder["x"], builder["i"])
    return builder.model(the), {"x": indices(29), "i": indices(29, 1, 4)[:, :1]}, 0


@case
def after_a_look_ahead() -> Case:
    """The other input is late, so the indices wait in a buffer, which holds zeros at first."""
    builder = ModelBuilder(x="1,2,T", i="1,2,T,i64")
    late = builder.add(
        "late", Cast(I64), builder.add("zeros", Elementwise("abs"), builder.conv(builder["x"], 5, (0, 4)))
    )
    position = builder.add(
        "one",
        Elementwise("add"),
        builder.add("late0", Elementwise("mul"), late, builder.constant(np.array(0))),
        builder["i"],
    )
    rows = builder.constant(table(ROWS, 3), "rows")
    return (
        builder.model(builder.add("the", Gather(0), rows, position)),
        {"x": table(1, 2, 29), "i": indices(29)},
        ROWS,
    )


def frames_of(typed: TypedModel, name: str) -> int:
    return next(axis for axis, dim in enumerate(typed.inputs[name].shape) if not dim.is_const)


def faulty(typed: TypedModel, feeds: Feeds, value: float, *frames: int) -> Feeds:
    """The inputs with a value without a result at some frames."""
    axis, wrong = frames_of(typed, "i"), feeds["i"].copy()
    for frame in frames:
        place: list[int | slice] = [0] * wrong.ndim
        place[axis] = frame
        wrong[tuple(place)] = value
    return {**feeds, "i": wrong}


def programs(typed: TypedModel, *pulses: int) -> list[Program]:
    return [compile_model(pulsify(typed, pulse=n), backend) for n in pulses for backend in BACKENDS]
