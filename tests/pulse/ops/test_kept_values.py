"""Statements of ops about the elements that they move."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import numpy as np
import pytest

from pulse import ops
from pulse.dim import TDim
from pulse.ops.op import Op
from pulse.ops.shape import AddAxis, Expand, RemoveAxis, Reshape, Tile, Transpose
from pulse.ops.slice import Decimate, Slice
from pulse.ops.slice_frames import Frames

SHAPE = (4, 1, 6)


def dims(*sizes: int) -> tuple[TDim, ...]:
    return tuple(map(TDim.of, sizes))


OPS = (
    Reshape(dims(3, -1)),
    Transpose((2, 0, 1)),
    AddAxis(1),
    RemoveAxis(1),
    Expand(dims(2, 1, 5, 1)),
    Tile(dims(2, 3, 1)),
    Slice(2, TDim.of(1), TDim.of(6), 2),
    Decimate(2, 1, 2),
    Frames(2, 3, 2),
)


def subclasses(cls: type[Op]) -> Iterator[type[Op]]:
    yield cls
    for subclass in cls.__subclasses__():
        yield from subclasses(subclass)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_element_is_one_of_the_input(op: Op) -> None:
    x = np.arange(24.0).reshape(SHAPE)
    (y,) = op.eval([x], {})
    assert op.copies
    assert op.keeps_values
    assert y.size
    assert np.isin(y, x).all()
    assert op.keeps_order == (y.size == x.size and bool((y.ravel() == x.ravel()).all()))


def test_every_op_that_states_it_is_tried() -> None:
    for module in pkgutil.iter_modules(ops.__path__, "pulse.ops."):
        import_module(module.name)
    stated = {cls for cls in subclasses(Op) if cls.keeps_values or cls.keeps_order}
    assert stated == set(map(type, OPS))
