"""Functions of a table that a number chooses at run time: as plain Python, and compiled."""

import numpy as np
import pytest

from pulse.jit.language.dispatch import chooser
from pulse.jit.language.simd import vfma, vload, vmax, vstore
from pulse.jit.registry import kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from tests.pulse.program.kernels.rows import run_both

choose_infra = chooser(
    "choose_infra", [lambda a: vmax(a, 0.0), lambda a, b: a * b, lambda a, p, q: vfma(a, p, q)]
)


class InfraChooserRow(Instruction):
    """``y = choose(code, a, b, 2, 3)``."""

    a: Operand = reads("f32", 16)
    b: Operand = reads("f32", 16)
    y: Operand = writes("f32", 16)
    code: int


@kernel
def infra_chooser(row: InfraChooserRow) -> None:
    a, b, y, code = row.a, row.b, row.y, row.code
    vstore(y, 0, choose_infra(code, vload(a, 0), vload(b, 0), 2.0, 3.0))


@pytest.mark.parametrize("code", [0, 1, 2, 3, -1])
def test_numbers_outside_the_table_choose_the_last_function(code: int) -> None:
    a, b = np.arange(-8, 8, dtype=np.float32), np.linspace(1, 2, 16, dtype=np.float32)
    expected = (np.maximum(a, 0), a * b, 2 * a + 3)[code if 0 <= code < 2 else 2]
    for after in run_both(InfraChooserRow(a=a, b=b, y=np.zeros(16, np.float32), code=code)):
        np.testing.assert_array_equal(after["y"], expected)
