"""Products with DFT bases: recognised in every form, and only those; as exact as the product."""

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from pulse.ops.spectral import dft_matrix
from pulse.program.kernels.spectral import FourierRow, count_scratch
from pulse.program.lower.spectral import are_pairs, find_contiguous
from pulse.program.spectral_basis import dft_tables, find_dft_basis
from tests.noise import next_noise
from tests.pulse.cases.build import floats, model, node
from tests.pulse.program.dft_matrices import arrange_parts, pack_parts
from tests.pulse.program.kernels.groups import epilogue_of
from tests.pulse.program.kernels.rows import run_both

F32_EPSILON = 2.0**-23
MAX_TERMS = 4 * 256
"""The most products that an output is a sum of."""
LENGTHS = [64, 96, 100, 160, 320, 400, 512]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("order", ["turns", "blocks"])
def test_transforms_are_recognised(length: int, inverse: bool, parts: int, order: str) -> None:
    bins = length // 2 + 1 if parts == 1 else length
    matrix = arrange_parts(dft_matrix(length, parts, length, bins, inverse), order, order)
    dft = find_dft_basis(matrix)
    assert dft is not None
    assert dft.length == length
    assert (dft.points.im is None) == (parts == 1)


def test_windows_short_frames_and_half_inverses_are_recognised() -> None:
    window = np.hanning(400)[:, None, None, None]
    matrix = arrange_parts(dft_matrix(400, 1, 512, 257, False) * window, "turns", "blocks")
    dft = find_dft_basis(matrix)
    assert dft is not None
    assert dft.length == 512
    assert dft.points.count == 400
    weight = np.where(np.arange(257) % 256 == 0, 1, 2)[:, None, None, None]
    matrix = arrange_parts((dft_matrix(257, 2, 512, 512, True) * weight)[..., :1], "turns", "turns")
    dft = find_dft_basis(matrix)
    assert dft is not None
    assert dft.bins.im is None
    assert dft.points.count == 257


@pytest.mark.parametrize("order", ["turns", "blocks"])
@pytest.mark.parametrize("zeros", [1, 56])
def test_windows_after_an_inverse_are_recognised(order: str, zeros: int) -> None:
    """Windows may begin with zeros, as every periodic window of cosines does."""
    window = np.zeros(512)
    window[zeros:] = np.hanning(512 - zeros + 2)[1:-1]
    weight = np.where(np.arange(257) % 256 == 0, 1, 2)[:, None, None, None]
    parts = (dft_matrix(257, 2, 512, 512, True) * weight)[..., :1] * window[:, None]
    matrix = arrange_parts(parts, order, "turns")
    dft = find_dft_basis(matrix)
    assert dft is not None
    assert dft.length == 512
    assert dft.bins.im is None
    np.testing.assert_allclose(dft.matrix(), matrix, atol=1e-8)
    bent = matrix.copy()
    bent[9, 300] += 1e-4
    assert find_dft_basis(bent) is None


@pytest.mark.parametrize("order", ["turns", "blocks"])
@pytest.mark.parametrize("onesided", [True, False])
@pytest.mark.parametrize(("first", "size"), [(1, 511), (56, 400), (100, 412)])
def test_transforms_without_their_first_points_are_recognised(
    order: str, onesided: bool, first: int, size: int
) -> None:
    """A window that begins with zeros leaves only the later points."""
    window = np.hamming(size)[:, None, None, None]
    part = dft_matrix(512, 1, 512, 257 if onesided else 512, False)[first : first + size] * window
    matrix = arrange_parts(part, "turns", order)
    dft = find_dft_basis(matrix)
    assert dft is not None
    assert dft.length == 512
    assert dft.points.count == first + size
    assert not dft.points.factors[:, :first].any()
    assert dft.points.re.max() == size - 1
    bins = dft.bins
    assert bins.im is not None
    np.testing.assert_allclose(dft.matrix(), matrix[:, np.r_[bins.re, bins.im]], atol=5e-7)
    bent = matrix.copy()
    bent[300, 7] += 1e-4
    assert find_dft_basis(bent) is None


