"""Products of bands against numpy, in single streams and in sixteen."""

from typing import Any

import numpy as np
import pytest

import pulse
from pulse.jit.language.simd import LANES
from pulse.program.kernels.matmul.epilogue import Epilogue
from pulse.program.kernels.matmul.product_banded import Bands, ProductBandedRow
from pulse.program.kernels.matmul.product_banded_interleaved import InterleavedProductBandedRow
from pulse.program.kernels.matmul.product_interleaved import COLUMNS
from tests.noise import next_noise
from tests.pulse.cases.build import floats, model, node
from tests.pulse.program.kernels.groups import epilogue_of, epilogue_step
from tests.pulse.program.kernels.interleaved_rows import compare_rows, interleave
from tests.pulse.program.kernels.rows import run_both

TOLERANCE = 2e-5
SHAPES = [(0, 40, 20), (1, 40, 20), (2, 7, 33), (3, 192, 64), (4, 64, 48), (5, 20, 17), (9, 90, 80)]


def filter_bank(rng: np.random.Generator, inputs: int, columns: int) -> np.ndarray:
    """Weights [inputs, columns] of overlapping bands, one of them empty, in which single weights may be 0."""
    centres = np.linspace(0, inputs, columns)
    matrix = next_noise(rng, inputs, columns)
    matrix[np.abs(np.arange(inputs)[:, None] - centres) > max(2, inputs / columns)] = 0
    matrix[:, columns // 2] = 0
    return matrix


@pytest.mark.parametrize("width", [LANES, COLUMNS])
@pytest.mark.parametrize(("inputs", "columns"), [(40, 20), (7, 33), (192, 64), (3, 16)])
def test_bands_hold_all_weights(rng: np.random.Generator, inputs: int, columns: int, width: int) -> None:
    matrix = filter_bank(rng, inputs, columns)
    matrix[:, :width] = 0
    bands = Bands.of(matrix, width)
    np.testing.assert_array_equal(bands.matrix(inputs, columns), matrix)
    assert bands.weights.shape == (bands.counts.sum(), width)
    assert bands.counts[0] == 0
    used = [first for first, count in enumerate(bands.counts) if count]
    assert all(matrix[bands.starts[block], block * width : (block + 1) * width].any() for block in used)


def fields_of(
    rng: np.random.Generator, shape: tuple[int, int, int], width: int
) -> tuple[dict[str, Any], np.ndarray]:
    """The fields that rows of single streams and of sixteen share, and the matrix."""
    M, K, N = shape
    matrix = filter_bank(rng, K, N)
    bands = Bands.of(matrix, width)
    fields = {
        "M": M,
        "rows_x": rng.permutation(M) * 5,
        "rows_y": rng.permutation(M) * (N + 3),
        "T": 1,
        "taps": np.array([2]),
        "K": K,
        "N": N,
        "inputs": len(bands.weights),
        "starts": bands.starts,
        "counts": bands.counts,
        "W": bands.weights.ravel(),
    }
    return fields, matrix


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("with_relu", [False, True])
def test_products_of_bands_agree_with_numpy(
    rng: np.random.Generator, shape: tuple[int, int, int], with_relu: bool
) -> None:
    M, K, N = shape
    fields, matrix = fields_of(rng, shape, LANES)
    x, bias, y = next_noise(rng, 5 * max(M, 1) + K), next_noise(rng, N), next_noise(rng, max(1, M * (N + 3)))
    expected = y.copy()
    for at, to in zip(fields["rows_x"], fields["rows_y"]):
        total = x[at + 2 :][:K].astype(np.float64) @ matrix + bias
        expected[to : to + N] = np.maximum(total, 0) if with_relu else total
    epilogue = epilogue_of([epilogue_step("relu", x, fields["rows_x"])] * with_relu)
    for after in run_both(ProductBandedRow(**fields, x=x, y=y, bias=bias, epilogue=epilogue)):
        np.testing.assert_allclose(after["y"], expected, rtol=TOLERANCE, atol=TOLERANCE * K**0.5)


@pytest.mark.parametrize("shape", SHAPES[1:])
@pytest.mark.parametrize("with_relu", [False, True])
def test_bands_of_sixteen_streams_agree_with_single_ones(
    rng: np.random.Generator, shape: tuple[int, int, int], with_relu: bool
) -> None:
    M, K, N = shape
    fields, matrix = fields_of(rng, shape, LANES)
    x, bias, y = next_noise(rng, LANES, 5 * M + K), next_noise(rng, N), next_noise(rng, LANES, M * (N + 3))

    def epilogue(operand: np.ndarray) -> Epilogue:
        return epilogue_of([epilogue_step("relu", operand, fields["rows_x"])] * with_relu)

    singles = [
        ProductBandedRow(**fields, x=x[i], y=y[i], bias=bias, epilogue=epilogue(x[i])) for i in range(LANES)
    ]
    bands = Bands.of(matrix, COLUMNS)
    narrow = {
        "inputs": len(bands.weights),
        "starts": bands.starts,
        "counts": bands.counts,
        "W": bands.weights.ravel(),
    }
    several = InterleavedProductBandedRow(
        **fields | narrow,
        x=interleave(x),
        y=interleave(y),
        bias=np.pad(bias, (0, -N % COLUMNS)),
        epilogue=epilogue(interleave(x)),
    )
    compare_rows(singles, several, "y")


@pytest.mark.parametrize("frames", [1, 5])
def test_a_filter_bank_streams_as_bands(rng: np.random.Generator, frames: int) -> None:
    constants = {"bank": filter_bank(rng, 129, 40), "bias": next_noise(rng, 40)}
    nodes = [node("MatMul", "x bank", "sums"), node("Add", "sums bias", "biased"), node("Relu", "biased")]
    proto = model(nodes, {"x": floats("x", 1, 30, 129)}, constants, stream={"x": 1})
    program = pulse.stream(proto, pulse=frames)
    assert "product_banded" in [row.kernel for row in program.notes]
    pulse.verify(proto, pulse=frames).require()
    lanes, states = program.spawn_many(18), [program.spawn() for _ in range(18)]
    for step in range(3):
        x = floats(f"x{step}", 18, 1, frames, 129)
        for together, values, state in zip(lanes.step(x)["y"], x, states):
            np.testing.assert_allclose(together, state.step(values)["y"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weights", ["bf16", "int8"])
def test_rounded_banks_are_whole_products(rng: np.random.Generator, weights: str) -> None:
    proto = model(
        [node("MatMul", "x bank")],
        {"x": floats("x", 1, 30, 129)},
        {"bank": filter_bank(rng, 129, 40)},
        stream={"x": 1},
    )
    kernels = [row.kernel for row in pulse.stream(proto, pulse=1, weights=weights).notes]
    assert f"product_{weights}" in kernels
