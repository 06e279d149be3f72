"""Each lane function: the compiled form against the plain-Python form, special values included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.jit.codegen import simd_memory
from pulse.jit.language import simd
from pulse.jit.language.simd import (
    vabs,
    vadd_pairs,
    vbits,
    vbroadcast_twos,
    vceil,
    vdeinterleave_even,
    vduplicate_fours,
    vduplicate_twos,
    veq,
    vexp2_biased,
    vexp2i,
    vexponent,
    vfloor,
    vfma,
    vfma_half,
    vfrombits,
    vge,
    vgt,
    vindex,
    vinterleave_first,
    vinterleave_second,
    vle,
    vload,
    vload_eights,
    vload_first,
    vload_fours,
    vload_part,
    vload_second,
    vlt,
    vmantissa,
    vmax,
    vmax_across,
    vmin,
    vmin_across,
    vne,
    vnonzero,
    vproduct_biased,
    vrotate_by_eight,
    vrotate_by_four,
    vrotate_by_two,
    vrotate_eights,
    vrotate_fours,
    vround,
    vselect,
    vsplat,
    vsqrt,
    vstore,
    vstore_eights,
    vstore_fours,
    vstore_part,
    vsum,
    vtofloat,
    vtoint,
    vzero,
)  # fmt: skip
from pulse.jit.registry import kernel, named_kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import operand
from pulse.program.machine import machine
from pulse.program.table.table import TableBuilder, link

F = np.float32
INF, NAN = np.inf, np.nan


class Floats(Instruction):
    x: Operand = reads("f32")
    z: Operand = writes("f32")


class Part(Floats):
    n: int


class Halves(Instruction):
    x: Operand = reads("f16")
    z: Operand = writes("f32")
    n: int


class Codes(Instruction):
    x: Operand = reads("bf16")
    z: Operand = writes("f32")


class Widened(Instruction):
    x: Operand = reads("i8")
    z: Operand = writes("f32")


@kernel
def infra_arithmetic(row: Floats):
    x, z = row.x, row.z
    a, b, c = vload(x, 0), vload(x, 16), vload(x, 32)
    vstore(z, 0, a + b)
    vstore(z, 16, a - b)
    vstore(z, 32, a * 0.5 * b)
    vstore(z, 48, a / b)
    vstore(z, 64, vfma(a, b, c))
    vstore(z, 80, -vabs(a))
    vstore(z, 96, 2 / vsqrt(vabs(a)))
    vstore(z, 112, vfloor(a))
    vstore(z, 128, vceil(a))
    vstore(z, 144, vround(a))
    total = vzero()
    total += vindex()
    total *= vsplat(0.25)
    total -= 1
    total /= 3
    vstore(z, 160, total)
    vstore(z, 176, 1.5 - (0.25 - a))


@kernel
def infra_choice(row: Floats):
    x, z = row.x, row.z
    a, b = vload(x, 0), vload(x, 16)
    vstore(z, 0, vmin(a, b))
    vstore(z, 16, vmax(a, b))
    vstore(z, 32, vmax(a, 0.0))
    vstore(z, 48, vmin(1.0, a))
    vstore(z, 64, vselect(vlt(a, b) | vgt(a, 2.0), 1.0, 0.0))
    vstore(z, 80, vselect(vle(a, b) & ~veq(a, b), a, b))
    vstore(z, 96, vselect(vge(a, b), a, 7))
    vstore(z, 112, vselect(vne(a, a), 1, 0))
    z[128] = vmin_across(a)
    z[129] = vmax_across(a)


@kernel
def infra_bits(row: Floats):
    x, z = row.x, row.z
    a = vload(x, 0)
    whole = vtoint(a)
    vstore(z, 0, vtofloat(whole))
    vstore(z, 16, vtofloat(((whole << 3) - 5 + whole) ^ 3))
    vstore(z, 32, vtofloat((whole >> 1) * whole))
    vstore(z, 48, vfrombits(vbits(a) & 0x7FFFFFFF))
    vstore(z, 64, vfrombits(vbits(a) | -2147483648))
    vstore(z, 80, vselect(vnonzero(whole & 1), 1.0, 0.0))
    vstore(z, 96, vexp2i(vround(a)))
    vstore(z, 112, vexponent(a))
    vstore(z, 128, vmantissa(a))
    z[144] = vsum(a)
    vstore(z, 160, vproduct_biased(a, 0.6) - simd.BIASED)
    vstore(z, 176, vexp2_biased(vproduct_biased(a, 0.6)))


@kernel
def infra_part(row: Part):
    x, z, n = row.x, row.z, row.n
    v = vload_part(x, 0, n)
    vstore(z, 0, v)
    vstore_part(z, 16, n, v + 1.0)


@kernel
def infra_chunks(row: Part):
    x, z, n = row.x, row.z, row.n
    vstore(z, 0, vload_fours(x, 1, 5, n))
    vstore(z, 16, vload_eights(x, 2, 9, n))
    vstore(z, 32, vrotate_fours(vload(x, 0)))
    vstore(z, 48, vrotate_eights(vload(x, 0)))
    vstore(z, 64, vdeinterleave_even(vload(x, 0), vload(x, 4)))
    vstore(z, 80, vadd_pairs(vload(x, 0), vload(x, 4)))
    vstore(z, 96, vduplicate_twos(x, n))
    vstore(z, 112, vduplicate_fours(x, n))
    vstore(z, 128, vrotate_by_two(vload(x, 0)))
    vstore(z, 144, vrotate_by_four(vload(x, 0)))
    vstore(z, 160, vrotate_by_eight(vload(x, 0)))
    vstore(z, 176, vinterleave_first(vload(x, 1), vload(x, 4)))
    vstore(z, 192, vinterleave_second(vload(x, 1), vload(x, 4)))
    vstore_part(z, 208, 8, vfma_half(vload(x, 1), vload(x, 2), vload(x, 3)))
    vstore(z, 216, vbroadcast_twos(x, n))


@kernel
def infra_store_chunks(row: Part):
    x, z, n = row.x, row.z, row.n
    vstore_fours(z, 20, 1, n, vload(x, 0), 5)
    vstore_eights(z, 60, 41, n, vload(x, 0), 2)


def _halves(row: Halves):
    x, z, n = row.x, row.z, row.n
    for i in range(0, n, 16):
        vstore(z, i, vload(x, i))


infra_f16 = named_kernel("infra_f16")(_halves)
infra_f16_by_bits = named_kernel("infra_f16_by_bits")(_halves)


@kernel
def infra_bf16(row: Codes):
    vstore(row.z, 0, vload(row.x, 1))


@kernel
def infra_bf16_pairs(row: Codes):
    vstore(row.z, 0, vload_first(row.x, 2))
    vstore(row.z, 16, vload_second(row.x, 2))


@kernel
def infra_int8(row: Widened):
    vstore(row.z, 0, vload(row.x, 1))


def outputs(kernel, x, size, *numbers):
    """Python's output and the compiled one; x ends where its region ends."""
    builder = TableBuilder()
    builder.add(kernel, operand(0, 0), operand(1, 0), *numbers)
    table = builder.finish()
    x = np.asarray(x, F)
    python, compiled = np.full(size, 9, F), np.full(size, 9, F)
    machine.run_python(table, [x.view(np.uint8), python.view(np.uint8)])
    linked = link(table)
    bases = np.array([x.ctypes.data, compiled.ctypes.data], np.int64)
    machine.run(linked.ctypes.data, 1, bases.ctypes.data)
    return python, compiled


