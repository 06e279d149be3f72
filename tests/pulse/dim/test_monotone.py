"""Dims that are proved not to decrease."""

from collections import Counter
from itertools import pairwise

import numpy as np

from pulse.dim import SymbolScope, TDim, dim_max, dim_min, never_falls

MAX_SIZE = 800


def random_dim(rng: np.random.Generator, size: TDim, depth: int) -> TDim:
    """Return sums, multiples, quotients, minima and maxima of one size."""
    if not depth:
        return size
    x = random_dim(rng, size, depth - 1)
    match int(rng.integers(4)):
        case 0:
            return x * int(rng.integers(1, 8)) // int(rng.integers(2, 30)) + int(rng.integers(-3, 9))
        case 1:
            return dim_max(dim_min(x, int(rng.integers(5, 700))), x - int(rng.integers(4)))
        case 2:
            return int(rng.integers(1, 6)) * x - (x + int(rng.integers(90))) // int(rng.integers(1, 9))
        case _:
            return x - random_dim(rng, size, depth - 1) // int(rng.integers(1, 5))


def test_proved_dims_do_not_fall(rng: np.random.Generator) -> None:
    size = SymbolScope().symbol("T")
    reached: Counter[str] = Counter()
    for _ in range(60):
        dim = random_dim(rng, TDim.of(size), 3)
        values = [dim.eval({size: n}) for n in range(MAX_SIZE)]
        rises = all(later >= now for now, later in pairwise(values))
        proved = never_falls(dim, size)
        assert rises or not proved, str(dim)
        reached["proved"] += proved
        reached["falls"] += not rises
    assert reached["proved"] >= 15
    assert reached["falls"] >= 15


def test_functions_of_a_growing_maximum_grow() -> None:
    size = SymbolScope().symbol("T")
    frames = dim_max(size - 1, dim_min(700, size))
    dim = 91 * (frames // 90) - 7 * ((frames + 540) // 630)
    assert never_falls(dim_max(dim, 0), size)
    assert not never_falls(frames // 90 - 2 * ((frames + 540) // 630), size)
