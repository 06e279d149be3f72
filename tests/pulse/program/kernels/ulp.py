"""The errors of the vector functions; run as a module, it prints the table of docs/kernels.md."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import LANES, vload, vstore
from pulse.jit.registry import Kernel, named_kernel
from pulse.jit.rows.instruction import Instruction, Operand, reads, writes
from pulse.program.kernels import vmath, vmath_hyperbolic, vmath_trigonometry
from tests.formulas import sigmoid
from tests.pulse.program.kernels.rows import run_row

DOCS = Path(__file__).parents[4] / "docs" / "kernels.md"
NORMAL = float(np.finfo(np.float32).tiny)
ALL = (-math.inf, math.inf)
PI = float(np.nextafter(np.float32(math.pi), np.float32(0)))
BITS_OF_INFINITY = 0x7F800000
HOMES = (vmath, vmath_hyperbolic, vmath_trigonometry)
STEP = 97
"""The table measures one float32 in this many."""

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Function:
    """A vector function beside the same in float64, and the arguments for which its error in ulp is stated."""

    name: str
    reference: Callable[[Doubles], Doubles]
    domain: tuple[float, float] = ALL

    def points(self, step: int) -> Floats:
        """Every ``step``-th float32 of the domain, of both signs; a whole number of registers, no denormals."""
        sizes = np.arange(np.float32(NORMAL).view(np.uint32), BITS_OF_INFINITY, step, dtype=np.uint32)
        floats = sizes.view(np.float32)
        both = np.concatenate([-floats[::-1], floats])
        inside = both[(both >= self.domain[0]) & (both <= self.domain[1])]
        return inside[: len(inside) // LANES * LANES]

    def largest_error(self, step: int) -> tuple[float, float]:
        """Return the largest error in ulp of the float32 result and its argument; normal results only."""
        worst, where = 0.0, 0.0
        points = self.points(step)
        for part in np.array_split(points, max(1, len(points) // (1 << 20))):
            x = part[: len(part) // LANES * LANES]
            with np.errstate(all="ignore"):
                expected = self.reference(x.astype(np.float64))
                size = np.abs(expected.astype(np.float32))
            normal = np.isfinite(size) & (size >= NORMAL)
            outputs = compiled_values(self.name, x)[normal].astype(np.float64)
            error = np.abs(outputs - expected[normal]) / np.spacing(size[normal])
            if error.size and error.max() > worst:
                worst, where = float(error.max()), float(x[normal][error.argmax()])
        return worst, where


class Sweep(Instruction):
    """A function of n elements, whole vectors."""

    x: Operand = reads("f32", "n")
    y: Operand = writes("f32", "n")
    n: int


def sweep_kernel(name: str) -> Kernel:
    """A kernel that applies a vector function to an array."""
    function = next(getattr(home, name) for home in HOMES if hasattr(home, name))

    @named_kernel(f"vmath_{name}")
    def sweep(row: Sweep) -> None:
        x, y, n = row.x, row.y, row.n
        i = 0
        while i < n:
            vstore(y, i, function(vload(x, i)))
            i += LANES

    return sweep


def compiled_values(name: str, x: Floats, python: bool = False) -> Floats:
    """The function of an array whose size is a multiple of the lanes."""
    return run_row(Sweep(x=x, y=np.zeros_like(x), n=len(x)), SWEEPS[name], python=python)["y"]


def mish(x: Doubles) -> Doubles:
    return x * np.tanh(np.logaddexp(0, x))


FUNCTIONS = (
    Function("vexp", np.exp),
    Function("vexpm1", np.expm1),
    Function("vexpm1_negative", np.expm1, (-math.inf, 0.0)),
    Function("vlog", np.log),
    Function("log1p_unit", np.log1p, (0.0, 1.0)),
    Function("vsoftplus", lambda x: np.logaddexp(0, x)),
    Function("vtanh", np.tanh),
    Function("vsigmoid", sigmoid),
    Function("vmish", mish, (-87.0, math.inf)),
    Function("verf", np.vectorize(math.erf, otypes=[np.float64])),
    Function("verfc", np.vectorize(math.erfc, otypes=[np.float64])),
    Function("vsin", np.sin, (-PI, PI)),
    Function("vcos", np.cos, (-1.5, 1.5)),
    Function("vtan", np.tan, (-PI, PI)),
    Function("vasin", np.arcsin, (-1.0, 1.0)),
    Function("vacos", np.arccos, (-1.0, 1.0)),
    Function("vatan", np.arctan),
    Function("vsinh", np.sinh),
    Function("vcosh", np.cosh),
    Function("vlog1p", np.log1p, (-1.0, math.inf)),
    Function("vasinh", np.arcsinh),
    Function("vacosh", np.arccosh, (1.0, 4.0)),
    Function("vatanh", np.arctanh, (-1.0, 1.0)),
)
SWEEPS = {function.name: sweep_kernel(function.name) for function in FUNCTIONS} | {
    "vsign": sweep_kernel("vsign")
}


def stated_errors() -> dict[str, float]:
    """The largest errors in ulp that the table of the docs has."""
    rows = [line.split("|") for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    return {cells[1].strip(" `"): float(cells[3]) for cells in rows if len(cells) == 6}


def table(step: int) -> list[str]:
    """The table, in Markdown, over every ``step``-th float32; errors are rounded up."""
    lines = ["| function | arguments | largest error, ulp | at |", "|---|---|---|---|"]
    for function in FUNCTIONS:
        worst, where = function.largest_error(step)
        low, high = function.domain
        domain = "all" if function.domain == ALL else f"{low:.7g} … {high:.7g}".replace("inf", "∞")
        lines.append(f"| `{function.name}` | {domain} | {math.ceil(worst * 10) / 10:.1f} | {where:.6g} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table(STEP)))
