"""Declared instructions: what emit checks, what the row is, what plain Python refuses, what the compiler gets."""

from collections.abc import Sequence

import numpy as np
import pytest

from pulse.jit.codegen.row import RowType
from pulse.jit.registry import named_kernel
from pulse.jit.rows.fields import fields_of
from pulse.jit.rows.instruction import (
    Instruction,
    Operand,
    OptionalOperand,
    RowFields,
    ScalesOperand,
    packed_weights,
    reads,
    repeated_group,
    updates,
    weight_scales,
    writes,
)
from pulse.jit.rows.pointer import operand, real_bits
from pulse.program.table.emitted import EmittedInstruction
from pulse.program.table.memory import Buffer, Region, TensorView
from tests.pulse.program.kernels.rows import run_both


class SumFields(RowFields):
    """Where a sum begins, and its factor."""

    start: int
    factor: float


class Sums(Instruction):
    """``y[k] = base + factor * sum(x[start:n])``, k < count, of its pair k; then the last one to ``last``."""

    n: int
    count: int
    x: Operand = reads("f32", "n")
    pairs: Sequence[SumFields] = repeated_group("count")
    y: Operand = updates("f32", "count")
    base: float
    last: SumFields
    also: OptionalOperand = writes("f32")

    def multiply_adds(self) -> int:
        return self.n * self.count


class Weighed(Instruction):
    """An instruction with packed weights."""

    W: Operand = packed_weights()
    x: Operand = reads(None)
    scales: ScalesOperand = weight_scales()


@named_kernel("tests_sums")
def sums(row: Sums) -> None:
    """Sum each pair."""
    x, y, pairs = row.x, row.y, row.pairs
    for k in range(row.count):
        total = 0.0
        for i in range(pairs[k].start, row.n):
            total += x[i]
        y[k] = row.base + pairs[k].factor * total
    y[0] = y[0] + row.last.factor


@named_kernel("tests_outside")
def read_beyond_end(row: Sums) -> None:
    """Read an element after the declared ones."""
    y = row.y
    y[0] = row.x[row.n]


@named_kernel("tests_writing")
def write_to_read(row: Sums) -> None:
    """Write to an operand that is only read."""
    x = row.x
    x[0] = 1.0


def tensor(size: int, dtype: type[np.generic] = np.float32) -> TensorView:
    return TensorView(Buffer(Region.ARENA, 8 * size), 0, (size,), (1,), np.dtype(dtype))


def make_sums(**other: object) -> Sums:
    defaults = {
        "n": 4,
        "count": 2,
        "x": tensor(4),
        "pairs": [SumFields(start=0, factor=2.0), SumFields(start=3, factor=0.5)],
        "y": tensor(2),
        "base": 0.25,
        "last": SumFields(start=7, factor=100.0),
        "also": None,
    }
    return Sums(**{**defaults, **other})  # type: ignore[arg-type]


def test_words_of_a_row_have_the_order_of_the_declaration() -> None:
    """Words have the order of the declaration; groups lie inside, and missing operands are 0."""
    row = make_sums()
    first, half = real_bits(2.0), real_bits(0.5)
    words = [4, 2, row.x, 0, first, 3, half, row.y, real_bits(0.25), 7, real_bits(100.0), 0]
    assert list(row.arguments()) == words
    assert [name for name, _ in row.fields_by_name()][3:7] == [
        "pairs[0].start",
        "pairs[0].factor",
        "pairs[1].start",
        "pairs[1].factor",
    ]
    assert [name for name, _, _ in row.operands()] == ["x", "y"]
    assert list(EmittedInstruction(row, "node", "Op").operands) == [row.x, row.y]


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        pytest.param(
            {"x": tensor(4, np.float64)}, TypeError, r"Sums\.x: a tensor of float64, not f32", id="type"
        ),
        pytest.param({"x": tensor(3)}, ValueError, r"Sums\.x: 3 elements, of 4", id="size"),
        ({"pairs": []}, ValueError, r"Sums\.pairs: 0 groups where count says 2"),
        ({"n": 4.0}, TypeError, "cannot be interpreted as an integer"),
        ({"z": 1}, TypeError, "unexpected keyword argument 'z'"),
    ],
)
def test_values_that_differ_from_the_declaration_are_refused(
    other: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make_sums(**other)


def test_fields_of_parts_and_after_them_are_read() -> None:
    """They are read as plain Python and compiled."""
    row = make_sums(x=np.arange(4, dtype=np.float32), y=np.zeros(2, np.float32))
    for arrays in run_both(row, sums):
        assert arrays["y"].tolist() == [112.25, 1.75]


def test_plain_python_checks_the_declaration() -> None:
    """The region continues after the four elements that are declared."""
    words = [0, 14, 4, 2, operand(0, 0), 0, real_bits(2.0), 3, real_bits(0.5), operand(0, 32), *[0] * 4]
    region = np.zeros(64, np.uint8)
    sums.python(words, [region])
    with pytest.raises(IndexError, match="elements 4 to 5"):
        read_beyond_end.python(words, [region])
    with pytest.raises(ValueError, match="read-only"):
        write_to_read.python(words, [region])


def test_each_form_of_weights_has_a_kernel_of_its_own() -> None:
    """Named by the form of the row's weights; the types that the compiler gets differ."""

    @named_kernel("tests_weighed")
    def kernel_of_forms(row: Weighed) -> None:
        pass

    assert {form: kernel.name for form, kernel in kernel_of_forms.forms.items()} == {
        "f32": "tests_weighed",
        "f16": "tests_weighed_f16",
        "bf16": "tests_weighed_bf16",
        "int8": "tests_weighed_int8",
    }
    rows = {form: str(RowType(Weighed, form)) for form in kernel_of_forms.forms}
    assert len(set(rows.values())) == 4
    for dtype, name in ((np.float32, ""), (np.float16, "_f16"), (np.uint16, "_bf16"), (np.int8, "_int8")):
        row = Weighed(W=tensor(1, dtype), x=tensor(1, np.int64), scales=None)
        assert row.kernel_name == f"tests_weighed{name}"


def test_the_type_includes_the_layout() -> None:
    """The type is in a kernel's fingerprint, so a kernel compiled for another layout is not taken for this one."""

    def declare(*names: str) -> type[Instruction]:
        return type("Declared", (Instruction,), {"__annotations__": dict.fromkeys(names, int)})

    assert str(RowType(declare("a", "b"))) == str(RowType(declare("a", "b")))
    assert str(RowType(declare("a", "b"))) != str(RowType(declare("b", "a")))
    assert [field.word for field in fields_of(declare("a", "b")).values()] == [2, 3]
