"""The window product and the batched product against numpy, as Python and compiled."""

from dataclasses import replace

import numpy as np
import pytest

from pulse.ops.weight_units import UnitLayout
from pulse.program.kernels.matmul import product, product_blocks
from pulse.program.kernels.matmul.batches import MatmulRow
from pulse.program.kernels.matmul.epilogue import BY_COLUMN, STEPS
from pulse.program.kernels.matmul.product import ProductRow
from pulse.program.kernels.matmul.product_blocks import PANEL, pack_product
from pulse.program.kernels.matmul.product_few import WIDTHS, ProductFewRow, few_columns, pack_few
from pulse.program.weights import StoredWeight, store
from tests.failed_cases import in_one_test
from tests.noise import next_noise
from tests.pulse.program.kernels.groups import epilogue_of, epilogue_step
from tests.pulse.program.kernels.rows import run_both, run_row

TOLERANCE = 2e-5


def window_case(
    rng: np.random.Generator,
    M,
    T,
    K,
    N,
    accumulate=0,
    activation=0,
    gap=3,
    form="f32",
    width=None,
    dense=False,
):
    """The row and the expected y of a window product with rows and taps in any order.

    ``width``: of the columns of ``product_few``; ``dense``: the rows of y are neighbours.
    """
    taps = rng.permutation(T) * (K + gap) if T > 1 else np.array([2] * T)
    rows_x = rng.permutation(M) * 5
    rows_y = np.arange(M) * N if dense else rng.permutation(M) * (N + gap)
    reach = int(rows_x.max(initial=0) + taps.max(initial=0) + K)
    x, w, bias, y = (
        next_noise(rng, reach),
        next_noise(rng, T * K, N),
        next_noise(rng, N),
        next_noise(rng, max(1, M * (N + gap))),
    )
    stored = (
        StoredWeight(w.astype(np.float16), None, None)
        if form == "f16"
        else store(w, form, UnitLayout(w.shape, (0,)))
    )
    w, scales = stored.values, stored.scales_of()
    expected = y.copy()
    for m in range(M):
        window = np.concatenate([x[rows_x[m] + tap :][:K] for tap in taps]) if T else np.zeros(0)
        total = window.astype(np.float64) @ w + bias + (y[rows_y[m] :][:N] if accumulate else 0)
        expected[rows_y[m] : rows_y[m] + N] = np.maximum(total, 0) if activation else total
    fields = {
        "x": x,
        "y": y,
        "M": M,
        "rows_x": rows_x.astype(np.int64),
        "rows_y": rows_y.astype(np.int64),
        "T": T,
        "taps": taps.astype(np.int64),
        "K": K,
        "N": N,
        "accumulate": accumulate,
        "bias": bias,
        "scales": scales,
    }
    fields["epilogue"] = epilogue_of([epilogue_step("relu", x, fields["rows_x"])] * activation)
    if width is None:
        row = ProductRow(**fields, W=pack_product(stored.codes))
    else:
        row = ProductFewRow(**fields, W=pack_few(stored.codes, width), width=width)
    assert row.form == form
    return row, expected


def assert_agrees(row: ProductRow, expected: np.ndarray, terms: int) -> None:
    """The kernel as Python and compiled gives the expected sums of this many terms."""
    for after in run_both(row):
        np.testing.assert_allclose(
            after["y"], expected, rtol=TOLERANCE, atol=TOLERANCE * max(1, terms) ** 0.5
        )


SHAPES = [
    (1, 1, 48, 32), (1, 1, 7, 16), (2, 3, 5, 33), (3, 2, 4, 17), (4, 1, 9, 64), (5, 9, 1, 1), (8, 3, 16, 31),
    (17, 2, 3, 130), (6, 1, 300, 20), (1, 4, 6, 130), (7, 5, 2, 48), (0, 1, 4, 8), (3, 1, 4, 0), (2, 0, 4, 5),
    (2, 3, 0, 5), (8, 3, 16, 8), (17, 1, 5, 7), (9, 2, 1, 1), (13, 2, 7, 24), (1, 1, 8, 17), (16, 3, 4, 56),
    (3, 2, 4, 25), (8, 2, 5, 24), (19, 1, 7, 20), (10, 2, 3, 49),
]  # fmt: skip


