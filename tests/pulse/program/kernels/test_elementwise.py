"""Chains of elementwise functions against numpy, as Python and compiled."""

import inspect
import math

import numpy as np
import pytest

from pulse.jit.rows.instruction import number_fields
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.program.kernels.dtypes import CODES as DTYPE_CODES
from pulse.program.kernels.elementwise import ChainInput, ChainOutput, ChainRow, MicroOp
from pulse.program.kernels.elementwise_float64 import Chain64Row
from pulse.program.kernels.elementwise_microops import MICRO_OPS, OPCODES, ceil64, floor64, fmod64, rint64
from tests.failed_cases import in_one_test
from tests.pulse.program.kernels.rows import ArrayPart, run_both, run_row

CODES = {dtype.type: number for dtype, number in DTYPE_CODES.items()}
FOLDED = {"sum", "mean"}  # the lowering makes them of "add" and "mulc"
OWN = {
    "square": lambda x: x * x,
    "where_finite": lambda x: np.where(np.isfinite(x), x, 0),
    "addc": lambda x, p: x + p,
    "mulc": lambda x, p: x * p,
    "rsubc": lambda x, p: p - x,
    "maxc": np.maximum,
    "minc": np.minimum,
    "divc": lambda x, p: x / p,
    "rdivc": lambda x, p: p / x,
    "powc": np.power,
    "affine": lambda x, p, q: x * p + q,
}
OWN_PARAMS = {"affine": 2, "square": 0, "where_finite": 0}
BITS = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right"}
RELATIVE = {"swish": 5e-6, "mish": 2e-6}
ABSOLUTE = {"mish": 1e-36, "gelu": 2e-6, "sin": 2e-7, "cos": 2e-7, "affine": 1e-6, "hard_sigmoid": 1e-6}
ABSOLUTE["hard_swish"] = 2e-6
PARAMS = (0.75, 0.25)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 2e38, -2e38, 1.0, -1.0, 0.5, -0.5, 2.0, 88.0, -88.0, 1e-30]


def code(array):
    return CODES[array.dtype.type]


def strides_of(array):
    return [0] * (4 - array.ndim) + [step // array.itemsize for step in array.strides]


def tensor_fields(view, base):
    """The fields of a tensor that is a view into an array."""
    offset = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
    strides = number_fields("step", strides_of(view))
    return {"tensor": ArrayPart(base, offset), "dtype": code(view), **strides}


def micro_op(name, target, a, b, c, p, q):
    return MicroOp(code=OPCODES[name], target=target, a=a, b=b, c=c, p=p, q=q)


def run_chain(kind, bases, views, output_base, output_view, ops, python=None):
    """The output after a chain; ops are (name, target, a, b, c, p, q)."""
    sizes = [1] * (4 - output_view.ndim) + list(output_view.shape)
    inputs = [
        ChainInput(**tensor_fields(np.broadcast_to(view, output_view.shape), base))
        for base, view in zip(bases, views)
    ]
    row = kind(
        **number_fields("s", sizes),
        input_count=len(inputs),
        op_count=len(ops),
        inputs=inputs,
        output=ChainOutput(**tensor_fields(output_view, output_base)),
        ops=[micro_op(*op) for op in ops],
    )
    results = run_both(row) if python is None else [run_row(row, python=python)]
    return [after["output.tensor"] for after in results]


def reference(name, inputs, params):
    if name in OWN:
        return OWN[name](*inputs, *params)
    return ELEMENTWISE[name].run(*inputs, *params)


def arity_of(name):
    if name in OWN:
        return 1, OWN_PARAMS.get(name, 1)
    row = ELEMENTWISE[name]
    if row.arity != 1 or isinstance(row.run, np.ufunc):
        return abs(row.arity) + (row.arity < 0), 0
    return 1, len(inspect.signature(row.run).parameters) - 1


def cases(rng: np.random.Generator, name, count):
    """Inputs of a function: all pairs of special values, then ordinary ones."""
    arity, _ = arity_of(name)
    first, second = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL))
    third = rng.permutation(second)
    normal = rng.standard_normal((3, count)) * np.where(rng.random(count) < 0.3, 30, 2)
    inputs = [np.concatenate(pair).astype(np.float32) for pair in zip((first, second, third), normal)][:arity]
    if name == "where":
        inputs[0] = (inputs[0] > 0).astype(np.float32)
    return inputs


def test_every_row_of_the_table_has_an_opcode() -> None:
    assert set(ELEMENTWISE) - FOLDED <= set(OPCODES)
    assert set(OPCODES) - set(ELEMENTWISE) == set(OWN)
    assert sorted(OPCODES.values()) == list(range(len(MICRO_OPS)))