SPECIAL = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 2.5, 3.5, -2.5, 1e30, -1e-30, 0.5, 8388609.0, 100.25, -7.75]


def normal(width=32):
    limits = st.floats(-1e6, 1e6, width=width).map(lambda v: 0.0 if abs(v) < 1e-6 else v)
    return st.lists(limits, min_size=48, max_size=48)


@settings(max_examples=30, deadline=None)
@given(normal())
def test_arithmetic_agrees_with_python(x: list[float]) -> None:
    python, compiled = outputs(infra_arithmetic, x, 192)
    np.testing.assert_allclose(compiled, python, rtol=3e-7, atol=1e-6)
    rounded = slice(112, 160)
    np.testing.assert_array_equal(compiled[rounded], python[rounded])


def test_special_values_agree_with_those_of_python() -> None:
    x = [*SPECIAL, *np.roll(SPECIAL, 5), *np.roll(SPECIAL, 3)]
    python, compiled = outputs(infra_arithmetic, x, 192)
    np.testing.assert_allclose(compiled, python, rtol=3e-7)
    assert np.isnan(python[6])
    assert np.isinf(python[4])


@pytest.mark.parametrize("turn", range(16))
def test_choice_propagates_nan(turn: int) -> None:
    a, b = np.array(SPECIAL, F), np.roll(np.array(SPECIAL, F), turn)
    for z in outputs(infra_choice, [*a, *b], 144):
        np.testing.assert_array_equal(z[:16], np.minimum(a, b))
        np.testing.assert_array_equal(z[16:32], np.maximum(a, b))
        np.testing.assert_array_equal(z[32:48], np.maximum(a, F(0)))
        np.testing.assert_array_equal(z[48:64], np.minimum(F(1), a))
        np.testing.assert_array_equal(z[64:80], ((a < b) | (a > 2)).astype(F))
        np.testing.assert_array_equal(z[80:96], np.where((a <= b) & (a != b), a, b))
        np.testing.assert_array_equal(z[96:112], np.where(a >= b, a, F(7)))
        np.testing.assert_array_equal(z[112:128], np.isnan(a).astype(F))
        assert np.isnan(z[128])
        assert np.isnan(z[129])
    for z in outputs(infra_choice, [*np.roll(np.arange(16), turn), *b], 144):
        assert (z[128], z[129]) == (0, 15)