@in_one_test(("M", "T", "K", "N"), SHAPES)
@pytest.mark.parametrize(("accumulate", "activation"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_product_agrees_with_numpy(
    rng: np.random.Generator, M: int, T: int, K: int, N: int, accumulate: int, activation: int
) -> None:
    row, expected = window_case(rng, M, T, K, N, accumulate, activation)
    assert_agrees(row, expected, T * K)


@in_one_test(("M", "T", "K", "N"), [shape for shape in SHAPES if shape[0] > 1])
@pytest.mark.parametrize("accumulate", [0, 1])
@pytest.mark.parametrize("form", ["f32", "bf16", "int8"])
@pytest.mark.parametrize(("eight", "whole"), [(True, True), (True, False), (False, False)])
def test_products_agree_with_numpy_whatever_the_registers(
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    M: int,
    T: int,
    K: int,
    N: int,
    accumulate: int,
    form: str,
    eight: bool,
    whole: bool,
) -> None:
    """This runs plain Python; the compiled kernels have the registers of this processor."""
    for module in (product, product_blocks):
        monkeypatch.setattr(module, "HAS_AVX512", eight)
    monkeypatch.setattr(product, "HAS_FULL_WIDTH_AVX512", whole)
    row, expected = window_case(rng, M, T, K, N, accumulate, form=form)
    after = run_row(row, python=True)
    np.testing.assert_allclose(after["y"], expected, rtol=TOLERANCE, atol=TOLERANCE * max(1, T * K) ** 0.5)


SMALL_SHAPES = [
    (9, 3, 8, 4), (3, 1, 4, 3), (19, 2, 16, 2), (1, 7, 16, 1),
    (8, 1, 112, 1), (20, 2, 32, 1), (0, 2, 16, 1), (4, 0, 16, 2),
]  # fmt: skip


@in_one_test(("M", "T", "K", "N"), SMALL_SHAPES)
@pytest.mark.parametrize(("accumulate", "activation"), [(0, 0), (1, 1)])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("form", ["f32", "f16", "bf16", "int8"])
def test_few_columns_agree_with_numpy(
    rng: np.random.Generator,
    M: int,
    T: int,
    K: int,
    N: int,
    accumulate: int,
    activation: int,
    dense: bool,
    form: str,
) -> None:
    for width in (width for width in WIDTHS if width >= N and K * width % 16 == 0):
        row, expected = window_case(
            rng, M, T, K, N, accumulate, activation, form=form, width=width, dense=dense
        )
        assert_agrees(row, expected, T * K)


@pytest.mark.parametrize(
    ("M", "K", "N", "chosen"),
    [
        (8, 16, 4, (4, 16)), (2, 16, 4, None), (3, 16, 4, (4, 16)), (8, 16, 8, None),
        (1, 16, 1, (1, 16)), (1, 8, 1, None), (2, 8, 1, (2, 8)), (8, 7, 1, None),
        (8, 12, 3, (4, 12)), (8, 6, 3, None), (8, 16, 9, None), (8, 0, 1, None), (8, 16, 0, None),
        (0, 16, 1, None), (8, 24, 1, (2, 24)), (8, 343, 1, (1, 336)), (8, 17, 1, None), (216, 10, 1, None),
    ],
)  # fmt: skip
def test_few_columns_are_chosen_if_they_multiply_less(
    M: int, K: int, N: int, chosen: tuple[int, int] | None
) -> None:
    assert few_columns(M, 1, K, N) == chosen


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


AFTER = {
    "relu": lambda v, p, w: np.maximum(v, 0),
    "tanh": lambda v, p, w: np.tanh(v),
    "sigmoid": lambda v, p, w: sigmoid(v),
    "leaky_relu": lambda v, p, w: np.where(v < 0, p * v, v),
    "elu": lambda v, p, w: np.where(v < 0, p * np.expm1(np.minimum(v, 0)), v),
    "swish": lambda v, p, w: v * sigmoid(p * v),
    "prelu": lambda v, p, w: np.where(v < 0, w * v, v),
    "add": lambda v, p, w: v + w,
    "mul_round": lambda v, p, w: np.rint(v * w),
    "maxc": lambda v, p, w: np.maximum(v, p),
    "minc": lambda v, p, w: np.minimum(v, p),
    "round_within": lambda v, p, w: np.clip(np.rint(v), p, 1.5),
}


@pytest.mark.parametrize(
    ("step", "M", "N", "flat"),
    [(step, M, N, False) for step in STEPS for M, N in [(2, 53), (3, 32)]]
    + [(step, M, N, step not in BY_COLUMN) for step in STEPS for M, N in [(7, 11), (1, 16), (8, 24)]],
)
def test_steps_after_a_product_agree_with_numpy(
    rng: np.random.Generator, step: str, M: int, N: int, flat: bool
) -> None:
    """Columns fill pairs of vectors, one vector, or a part of one."""
    row, expected = window_case(rng, M, 1, 4, N, dense=True)
    operand, rows = next_noise(rng, M, N), np.arange(M) * N
    if step in BY_COLUMN:
        operand[:] = operand[0]
    expected = AFTER[step](expected[: M * N].astype(np.float64).reshape(M, N), 0.7, operand)
    epilogue = epilogue_of([epilogue_step(step, operand, rows, 0.7, 1.5)], flat=flat)
    for after in run_both(replace(row, epilogue=epilogue)):
        np.testing.assert_allclose(
            after["y"][: M * N].reshape(M, N), expected, rtol=TOLERANCE, atol=4 * TOLERANCE
        )


@pytest.mark.parametrize(("M", "N"), [(5, 12), (4, 16), (3, 40), (1, 70)])
@pytest.mark.parametrize("flat", [True, False])
def test_steps_run_in_order_on_rows_of_their_operands(
    rng: np.random.Generator, M: int, N: int, flat: bool
) -> None:
    """Operands and rows have gaps unless all rows form one."""
    row, expected = window_case(rng, M, 1, 4, N, dense=flat)
    rows = np.arange(M) * N if flat else rng.permutation(M) * (N + 2)
    operand = next_noise(rng, M * (N + 2))
    steps = [
        epilogue_step("add", operand, rows),
        epilogue_step("relu", operand, rows),
        epilogue_step("maxc", operand, rows, 0.5),
    ]
    for m, start in enumerate(row.rows_y):
        added = expected[start : start + N] + operand[rows[m] : rows[m] + N]
        expected[start : start + N] = np.maximum(np.maximum(added, 0), 0.5)
    for after in run_both(replace(row, epilogue=epilogue_of(steps, flat=flat))):
        np.testing.assert_allclose(after["y"], expected, rtol=TOLERANCE, atol=4 * TOLERANCE)


def test_products_of_random_shapes_agree_with_numpy(rng: np.random.Generator) -> None:
    for _ in range(200):
        M, T, K, N = (int(rng.integers(1, top)) for top in (18, 10, 40, 131))
        row, expected = window_case(rng, M, T, K, N, int(rng.integers(2)), int(rng.integers(2)))
        after = run_row(row, python=False)
        np.testing.assert_allclose(after["y"], expected, rtol=TOLERANCE, atol=TOLERANCE * (T * K) ** 0.5)


@in_one_test(("M", "T", "K", "N"), SHAPES)
@pytest.mark.parametrize("form", ["f16", "bf16", "int8"])
def test_rounded_weights_agree_with_numpy(
    rng: np.random.Generator, M: int, T: int, K: int, N: int, form: str
) -> None:
    row, expected = window_case(rng, M, T, K, N, M % 2, N % 2, form=form)
    assert_agrees(row, expected, T * K)


@pytest.mark.parametrize("columns", [1, 16, 17, 24, 25, 32, 33, 48, 49, 96])
def test_packing_is_panels_of_rows(rng: np.random.Generator, columns: int) -> None:
    w = next_noise(rng, 5, columns)
    packed = pack_product(w)
    assert packed.dtype == np.float32
    assert packed.size == 5 * -(-columns // 16) * 16
    first = min(columns, PANEL)
    np.testing.assert_array_equal(packed[:first], w[0, :first])


@pytest.mark.parametrize(
    ("M", "K", "N", "width"),
    [(5, 4, 3, 4), (5, 4, 20, None), (8, 5, 7, None), (9, 4, 24, None), (9, 5, 24, None)],
)
def test_products_pass_infinities_and_nan_on(
    rng: np.random.Generator, M: int, K: int, N: int, width: int | None
) -> None:
    row, _ = window_case(rng, M, 1, K, N, width=width)
    row.x[:] = np.inf
    row.W[:] = 1
    row.bias[N // 2] = np.nan
    for after in run_both(row):
        sums = after["y"][row.rows_y[0] :][:N]
        assert np.isnan(sums[N // 2])
        assert np.isposinf(np.delete(sums, N // 2)).all()


def strides(shape, order):
    steps, step = [0] * len(shape), 1
    for axis in order:
        steps[axis] = step
        step *= shape[axis]
    return steps


@pytest.mark.parametrize(
    ("B", "M", "K", "N"),
    [(1, 1, 1, 1), (2, 5, 7, 17), (3, 4, 33, 40), (1, 9, 16, 3), (2, 3, 0, 5), (0, 2, 2, 2)],
)
@pytest.mark.parametrize("order_a", [(1, 0), (0, 1)])
@in_one_test("order_b", [(1, 0), (0, 1)])
@in_one_test("order_y", [(1, 0), (0, 1)])
def test_matmul_agrees_with_numpy(
    rng: np.random.Generator,
    B: int,
    M: int,
    K: int,
    N: int,
    order_a: tuple[int, ...],
    order_b: tuple[int, ...],
    order_y: tuple[int, ...],
) -> None:
    (am, ak), (bk, bn), (ym, yn) = (
        strides((M, K), order_a),
        strides((K, N), order_b),
        strides((M, N), order_y),
    )
    a, b, y = next_noise(rng, B * M * K + 1), next_noise(rng, B * K * N + 1), next_noise(rng, B * M * N + 1)
    batch_a, batch_b, batch_y = (rng.permutation(B).astype(np.int64) * size for size in (M * K, K * N, M * N))
    row = MatmulRow(
        a=a,
        b=b,
        y=y,
        B=B,
        batch_a=batch_a,
        batch_b=batch_b,
        batch_y=batch_y,
        M=M,
        K=K,
        N=N,
        am=am,
        ak=ak,
        bk=bk,
        bn=bn,
        ym=ym,
        yn=yn,
        scale=0.75,
    )

    def view_of(flat, offset, shape, steps):
        return np.lib.stride_tricks.as_strided(flat[offset:], shape, [4 * step for step in steps])

    expected = y.copy()
    for i in range(B):
        left, right = view_of(a, batch_a[i], (M, K), (am, ak)), view_of(b, batch_b[i], (K, N), (bk, bn))
        view_of(expected, batch_y[i], (M, N), (ym, yn))[...] = 0.75 * left.astype(np.float64) @ right
    for after in run_both(row):
        np.testing.assert_allclose(after["y"], expected, rtol=TOLERANCE, atol=TOLERANCE * 4)
