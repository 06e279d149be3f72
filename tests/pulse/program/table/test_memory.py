"""The memory plan: what lives at once never overlaps."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.program.table.memory import (
    Buffer,
    Image,
    Region,
    TensorView,
    align,
    aligned_bytes,
    dense_strides,
    place_buffers,
)
from pulse.support.mapping import ALIGNMENT

LIFETIME = st.tuples(st.integers(0, 500), st.integers(0, 30), st.integers(0, 30))


def buffers_of(lifetimes: list[tuple[int, int, int]]) -> list[Buffer]:
    """Size, first and last instruction."""
    buffers: list[Buffer] = []
    for size, begin, other in lifetimes:
        buffer = Buffer(Region.ARENA, size)
        buffer.touch(begin)
        buffer.touch(other)
        buffers.append(buffer)
    return buffers


@settings(max_examples=200, deadline=None)
@given(st.lists(LIFETIME, max_size=25))
def test_buffers_that_live_at_once_never_overlap(lifetimes: list[tuple[int, int, int]]) -> None:
    """Aligned, inside the arena, and the arena is no larger than all of them side by side."""
    buffers = buffers_of(lifetimes)
    total = place_buffers(buffers)
    assert total <= sum(align(buffer.size) for buffer in buffers)
    for number, first in enumerate(buffers):
        assert first.offset >= 0
        assert first.offset % ALIGNMENT == 0
        assert first.offset + first.size <= total
        for other in buffers[:number]:
            if first.first <= other.last and other.first <= first.last:
                assert first.offset + first.size <= other.offset or other.offset + other.size <= first.offset


@settings(max_examples=100, deadline=None)
@given(st.lists(LIFETIME, min_size=1, max_size=25))
def test_the_arena_holds_all_buffers_alive_at_one_moment(lifetimes: list[tuple[int, int, int]]) -> None:
    """The arena is exactly as large if nothing overlaps in time."""
    buffers = buffers_of(lifetimes)
    total = place_buffers(buffers)
    moments = [
        sum(align(b.size) for b in buffers if b.first <= instruction <= b.last) for instruction in range(31)
    ]
    assert total >= max(moments)
    apart = [Buffer(Region.ARENA, size, first=2 * n, last=2 * n) for n, (size, _, _) in enumerate(lifetimes)]
    assert place_buffers(apart) == max(align(buffer.size) for buffer in apart)


def test_a_lifetime_is_from_the_first_instruction_to_the_last() -> None:
    buffer = Buffer(Region.ARENA, 4)
    assert buffer.first > buffer.last
    for instruction in (5, 3, 9, 4):
        buffer.touch(instruction)
    assert (buffer.first, buffer.last) == (3, 9)


def test_equal_weights_are_kept_once_and_equal_states_are_not() -> None:
    """Weights are shared, state is not; every run is aligned."""
    image = Image(Region.WEIGHTS)
    array_of_ones = np.ones(5, np.float32)
    first, again = image.add(array_of_ones, shared=True), image.add(array_of_ones.copy(), shared=True)
    apart = image.add(array_of_ones, shared=False)
    empty = image.add(np.zeros((0, 3), np.float32), shared=False)
    other = image.add(np.arange(20.0), shared=True)
    assert first is again
    assert apart is not first
    data = image.assemble()
    for buffer, array in ((first, array_of_ones), (apart, array_of_ones), (other, np.arange(20.0))):
        assert buffer.offset % ALIGNMENT == 0
        assert data[buffer.offset : buffer.offset + buffer.size].tobytes() == array.tobytes()
    assert empty.size == 0
    assert data.size == image.size


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4096])
def test_memory_is_aligned_and_zero(size: int) -> None:
    """The address itself is a multiple of the alignment."""
    memory = aligned_bytes(size)
    assert memory.size == size
    assert memory.ctypes.data % ALIGNMENT == 0
    assert not memory.any()


SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(SHAPES, st.data())
def test_values_are_views_as_in_numpy(shape: list[int], data: st.DataObject) -> None:
    """Transposes, parts and offsets address the same elements as numpy's."""
    order = data.draw(st.permutations(range(len(shape))))
    size = int(np.prod(shape))
    buffer = Buffer(Region.ARENA, size * 4)
    value = TensorView(buffer, 0, tuple(shape), dense_strides(shape, order), np.dtype(np.float32))
    memory = np.arange(size)

    def array(v: TensorView) -> np.ndarray:
        where = v.offset + v.offsets(range(len(v.shape)))
        return memory[where].reshape(v.shape)

    base = memory.reshape([shape[axis] for axis in order]).transpose(np.argsort(order))
    np.testing.assert_array_equal(array(value), base)
    assert value.is_dense(order)
    assert value.size == size
    perm = data.draw(st.permutations(range(len(shape))))
    np.testing.assert_array_equal(array(value.transpose(perm)), base.transpose(perm))
    axis = data.draw(st.integers(0, len(shape) - 1))
    start = data.draw(st.integers(0, shape[axis] - 1))
    stop, step = data.draw(st.integers(start + 1, shape[axis])), data.draw(st.integers(1, 3))
    index = (slice(None),) * axis + (slice(start, stop, step),)
    np.testing.assert_array_equal(array(value.part(axis, start, stop, step)), base[index])
    flat = value.reshape([size])
    if flat is not None:
        np.testing.assert_array_equal(array(flat), base.ravel())
    assert flat is not None or not value.is_dense(range(len(shape)))
