"""Arrays by their content, without a digest of all of it."""

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

SAMPLED_ELEMENTS = 512
"""How many elements of a larger array are its key; arrays with the same key are compared whole."""

T = TypeVar("T")


class EqualArrays(Generic[T]):
    """Values by the type, shape and bits of an array; arrays that it holds must not change."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, list[tuple[NDArray[Any], T]]] = {}

    def add(self, array: NDArray[Any], value: T) -> None:
        self._by_key.setdefault(_key(array), []).append((array, value))

    def find(self, array: NDArray[Any]) -> Iterator[T]:
        """Yield the values of all arrays with the content of this one, in the order in which they were added."""
        for other, value in self._by_key.get(_key(array), ()):
            if (
                array is other
                or array.size <= SAMPLED_ELEMENTS
                or np.array_equal(_bytes(array), _bytes(other))
            ):
                yield value


def _key(array: NDArray[Any]) -> Hashable:
    """Return the type, the shape and the bits of some elements: of all if the array is small."""
    step = max(1, -(-array.size // SAMPLED_ELEMENTS))
    return array.dtype.str, array.shape, array.flat[::step].tobytes()


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