def assert_close_to_numpy(name, inputs, outputs, rtol):
    """Compare with numpy in float64, rounded to the type of the result. Denormals may be 0."""
    params = PARAMS[: arity_of(name)[1]]
    with np.errstate(all="ignore"):
        expected = np.asarray(reference(name, [x.astype(np.float64) for x in inputs], params)).astype(
            outputs.dtype
        )
    atol = ABSOLUTE.get(name, 0) * (1 if outputs.dtype == np.float32 else 1e-9)
    if name == "pow":  # numpy itself has two answers for the root of -inf
        compared = ~(np.isneginf(inputs[0]) & (inputs[1] == 0.5))
        expected, outputs = expected[compared], outputs[compared]
    if name in ("sin", "cos", "tan"):
        compared = ~(np.abs(inputs[0]) > 1e5) | np.isinf(inputs[0])
        expected, outputs = expected[compared], outputs[compared]
    np.testing.assert_allclose(outputs, expected, rtol=rtol, atol=atol + 1.2e-38)


@pytest.mark.parametrize("name", sorted(BITS))
@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_bits_agree_with_numpy(rng: np.random.Generator, name: str, dtype: type[np.generic]) -> None:
    x = rng.integers(0, np.iinfo(dtype).max, 300).astype(dtype)
    z = rng.integers(0, 8 if name.startswith("shift") else np.iinfo(dtype).max, 300).astype(dtype)
    inputs = [x, z][: ELEMENTWISE[name].arity]
    y = np.zeros_like(x)
    for output in run_chain(Chain64Row, inputs, inputs, y, y, [(name, 9, 0, len(inputs) - 1, 0, 0.0, 0.0)]):
        np.testing.assert_array_equal(output, ELEMENTWISE[name].run(*inputs))


@pytest.mark.parametrize("name", [name for name in OPCODES if name not in BITS])
def test_values_agree_with_numpy(rng: np.random.Generator, name: str) -> None:
    inputs = cases(rng, name, 300)
    _, params = arity_of(name)
    p, q = (*PARAMS[:params], 0.0, 0.0)[:2]
    y = np.zeros(len(inputs[0]), np.float32)
    registers = [*range(len(inputs)), 0, 0][:3]
    for output in run_chain(ChainRow, inputs, inputs, y, y, [(name, 9, *registers, p, q)]):
        assert_close_to_numpy(name, inputs, output, RELATIVE.get(name, 8e-7))
    doubles = [x.astype(np.float64) for x in inputs]
    y64 = np.zeros(len(y))
    for output in run_chain(Chain64Row, doubles, doubles, y64, y64, [(name, 9, *registers, p, q)]):
        assert_close_to_numpy(name, inputs, output, 1e-12)


@pytest.mark.parametrize("tanh_form", [0.0, 1.0])
def test_gelu_has_two_forms(tanh_form: float) -> None:
    x = np.linspace(-6, 6, 999).astype(np.float32)
    y = np.zeros_like(x)
    expected = ELEMENTWISE["gelu"].run(x.astype(np.float64), tanh_form)
    rtol, atol = (5e-6, 0) if tanh_form else (1e-7, 1e-6)
    for output in run_chain(ChainRow, [x], [x], y, y, [("gelu", 8, 0, 0, 0, tanh_form, 0.0)]):
        np.testing.assert_allclose(output, expected, rtol, atol)


@pytest.mark.parametrize("exponent", [2.0, 1.0, 3.0, 0.5, -1.0, 2.5, 0.0])
def test_powers_agree_with_numpy(rng: np.random.Generator, exponent: float) -> None:
    x = np.abs(rng.standard_normal(50)).astype(np.float32)
    y = np.zeros_like(x)
    for output in run_chain(ChainRow, [x], [x], y, y, [("powc", 8, 0, 0, 0, exponent, 0.0)]):
        np.testing.assert_allclose(output, x.astype(np.float64) ** exponent, rtol=1e-6)


def random_view(rng: np.random.Generator, shape, dtype):
    """An array, and a view of it with any order of axes, gaps and broadcast axes."""
    rank = len(shape)
    order = rng.permutation(rank)
    inner = [1 if rng.random() < 0.3 else shape[axis] for axis in order]
    gap = int(rng.integers(0, 3))
    base_shape = [*inner[:-1], inner[-1] + gap]
    values = rng.standard_normal(base_shape) * 3
    base = np.ascontiguousarray((values > 0) if dtype == np.bool_ else values.astype(dtype))
    view = base[..., : inner[-1]].transpose(np.argsort(order))
    return base, view


def output_view(rng: np.random.Generator, shape, dtype):
    order = rng.permutation(len(shape))
    inner = [shape[axis] for axis in order]
    base = np.zeros([*inner[:-1], inner[-1] + int(rng.integers(0, 2))], dtype)
    return base, base[..., : inner[-1]].transpose(np.argsort(order))