FRACTIONS = np.array([1, -1, 2, 3, -4, 5.75, -6.5, 7, 100.5, -90, 11, -12.25, 1.5, 14, -125, 126], F)
WHOLE = FRACTIONS.astype(np.int32)
MANTISSAS, EXPONENTS = np.frexp(abs(FRACTIONS))
PRODUCTS = np.rint(FRACTIONS * F(0.6))


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(0, WHOLE, id="whole numbers"),
        pytest.param(16, (9 * WHOLE - 5) ^ 3, id="shifts, sums and exclusive or"),
        pytest.param(32, (WHOLE >> 1) * WHOLE, id="shifts to the right and products"),
        pytest.param(48, abs(FRACTIONS), id="without the bit of the sign"),
        pytest.param(64, -abs(FRACTIONS), id="with the bit of the sign"),
        pytest.param(80, WHOLE & 1, id="choice by a bit"),
        pytest.param(96, np.exp2(np.rint(FRACTIONS.astype(np.float64))).astype(F), id="powers of two"),
        pytest.param(112, EXPONENTS - 1, id="exponents"),
        pytest.param(128, MANTISSAS * 2, id="mantissas"),
        pytest.param(160, PRODUCTS, id="rounded products"),
        pytest.param(176, np.exp2(PRODUCTS), id="powers of rounded products"),
    ],
)
def test_bit_operations_equal_numpy(start: int, expected: np.ndarray) -> None:
    for z in outputs(infra_bits, FRACTIONS, 192):
        np.testing.assert_array_equal(z[start : start + 16], expected)


def test_the_sum_of_all_lanes_agrees_with_numpy() -> None:
    for z in outputs(infra_bits, FRACTIONS, 192):
        np.testing.assert_allclose(z[144], FRACTIONS.sum(), rtol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 7, 15, 16, 40])
