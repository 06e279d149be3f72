"""Copies and fills of interleaved tensors."""

import numpy as np

from pulse.program.kernels.copy import CopyRow, FillRow
from pulse.program.lower.interleaved.copy import find_gaps
from pulse.program.table.memory import Buffer, Region, TensorView


def test_the_gaps_of_a_fill_are_what_the_next_copy_leaves() -> None:
    buffer, other = Buffer(Region.ARENA, 400), Buffer(Region.ARENA, 400)
    whole = TensorView(buffer, 4, (20,), (1,), np.dtype(np.float32))
    inner = TensorView(buffer, 6, (2, 3), (8, 1), np.dtype(np.float32))
    source = TensorView(other, 0, (2, 3), (3, 1), np.dtype(np.float32))
    fill = FillRow(dst=whole, size=4, count=20, bits=0)
    sizes, steps = (
        {"n0": 1, "n1": 1, "n2": 1, "n3": 1, "n4": 2, "n5": 3},
        dict.fromkeys(("a0", "a1", "a2", "a3"), 0),
    )
    steps |= dict.fromkeys(("b0", "b1", "b2", "b3"), 0)
    copied = CopyRow(src=source, dst=inner, size=4, **sizes, **steps, a4=3, a5=1, b4=8, b5=1)
    assert find_gaps(fill, copied) == [(0, 2), (5, 10), (13, 20)]
    onto_itself = CopyRow(src=whole, dst=inner, size=4, **sizes, **steps, a4=3, a5=1, b4=8, b5=1)
    assert find_gaps(fill, onto_itself) == [(0, 20)]