@pytest.mark.parametrize("length", [400, 512])
def test_real_bins_have_no_imaginary_part(length: int) -> None:
    """Their imaginary part is exactly 0 at frequency 0 and at half of the rate."""
    dft = find_dft_basis(
        arrange_parts(dft_matrix(length, 1, length, length // 2 + 1, False), "turns", "blocks")
    )
    assert dft is not None
    assert dft.bins.factors[1, 0] == 0
    assert dft.bins.factors[1, -1] == 0
    assert dft.bins.factors[1, 1:-1].all()


def packed_basis(length: int, order: str) -> Array:
    """The bins of a real signal under a sine window, orthonormal, one column for each point."""
    weight = np.where(np.arange(length // 2 + 1) % (length // 2) == 0, 1, 2**0.5)[:, None] / length**0.5
    window = np.sin(np.pi * (np.arange(length) + 0.5) / length)[:, None, None]
    transform = dft_matrix(length, 1, length, length // 2 + 1, False)[:, 0]
    return pack_parts(transform * weight * window, order)


@pytest.mark.parametrize("length", [64, 320, 512])
@pytest.mark.parametrize("order", ["turns", "blocks"])
def test_packed_spectra_are_recognised_in_both_directions(length: int, order: str) -> None:
    basis = packed_basis(length, order)
    forward, backward = find_dft_basis(basis), find_dft_basis(np.ascontiguousarray(basis.T))
    assert forward is not None
    assert backward is not None
    for layout in (forward.bins, backward.points):
        assert layout.count == length // 2 + 1
        assert layout.has_im.tolist() == [False, *[True] * (length // 2 - 1), False]
    assert forward.length == backward.length == length
    assert backward.bins.im is None


@pytest.mark.parametrize("column", [0, 1, 64, 127])
@pytest.mark.parametrize("order", ["turns", "blocks"])
def test_a_packed_spectrum_with_another_column_is_not_recognised(order: str, column: int) -> None:
    basis = packed_basis(128, order)
    basis[5, column] += 1e-3
    assert find_dft_basis(basis) is None
    assert find_dft_basis(np.ascontiguousarray(basis.T)) is None


@pytest.mark.parametrize("hop", [64, 128])
@pytest.mark.parametrize("order", ["turns", "blocks"])
def test_packed_spectra_stream_as_transforms(order: str, hop: int) -> None:
    """The inverse is one transform for each frame of an output: parts of a quarter begin at turned points."""
    kernel = np.ascontiguousarray(packed_basis(256, order).T[:, None, :])
    conv = node("Conv", "x k", "spectrum", strides=[hop], pads=[256 - hop, 0])
    gate = node("Mul", "spectrum gain", "gated")
    back = node("ConvTranspose", "gated k", strides=[hop], pads=[0, 256 - hop])
    constants = {"k": kernel, "gain": np.abs(floats("gain", 1, 256, 1)) + 1}
    proto = model([conv, gate, back], {"x": floats("x", 1, 1, 2048)}, constants, stream={"x": 2})
    program = pulse.stream(proto, pulse=hop)
    assert [row.kernel for row in program.instructions].count("fourier") == 2
    pulse.verify(proto, pulse=hop).require()
    lanes, states = program.spawn_many(18), [program.spawn() for _ in range(18)]
    for step in range(6):
        x = floats(f"x{step}", 18, 1, 1, hop)
        for together, frames, state in zip(lanes.step(x)["y"], x, states):
            alone = state.step(frames)["y"]
            rounding = F32_EPSILON * MAX_TERMS**0.5 * np.abs(alone).max()
            np.testing.assert_allclose(together, alone, rtol=0, atol=rounding)


def bent_transform() -> Array:
    """A Fourier basis with one wrong element."""
    matrix = arrange_parts(dft_matrix(128, 1, 128, 65, False), "turns", "turns")
    matrix[3, 7] += 1e-4
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        bent_transform(),
        floats("w", 128, 130),
        np.zeros((128, 130), np.float32),
        np.ones((128, 128), np.float32),
        arrange_parts(dft_matrix(127, 1, 127, 64, False), "turns", "turns"),
    ],
    ids=["an element differs", "noise", "zeros", "ones", "a prime size: nothing gained"],
)
def test_other_matrices_are_not_recognised(matrix: Array) -> None:
    assert find_dft_basis(matrix) is None


def test_a_scaled_row_of_a_transform_is_a_factor() -> None:
    transform = arrange_parts(dft_matrix(128, 1, 128, 65, False), "turns", "turns")
    transform[5] *= 1.001
    dft = find_dft_basis(transform)
    assert dft is not None
    expected = np.ones_like(dft.points.factors)
    expected[:, 5] = 1.001
    np.testing.assert_allclose(dft.points.factors, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("length", "parts", "one_sided"),
    [
        *((64, 1, True), (96, 2, False), (100, 1, True), (80, 2, False), (400, 1, True)),
        *((256, 1, True), (512, 1, True), (512, 2, False)),
    ],
)
@pytest.mark.parametrize("pairs", [False, True])
def test_the_kernel_agrees_with_the_product(length: int, parts: int, one_sided: bool, pairs: bool) -> None:
    bins = length // 2 + 1 if one_sided else length
    matrix = arrange_parts(dft_matrix(length, parts, length, bins, False), "turns", "turns")
    dft = find_dft_basis(matrix)
    assert dft is not None
    rows, gap = 3, 5
    x = floats("x", rows * (matrix.shape[0] + gap))
    y = floats("y", rows * (matrix.shape[1] + gap))
    rows_x, rows_y = (np.arange(rows) * (size + gap) for size in matrix.shape)
    first, second, w1, turns, w2 = dft_tables(dft)
    points, kept_bins = dft.points, dft.bins
    none = np.zeros(1, np.int64)
    from_im = none if points.im is None else points.im
    to_im = none if kept_bins.im is None else kept_bins.im
    row = FourierRow(
        x=x,
        y=y,
        scratch=np.zeros(count_scratch(first, second), np.float32),
        M=rows,
        rows_x=rows_x,
        rows_y=rows_y,
        R=points.count,
        N1=first,
        N2=second,
        P=w1.shape[2],
        w1=w1,
        twiddles=turns,
        w2=w2,
        from_re=points.re,
        from_im=from_im,
        scales=points.factors.astype(np.float32),
        K=kept_bins.count,
        to_re=kept_bins.re,
        to_im=to_im,
        factors=kept_bins.factors.astype(np.float32),
        has_im=points.im is not None,
        wants_im=True,
        **find_contiguous((points.re, points.im), points.factors, (kept_bins.re, kept_bins.im)),
        from_pairs=pairs and are_pairs(points.re, points.im),
        to_pairs=pairs and are_pairs(kept_bins.re, kept_bins.im),
        columns=matrix.shape[1],
        epilogue=epilogue_of(),
    )
    expected = y.copy()
    for m in range(rows):
        expected[rows_y[m] :][: matrix.shape[1]] = (
            x[rows_x[m] :][: matrix.shape[0]].astype(np.float64) @ matrix
        )
    for after in run_both(row):
        np.testing.assert_allclose(after["y"], expected, atol=3e-6 * length**0.5 * 3)


@pytest.mark.parametrize("order", ["turns", "blocks"])
def test_a_windowed_basis_convolution_streams_as_a_transform(order: str) -> None:
    matrix = arrange_parts(
        dft_matrix(256, 1, 256, 129, False) * np.hanning(257)[:256, None, None, None], "turns", order
    )
    kernel = np.ascontiguousarray(matrix.T[:, None, :])
    conv = node("Conv", "x k", strides=[128], pads=[128, 128])
    proto = model([conv], {"x": floats("x", 1, 1, 2000)}, {"k": kernel}, stream={"x": 2})
    program = pulse.stream(proto, pulse=256)
    assert "fourier" in {row.kernel for row in program.instructions}
    pulse.verify(proto, pulse=256).require()


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("clipped", [False, True])
def test_tiny_sines_of_the_middle_bin_are_multiplied(windowed: bool, clipped: bool) -> None:
    """sin(pi n) is about 1e-14 in f64: each channel is compared by its own size, and these too."""
    angle = 2 * np.pi * np.arange(129)[:, None] * np.arange(256) / 256
    kernel = np.concatenate([np.cos(angle), -np.sin(angle)]) * (np.hanning(257)[:256] if windowed else 1)
    assert 0 < np.abs(kernel[-1]).max() < 1e-12
    nodes = [node("Conv", "x k", strides=[64])] + [node("Relu", "y", "z")] * clipped
    weights = {"k": kernel.astype(np.float32)[:, None]}
    proto = model(nodes, {"x": floats("x", 1, 1, 2000)}, weights, stream={"x": 2})
    program = pulse.stream(proto, pulse=64)
    assert "fourier" in {row.kernel for row in program.instructions}
    pulse.verify(proto, pulse=64).require()


def test_a_loud_row_or_column_hides_no_difference_in_others() -> None:
    """A difference is compared with its own row and column, not with the largest element of the matrix."""
    rng = np.random.default_rng(5)
    size = 256
    column = next_noise(rng, size, size + 2)
    column[:, 0], column[:, size // 2 + 1] = 1e7, 0
    assert find_dft_basis(column) is None
    transform = arrange_parts(dft_matrix(size, 1, size, size // 2 + 1, False), "turns", "blocks")
    for factor in (1e-7, 1e7):
        row = transform.copy()
        row[3] *= np.float32(factor)
        assert find_dft_basis(row) is not None  # a window of any range
        quiet = 3 if factor < 1 else 4
        row[quiet] = rng.permutation(row[quiet])
        assert find_dft_basis(row) is None