def test_part_touches_only_its_lanes(n: int) -> None:
    x = np.arange(1, min(n, 16) + 1, dtype=F)
    for z in outputs(infra_part, x, 32, n):
        np.testing.assert_array_equal(z[:16], np.pad(x, (0, 16 - len(x))))
        np.testing.assert_array_equal(z[16:], np.pad(x + 1, (0, 16 - len(x)), constant_values=9))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_chunks_and_turns_take_the_right_elements(n: int) -> None:
    x = np.arange(max(20, 10 + 9 * min(n, 2)), dtype=F)
    for z in outputs(infra_chunks, x, 232, n):
        fours, eights = [min(m, n - 1) for m in range(4)], [min(m, n - 1) for m in range(2)]
        np.testing.assert_array_equal(z[:16], np.concatenate([x[1 + 5 * m :][:4] for m in fours]))
        np.testing.assert_array_equal(z[16:32], np.concatenate([x[2 + 9 * m :][:8] for m in eights]))
        np.testing.assert_array_equal(z[32:48], [4 * (i // 4) + (i + 1) % 4 for i in range(16)])
        np.testing.assert_array_equal(z[48:64], [8 * (i // 8) + (i + 1) % 8 for i in range(16)])
        np.testing.assert_array_equal(z[64:80], [*range(0, 16, 2), *range(4, 20, 2)])
        np.testing.assert_array_equal(z[80:96], [*range(1, 32, 4), *range(9, 40, 4)])
        np.testing.assert_array_equal(z[96:112], np.repeat(x[n : n + 2], 8))
        np.testing.assert_array_equal(z[112:128], np.repeat(x[n : n + 4], 4))
        for start, by in ((128, 2), (144, 4), (160, 8)):
            np.testing.assert_array_equal(z[start : start + 16], [(i + by) % 16 for i in range(16)])
        np.testing.assert_array_equal(z[176:208], np.stack([x[1:17], x[4:20]], 1).ravel())
        np.testing.assert_array_equal(z[208:216], [(i + 1) * (i + 2) + i + 3 for i in range(8)])
        np.testing.assert_array_equal(z[216:232], np.tile(x[n : n + 2], 8))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_chunks_are_stored_in_two_places(n: int) -> None:
    x = np.arange(16, dtype=F)
    for z in outputs(infra_store_chunks, x, 80, n):
        expected = np.full(80, 9, F)
        for number in range(n):
            place = 4 * number + (1 if number in (0, 2) else 20)
            expected[place : place + 4] = x[4 * number :][:4]
        for number in range(min(n, 2)):
            place = 8 * number + (41 if number == 1 else 60)
            expected[place : place + 8] = x[8 * number :][:8]
        np.testing.assert_array_equal(z, expected)


def test_part_load_reads_nothing_past_the_end_of_a_page() -> None:
    import mmap

    page = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    memory = np.frombuffer(page, np.uint8)
    memory.view(F)[:] = NAN
    tail = memory[: mmap.PAGESIZE].view(F)[-3:]
    tail[:] = 1, 2, 3
    for z in outputs(infra_part, tail, 32, 3):
        np.testing.assert_array_equal(z[:16], [1, 2, 3, *[0] * 13])


def test_narrow_loads_widen_every_value() -> None:
    for start in range(-128, 112, 16):
        codes = np.arange(start, start + 16).astype(np.int8)
        for z in outputs(infra_int8, np.concatenate([[0], codes, [0] * 3]).astype(np.int8).view(F), 16):
            np.testing.assert_array_equal(z, codes)
    values = np.array([*SPECIAL[:8], 1e-39, -3e38, 2**-126, 65280, 1.0078125, -1e-40, 3, 0.1], F)
    halves = (values.view(np.uint32) >> 16).astype(np.uint16)
    expected = (halves.astype(np.uint32) << 16).view(F)
    for z in outputs(infra_bf16, np.concatenate([[0], halves, [0]]).astype(np.uint16).view(F), 16):
        np.testing.assert_array_equal(z, expected)


def test_pairs_of_bf16_are_read_as_they_were() -> None:
    bits = np.random.default_rng(1).integers(0, 1 << 16, 32).astype(np.uint16)
    bits[[0, 17]] = 0x8000, 0x7F80
    packed = simd.in_pairs(bits)
    expected = bits.astype(np.uint32) << 16
    for z in outputs(infra_bf16_pairs, np.concatenate([[0, 0], packed]).astype(np.uint16).view(F), 32):
        np.testing.assert_array_equal(z.view(np.uint32), expected)
    np.testing.assert_array_equal(simd.in_pairs(expected.view(F)).view(np.uint32), expected)


@pytest.mark.parametrize("one_instruction", [True, False])
def test_every_half_is_read_exactly(one_instruction: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Denormals too, though the machine takes those of float32 as zero; infinities and NaN are no weights."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = np.resize(halves[np.isfinite(halves)], 1 << 16)
    if not one_instruction:
        monkeypatch.setattr(simd_memory, "has_f16", lambda: False)
    read = infra_f16 if one_instruction else infra_f16_by_bits
    for z in outputs(read, halves.view(F), halves.size, halves.size):
        np.testing.assert_array_equal(z.view(np.uint32), halves.astype(F).view(np.uint32))


def test_python_lanes_refuse_mixed_kinds_and_are_values() -> None:
    floats = simd.vsplat(1.5)
    with pytest.raises(TypeError, match="of lanes of float32 and int32"):
        floats + simd.vtoint(floats)
    with pytest.raises(TypeError, match="of lanes of int32 and float32"):
        simd.vtoint(floats) + vsplat(1.0)
    with pytest.raises(TypeError, match="expected int32 lanes, got float32"):
        simd.vtofloat(floats)
    before = floats
    floats += 1
    assert np.asarray(before)[0] == 1.5
    assert np.asarray(floats)[0] == 2.5
    assert np.asarray(np.float32(2) * floats).dtype == F
