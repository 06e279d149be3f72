"""Rows of kernels of sixteen streams with interleaved memories against rows of each stream."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from tests.pulse.program.kernels.rows import run_both, run_row

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(4)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def interleave(array: Array) -> Array:
    """The memory of sixteen streams for an array [16, …]."""
    return array.T.copy()


def compare_rows(singles: Sequence[Instruction], several: Instruction, *written: str) -> None:
    """Compare the written fields of one row of sixteen streams with those of a row of each stream."""
    assert len(singles) == LANES
    separate = [run_row(single, python=False) for single in singles]
    for after in run_both(several):
        for name in written:
            expected = np.stack([outputs[name] for outputs in separate])
            np.testing.assert_allclose(after[name].T, expected, rtol=1e-4, atol=2e-5)