SHAPES = [
    (1,),
    (16,),
    (17,),
    (5, 3),
    (2, 1, 7),
    (3, 40),
    (2, 3, 4, 5),
    (1, 2, 33),
    (300,),
    (2, 256),
    (3, 513),
    (0, 4),
    (4, 0),
]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("python", [True, False])
def test_chains_of_any_strides_agree_with_numpy(
    rng: np.random.Generator, shape: tuple[int, ...], python: bool
) -> None:
    for _ in range(3 if python else 25):
        (b0, x0), (b1, x1), (b2, x2) = (
            random_view(rng, shape, dtype) for dtype in (np.float32, np.float32, np.bool_)
        )
        base, y = output_view(rng, shape, np.float32)
        ops = [
            ("add", 8, 0, 1, 0, 0.0, 0.0),
            ("tanh", 9, 8, 0, 0, 0.0, 0.0),
            ("where", 0, 2, 9, 1, 0.0, 0.0),  # takes the register of an input
            ("affine", 15, 0, 0, 0, 2.0, -1.0),
        ]
        (output,) = run_chain(ChainRow, [b0, b1, b2], [x0, x1, x2], base, y, ops, python=python)
        expected = np.where(x2, np.tanh(x0.astype(np.float64) + x1), x1) * 2 - 1
        np.testing.assert_allclose(
            view_like(output, base, y), np.broadcast_to(expected, shape), rtol=2e-6, atol=2e-6
        )


@pytest.mark.parametrize("count", [1, 15, 16, 17, 33, 257, 300])
def test_a_chain_with_stride_two_reads_nothing_beyond_its_input(count: int) -> None:
    x = np.arange(2 * count - 1, dtype=np.float32)
    y = np.zeros(count, np.float32)
    for output in run_chain(ChainRow, [x], [x[::2]], y, y, [("mulc", 8, 0, 0, 0, 2.0, 0.0)]):
        np.testing.assert_array_equal(output, 2 * x[::2])


@pytest.mark.parametrize("shape", [(1, 2), (37, 2), (130, 2), (64, 5), (5, 8), (70, 8), (9, 20)])
def test_short_and_repeated_rows_agree_with_numpy(shape: tuple[int, ...]) -> None:
    rows, columns = shape
    x, z = np.arange(rows * 7 * columns, dtype=np.float32), np.arange(rows, dtype=np.float32)
    every_seventh, y = (
        x.reshape(rows, 7 * columns)[:, 3 : 3 + columns],
        np.full((rows, columns + 3), 9, np.float32),
    )
    same, ops = (
        np.arange(columns, dtype=np.float32),
        [("add", 8, 0, 1, 0, 0.0, 0.0), ("mul", 9, 8, 2, 0, 0.0, 0.0)],
    )
    for output in run_chain(
        ChainRow, [x, z, same], [every_seventh, z[:, None], same], y, y[:, :columns], ops
    ):
        np.testing.assert_array_equal(
            output.reshape(y.shape)[:, :columns], (every_seventh + z[:, None]) * same
        )
        assert (output.reshape(y.shape)[:, columns:] == 9).all()


