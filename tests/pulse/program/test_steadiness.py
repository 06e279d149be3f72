"""Compiled kernels, looked at from inside: nothing is allocated, and lanes are vector registers."""

import re
from functools import cache
from typing import Any

import pytest
from numba.core.ccallback import CFunc

from pulse.program.kernels import families
from pulse.program.kernels.registry import KERNELS, OPTIONS, SIGNATURE

assert families.__all__

ALLOCATORS = re.compile(
    r"\bNRT_\w+|\bPy(?:Object_Malloc|Mem_\w+|List_\w+|Tuple_New|Float_From\w+|Long_From\w+)\b|\bmalloc\b"
)
QUICK = ("tick", "move", "keep_frame", "table_rows", "layernorm_rows", "softmax_rows")
"""Kernels that are compiled in a moment."""
SCALAR = {"tick", "move", "table_rows", "last_frames", "top_rows", "cumsum", "keep_frame"}
"""Kernels that move bytes by whole rows, or count: everything else works in lanes."""


@cache
def fresh(name: str) -> tuple[str, str]:
    """LLVM and assembly of a kernel, compiled without the disk."""
    arguments: Any = (SIGNATURE.args, SIGNATURE.return_type)
    callback: Any = CFunc(KERNELS[name].function, arguments, locals={}, options={"nopython": True, **OPTIONS})
    callback.compile()
    return callback._library.get_llvm_str(), callback._library.get_asm_str()


def vector_registers() -> str:
    """The widest registers that this processor has, as its assembly names them."""
    from numba.core.registry import cpu_target

    codegen = cpu_target.target_context.codegen()
    features = codegen.magic_tuple()[2].split(",")
    if "x86" not in codegen.magic_tuple()[0]:
        return r"\bv\d+\.(?:4s|2d|16b)"
    for feature, registers in (("+avx512f", r"%?zmm\d"), ("+avx", r"%?ymm\d")):
        if feature in features:
            return registers
    return r"%?xmm\d"


def check(name: str) -> None:
    """No allocation; vector registers where the kernel has lanes."""
    llvm, assembly = fresh(name)
    assert f"{name}" in llvm
    assert not ALLOCATORS.findall(llvm), name
    if name not in SCALAR:
        assert re.search(vector_registers(), assembly), name


@pytest.mark.parametrize("name", QUICK)
def test_quick_kernels_allocate_nothing(name: str) -> None:
    """Those that are compiled in a moment."""
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(KERNELS) - set(QUICK)))
def test_kernels_allocate_nothing(name: str) -> None:
    """All others; about 25 s."""
    if name.startswith("infra_") or "." in KERNELS[name].function.__module__.removeprefix(
        "pulse.program.kernels."
    ):
        pytest.skip("a kernel of other tests")
    check(name)


def test_the_pattern_finds_an_allocation() -> None:
    """A function that makes an array has what kernels must not have."""
    import numba
    import numpy as np

    def allocating(n: int) -> float:
        return np.zeros(n).sum()

    compiled: Any = numba.njit(allocating)
    compiled.compile("float64(int64)")
    (llvm,) = compiled.inspect_llvm().values()
    assert ALLOCATORS.findall(llvm)
