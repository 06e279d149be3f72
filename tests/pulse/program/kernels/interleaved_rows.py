"""Rows of kernels of sixteen streams with interleaved memories against rows of each stream."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pulse.jit.language.simd import LANES
from pulse.jit.rows.instruction import Instruction
from pulse.program.kernels.matmul.epilogue import Epilogue
from pulse.program.kernels.matmul.product import ProductRow
from pulse.program.kernels.matmul.product_blocks import pack_product
from pulse.program.kernels.matmul.product_interleaved import (
    COLUMNS,
    InterleavedProductRow,
    interleaved_weights,
)
from tests.noise import next_noise
from tests.pulse.program.kernels.rows import run_both, run_row

Array = np.ndarray[Any, Any]


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


def compare_products(
    rng: np.random.Generator,
    fields: Mapping[str, Any],
    x: Array,
    y: Array,
    matrix: Array,
    epilogue: Callable[[Array], Epilogue],
    operand: Array,
    written: str,
) -> None:
    """Compare products of sixteen streams with single ones.

    fields   of both rows
    epilogue   what follows the product, for an operand of its own in each stream
    written  the field to compare
    """
    weights, columns = pack_product(matrix), matrix.shape[1]
    bias = np.zeros(-(-columns // COLUMNS) * COLUMNS, np.float32)
    bias[:columns] = next_noise(rng, columns)
    singles = [
        ProductRow(
            **fields,
            x=x[i],
            y=y[i],
            W=weights,
            bias=bias[:columns],
            scales=None,
            epilogue=epilogue(operand[i]),
        )
        for i in range(LANES)
    ]
    several = InterleavedProductRow(
        **fields,
        x=interleave(x),
        y=interleave(y),
        W=interleaved_weights(weights, *matrix.shape),
        bias=bias,
        epilogue=epilogue(interleave(operand)),
    )
    compare_rows(singles, several, written)
