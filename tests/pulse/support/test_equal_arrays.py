"""Arrays are found by their whole content, although only a sample of it is their key."""

import numpy as np

from pulse.support.equal_arrays import SAMPLED_ELEMENTS, EqualArrays
from tests.noise import normal_noise


def test_arrays_with_the_same_type_shape_and_bits_are_found() -> None:
    large, small = normal_noise(3, 2 * SAMPLED_ELEMENTS), normal_noise(4)
    nan, other_nan = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(np.float32)
    known = EqualArrays[int]()
    stored = [large, small, small.reshape(2, 2), large.copy(), np.zeros((0, 3)), np.float32(0), np.array(nan)]
    for number, array in enumerate(stored):
        known.add(np.asarray(array), number)
    numbers = [list(known.find(np.asarray(array).copy())) for array in stored]
    assert numbers == [[0, 3], [1], [2], [0, 3], [4], [5], [6]]
    assert list(known.find(np.asfortranarray(large))) == [0, 3]
    unknown = [large.view(np.int32), large.ravel(), np.zeros((3, 0)), np.float32(-0.0), np.array(other_nan)]
    assert not [number for array in unknown for number in known.find(np.asarray(array))]


def test_each_element_decides() -> None:
    x = normal_noise(3 * SAMPLED_ELEMENTS + 5)
    known = EqualArrays[str]()
    known.add(x, "x")
    for index in range(x.size):
        changed = x.copy()
        changed[index] += 1
        assert not list(known.find(changed)), index
    assert list(known.find(x)) == ["x"]
