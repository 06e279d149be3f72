"""The first values of parameters."""

import math
from collections.abc import Sequence

import numpy as np

from pulse.errors import InputError
from pulse.facts import F32, Array, convert_numbers


def parameter(
    name: str, value: object, shape: Sequence[int], inputs: int, seed: int, location: str
) -> tuple[str, Array]:
    """Return a parameter: the given one, or uniform numbers between -1 and 1, divided by the root of ``inputs``.

    inputs   the number of terms in each result
    Raises   InputError: of another shape, or not numbers
    """
    if any(size < 1 for size in shape):
        raise InputError(f"{location}: its {name} of shape {list(shape)} is empty; sizes begin at 1")
    if value is None:
        limit = 1 / math.sqrt(max(1, inputs))
        random = np.random.default_rng([seed, *name.encode(), *shape])
        return name, random.uniform(-limit, limit, shape).astype(F32)
    numbers = np.asarray(value)
    array = numbers if numbers.dtype in (np.dtype(np.float16), F32) else convert_numbers(numbers, F32)
    if array is None:
        raise InputError(f"{location}: its {name} does not consist of numbers")
    if array.shape != tuple(shape):
        raise InputError(f"{location}: its {name} must have the shape {list(shape)}, not {list(array.shape)}")
    return name, array


def constant_parameter(name: str, value: object, size: int, fill: float, location: str) -> tuple[str, Array]:
    """Return a parameter [size]: the given one, or a constant. Raises InputError: another shape or type."""
    return parameter(name, np.full(size, fill, F32) if value is None else value, [size], 1, 0, location)


def bias_parameter(
    no_bias: bool, value: object, shape: Sequence[int], inputs: int, seed: int, location: str
) -> list[tuple[str, Array]]:
    """Return the bias as ``parameter`` does; empty without one. Raises InputError: also if one is given then."""
    if not no_bias:
        return [parameter("bias", value, shape, inputs, seed, location)]
    if value is not None:
        raise InputError(f"{location}: both a bias and no_bias are given; give one of them")
    return []