def view_like(output, base, view):
    """Return the elements of ``output`` at the positions that ``view`` has in ``base``."""
    offset = (view.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
    return np.lib.stride_tricks.as_strided(output.reshape(-1)[offset:], view.shape, view.strides)


@pytest.mark.parametrize("shape", [(1,), (37,), (5, 3), (2, 3, 4, 5), (3, 130)])
def test_comparisons_are_stored_as_bool(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    (b0, x0), (b1, x1) = (random_view(rng, shape, np.float32) for _ in range(2))
    base, y = output_view(rng, shape, np.bool_)
    for output in run_chain(ChainRow, [b0, b1], [x0, x1], base, y, [("greater", 8, 0, 1, 0, 0.0, 0.0)]):
        np.testing.assert_array_equal(view_like(output, base, y), np.broadcast_to(x0 > x1, shape))


@pytest.mark.parametrize("source", [np.float32, np.bool_])
@pytest.mark.parametrize("target", [np.float32, np.bool_])
@pytest.mark.parametrize("count", [5, 64])
def test_a_chain_without_functions_is_a_copy(
    source: type[np.generic], target: type[np.generic], count: int
) -> None:
    x = (np.arange(count) % 3 - 1).astype(source)
    y = np.zeros(count, target)
    for output in run_chain(ChainRow, [x], [x], y, y, []):
        np.testing.assert_array_equal(output, x.astype(target))


@pytest.mark.parametrize("kind", [ChainRow, Chain64Row])
def test_every_byte_but_zero_is_true(kind: type[ChainRow | Chain64Row]) -> None:
    x, y = np.array([0, 1, 2, 255], np.uint8).view(np.bool_), np.zeros(4, np.float32)
    for output in run_chain(kind, [x], [x], y, y, []):
        np.testing.assert_array_equal(output, [0, 1, 1, 1])


@pytest.mark.parametrize("source", CODES)
@in_one_test("target", CODES)
def test_chains_of_f64_convert_types_as_numpy_does(
    source: type[np.generic], target: type[np.generic]
) -> None:
    values = (
        [0, 1, 2.5, 100.99, 127]
        if source in (np.uint8, np.uint16, np.bool_) or target in (np.uint8, np.uint16)
        else [0, -1, 2.5, -100.99, 127]
    )
    x = np.resize(np.array(values).astype(source), (3, 31))
    y = np.zeros((3, 31), target)
    for output in run_chain(Chain64Row, [x], [x], y, y, []):
        np.testing.assert_array_equal(output, x.astype(target))


def test_every_half_is_loaded_and_stored() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    y = np.zeros(len(halves), np.float64)
    (values,) = run_chain(Chain64Row, [halves], [halves], y, y, [], python=False)
    np.testing.assert_array_equal(values, halves.astype(np.float64))
    numbers = ~np.isnan(halves)
    np.testing.assert_array_equal(np.signbit(values)[numbers], np.signbit(halves)[numbers])
    z = np.zeros(len(halves), np.float16)
    (stored,) = run_chain(Chain64Row, [values], [values], z, z, [], python=False)
    np.testing.assert_array_equal(stored, halves)


def test_values_between_halves_are_rounded_as_by_numpy() -> None:
    """A value exactly between two becomes the even one; one beyond the largest becomes infinite."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    between = (halves[:-1] + halves[1:]) / 2
    near = [np.nextafter(between, bound) for bound in (0, np.inf)]
    x = np.concatenate([between, *near, [65519.99, 65520, 1e300]])
    x = np.concatenate([x, -x])
    y = np.zeros(len(x), np.float16)
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)
    (stored,) = run_chain(Chain64Row, [x], [x], y, y, [], python=False)
    np.testing.assert_array_equal(stored, expected)
    np.testing.assert_array_equal(np.signbit(stored), np.signbit(expected))


@pytest.mark.parametrize("name", ["div", "add", "sub", "mod", "fmod", "min", "max", "equal"])
def test_chains_of_f64_are_exact_for_large_integers(name: str) -> None:
    x = np.array([2**53 - 3, -(2**53) + 4, 7, -7, 0], np.int64)
    z = np.array([2, 2, 2, 2, 5], np.int64)
    y = np.zeros(5, np.int64)
    for output in run_chain(Chain64Row, [x, z], [x, z], y, y, [(name, 8, 0, 1, 0, 0.0, 0.0)]):
        np.testing.assert_array_equal(output, ELEMENTWISE[name].run(x, z))


@pytest.mark.parametrize("shape", SHAPES)
def test_chains_of_f64_of_any_strides_agree_with_numpy(
    rng: np.random.Generator, shape: tuple[int, ...]
) -> None:
    (b0, x0), (b1, x1) = (random_view(rng, shape, dtype) for dtype in (np.int32, np.float64))
    base, y = output_view(rng, shape, np.float32)
    for output in run_chain(
        Chain64Row,
        [b0, b1],
        [x0, x1],
        base,
        y,
        [("mul", 8, 0, 1, 0, 0.0, 0.0), ("neg", 9, 8, 0, 0, 0.0, 0.0)],
    ):
        np.testing.assert_allclose(view_like(output, base, y), np.broadcast_to(-(x0 * x1), shape), rtol=1e-7)


def test_numbers_are_rounded_as_by_numpy() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal(2000) * 10 ** random.uniform(-3, 18, 2000)
    near = np.array(
        [0.5, 1.5, 2.5, 0.49999999999999994, 2.0**52 - 0.5, 2.0**52, 2.0**53 + 2, 1e300, math.inf, 0.0]
    )
    for value in [*x, *-x, *near, *-near]:
        for function, expected in ((rint64, np.rint), (floor64, np.floor), (ceil64, np.ceil)):
            assert function(float(value)) == expected(value), value
    assert all(math.isnan(function(math.nan)) for function in (rint64, floor64, ceil64))


def test_remainders_are_those_of_c() -> None:
    """Over all magnitudes, to the bit; NaN where C has it."""
    random = np.random.default_rng(0)
    x, y = (random.standard_normal(2000) * 10 ** random.uniform(-30, 30, 2000) for _ in range(2))
    special = [(5.0, math.inf), (-4.0, 2.0), (0.0, 3.0), (1.7e308, 3e-300), (1e308, 1.7e308)]
    for a, b in [*zip(x.tolist(), y.tolist()), *special]:
        assert fmod64(a, b) == math.fmod(a, b)
    for a, b in ((math.inf, 1.0), (1.0, 0.0), (math.nan, 1.0), (1.0, math.nan), (math.inf, math.inf)):
        assert math.isnan(fmod64(a, b))
