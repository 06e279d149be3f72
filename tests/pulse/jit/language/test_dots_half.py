"""Sums of products of bfloat16: as plain Python, by the instruction, and by two fused products without one."""

import numpy as np
import pytest

from pulse.facts import Array
from pulse.jit.codegen import dots
from pulse.jit.language.dots import vdot_halves, vload_words, vstore_halves
from pulse.jit.language.raw import as_u16
from pulse.jit.language.simd import LANES, vload, vstore, vtoint, vzero
from pulse.jit.processor import has_features
from pulse.jit.registry import Kernel, named_kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.jit.rows.pointer import operand
from pulse.program.machine import machine
from pulse.program.table.table import TableBuilder, link
from pulse.support.bf16 import from_bf16, to_bf16
from tests.noise import next_noise
from tests.pulse.jit.assembly import host, llvm_code

COUNT = 64


class PairRows(Instruction):
    """Sums of products of pairs, those with one pair, and the nearest bfloat16 of floats."""

    total: Operand = reads("f32", COUNT)
    a: Operand = reads("i32", COUNT)
    b: Operand = reads("i32", COUNT)
    y: Operand = writes("f32", 5 * COUNT // 2)


def read_pairs(row: PairRows) -> None:
    total, a, b, y = row.total, row.a, row.b, row.y
    for i in range(0, COUNT, LANES):
        sums = vload(total, i)
        vstore(y, i, vdot_halves(sums, vload_words(a, i), vload_words(b, i)))
        vstore(y, COUNT + i, vdot_halves(sums, vload_words(a, i), b[0]))
        vstore_halves(as_u16(y + 2 * COUNT), i, sums)


by_instruction = named_kernel("infra_pairs")(read_pairs)
by_fused_products = named_kernel("infra_pairs_by_fused_products")(read_pairs)


def pairs(values: Array) -> Array:
    """Pack pairs of floats [..., 2] into words of two bf16."""
    return to_bf16(values).view(np.int32).ravel()


def outputs(kernel: Kernel, total: Array, a: Array, b: Array) -> list[Array]:
    """Python's output and the compiled one."""
    builder = TableBuilder()
    builder.add(kernel, *(operand(region, 0) for region in range(4)))
    table = builder.finish()
    python, compiled = np.zeros(5 * COUNT // 2, np.float32), np.zeros(5 * COUNT // 2, np.float32)
    with np.errstate(all="ignore"):
        machine.run_python(table, [array.view(np.uint8) for array in (total, a, b, python)])
    linked = link(table)
    bases = np.array([array.ctypes.data for array in (total, a, b, compiled)], np.int64)
    machine.run(linked.ctypes.data, 1, bases.ctypes.data)
    return [python, compiled]


def both_ways(monkeypatch: pytest.MonkeyPatch, total: Array, a: Array, b: Array) -> list[Array]:
    """The dots in Python, by the instruction if there is one, in Python again, and by fused products."""
    first = outputs(by_instruction, total, a, b)
    monkeypatch.setattr(dots, "is_fast_on_halves", lambda: False)
    return [*first, *outputs(by_fused_products, total, a, b)]


def test_every_way_gives_the_same_bits(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product of the second halves is added first; each sum is rounded once."""
    a, b = (next_noise(rng, COUNT, 2) * 2.0 ** rng.integers(-9, 9, (COUNT, 1)) for _ in "ab")
    total = next_noise(rng, COUNT) * 100
    total[0], total[1] = 1 + 2.0**-8, 1 + 3 * 2.0**-8
    wide = [from_bf16(to_bf16(array)).astype(np.float64) for array in (a, b)]
    expected = []
    for other in (wide[1], wide[1][:1]):
        products = wide[0] * other
        second = (total + products[:, 1]).astype(np.float32)
        expected.append((second + products[:, 0]).astype(np.float32))
    for y in both_ways(monkeypatch, total, pairs(a), pairs(b)):
        np.testing.assert_array_equal(y[: 2 * COUNT], np.concatenate(expected))
        np.testing.assert_array_equal(y[2 * COUNT :].view(np.uint16), to_bf16(total))


def test_infinities_and_nan_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    total = np.zeros(COUNT, np.float32)
    total[:4] = np.inf, -np.inf, np.nan, 3.4e38
    a, b = np.ones((2, COUNT, 2), np.float32)
    a[4:7, 0] = np.inf, np.nan, 3e38
    b[6, 0] = 1e10
    for y in both_ways(monkeypatch, total, pairs(a), pairs(b)):
        np.testing.assert_array_equal(
            y[:8], [np.inf, -np.inf, np.nan, np.float32(3.4e38), np.inf, np.nan, np.inf, 2]
        )
        nearest = from_bf16(y[2 * COUNT :].view(np.uint16))
        np.testing.assert_array_equal(nearest[:5], [np.inf, -np.inf, np.nan, np.inf, 0])


def test_only_a_processor_that_has_the_instruction_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ("vdpbf16ps" in host().assembly(llvm_code(by_instruction))) == has_features("avx512bf16")
    monkeypatch.setattr(dots, "is_fast_on_halves", lambda: False)
    assert "bf16" not in host().assembly(llvm_code(by_fused_products))


def test_python_takes_whole_numbers_only() -> None:
    with pytest.raises(TypeError, match="expected int32 lanes, got float32"):
        vdot_halves(vzero(), vtoint(vzero()), vzero())
