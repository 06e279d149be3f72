"""Small GRUs that do not depend on each other, side by side in one vector."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pulse.jit.language.simd import (
    LANES,
    Vector,
    vfma,
    vload,
    vload_eights,
    vload_fours,
    vmax,
    vmin,
    vrotate_eights,
    vrotate_fours,
    vsplat,
    vstore,
    vstore_eights,
    vstore_fours,
    vzero,
)
from pulse.jit.registry import device, kernel
from pulse.jit.rows.instruction import Operand, reads
from pulse.jit.rows.pointer import Pointer
from pulse.jit.rows.span import Reach, require, run
from pulse.ops.recurrent_gates import GATE_COUNTS
from pulse.program.kernels.recurrent.gates import SIGMOID, TANH, GruActivations, activate
from pulse.program.kernels.recurrent.layer import (
    ActivationFields,
    RecurrentFields,
    load_activations,
    prepare_frames,
)

GATES = GATE_COUNTS["gru"]
STRIDE = GATES * LANES
"""The weights of a rotation."""


def pack_small(matrices: list[NDArray[Any]], width: int) -> NDArray[np.float32]:
    """Pack the recurrent weights [3*H, H] of each GRU, H up to ``width``, in the order that the kernels read.

    The result is [rotations, 3, 16]. After t rotations, lane u is multiplied by the weight of unit u + t.
    """
    packed = np.zeros((width, GATES, LANES // width, width), np.float32)
    units = np.arange(width)
    for number, matrix in enumerate(matrices):
        size = matrix.shape[1]
        square = np.zeros((GATES, width, width), np.float32)
        square[:, :size, :size] = matrix.reshape(GATES, size, size)
        for by in range(width):
            packed[by, :, number] = square[:, units, (units + by) % width]
    return packed.reshape(-1)


class SmallGruFields(RecurrentFields):
    """Several GRUs as ``GruRow``, each in its own lanes: ``z r = f(...); c = g(x + r * (h @ W + bias))``.

    x are the frames times the input weights of each GRU, with the biases outside gate products: [T, B, 3 * width],
    dense, those of the next GRU ``step_x`` elements later. Their state is one vector, H is 16, and W is from
    ``pack_small``. GRU i runs backwards if bit i of ``backwards`` is set: its x begins with the last frame. Lanes of y
    after the last GRU are undefined.
    """

    width: ClassVar[int]
    """The units of each GRU."""
    count: int
    x: Operand = reads("f32")
    step_x: int
    backwards: int
    W: Operand = reads("f32")
    bias: Operand = reads("f32", LANES)
    f: ActivationFields
    g: ActivationFields

    def multiply_adds(self) -> int:
        return GATES * self.T * self.B * self.count * self.width * self.width

    def reaches(self) -> Iterator[Reach]:
        require(self.H == LANES and 0 < self.count <= LANES // self.width, "more GRUs than a vector holds")
        yield from super().reaches()
        yield self.y, run(self.T, self.step_frame) + run(self.B * LANES)
        yield self.x, run(self.count, self.step_x) + run(self.T * self.B * GATES * self.width)
        yield self.W, run(self.width * STRIDE)


class GruFoursRow(SmallGruFields):
    """Up to four GRUs of up to four units."""

    width = 4


class GruEightsRow(SmallGruFields):
    """Up to two GRUs of up to eight units."""

    width = 8


def make_sum(width: int, rotate_units: Callable[[Vector], Vector]) -> Callable[..., Any]:
    """Make the function that sums over the ``width`` units of each GRU."""

    @device
    def sum_units(v: Vector, w: Pointer, z: Vector, r: Vector, c: Vector) -> tuple[Vector, Vector, Vector]:
        """Return the sums of three gates, added to z, r and c."""
        z1, r1, c1 = vzero(), vzero(), vzero()
        for by in range(0, width, 2):
            p = w + by * STRIDE
            z, r, c = vfma(v, vload(p, 0), z), vfma(v, vload(p, 16), r), vfma(v, vload(p, 32), c)
            v = rotate_units(v)
            z1, r1, c1 = vfma(v, vload(p, 48), z1), vfma(v, vload(p, 64), r1), vfma(v, vload(p, 80), c1)
            v = rotate_units(v)
        return z + z1, r + r1, c + c1

    return sum_units


@device
def tanh_fraction(x: Vector, limit: float, square: float, scale: float) -> tuple[Vector, Vector]:
    """Return two numbers whose product is ``scale * x * tanh(u) / u``, u = sqrt(square) * x, |x| <= limit; 5 ulp.

    The second one is a quotient, which takes longest: what follows is multiplied by the first one meanwhile. ``limit``
    is 8.5 / sqrt(square); beyond it, it is x. The result may exceed 1 by 1.2e-7.
    """
    x = vmin(vmax(x, -limit), limit)
    a, s, s2 = x * x, square, square * square
    a2 = a * a
    low = vfma(a, scale * s * 0.131062731, vsplat(scale))
    middle = vfma(a, scale * s * s2 * 1.14193299e-05, vsplat(scale * s2 * 0.00312892324))
    high = vfma(a, scale * s * s2 * s2 * 5.83409293e-11, vsplat(scale * s2 * s2 * -2.13322746e-08))
    high = vfma(a2, scale * s2 * s2 * s2 * -9.99319849e-14, high)
    low = vfma(middle, a2, low)
    below = vfma(a, s * 0.46439603, vsplat(1.0))
    below = vfma(vfma(a, s * s2 * 0.000258270913, vsplat(s2 * 0.0245943144)), a2, below)
    return vfma(high, a2 * a2, low), x / below


@device
def sigmoid_tanh_state(v: Vector, z: Vector, r: Vector, c: Vector, x: Vector) -> Vector:
    """Return the state of the next frame with sigmoid and tanh, by the shortest chain of dependent operations."""
    r_factor, r_quotient = tanh_fraction(r, 17.0, 0.25, 0.25)
    z_factor, z_quotient = tanh_fraction(z, 17.0, 0.25, 0.25)
    inner = vfma(r_factor * c, r_quotient, vfma(c, 0.5, x))
    factor, quotient = tanh_fraction(inner, 8.5, 1.0, 1.0)
    z = vfma(z_factor, z_quotient, vsplat(0.5))
    return vfma((1.0 - z) * factor, quotient, z * v)


@device
def next_state(v: Vector, z: Vector, r: Vector, c: Vector, x: Vector, cell: GruActivations) -> Vector:
    f, g, clip = cell
    if f[0] == SIGMOID and g[0] == TANH and clip == 0.0:
        return sigmoid_tanh_state(v, z, r, c, x)
    candidate = activate(vfma(activate(r, f, clip), c, x), g, clip)
    return vfma(activate(z, f, clip), v - candidate, candidate)


def make_frames(
    width: int, load: Callable[..., Vector], sum_units: Callable[..., Any], store: Callable[..., None]
) -> Callable[..., None]:
    """Make the function that computes the frames of GRUs of ``width`` units."""

    @device
    def compute_frames(row: SmallGruFields) -> None:
        """Compute the frames of each sequence in order, with its state in a register."""
        x, w, y, h, cell = row.x, row.W, row.y, row.h, load_activations(row)
        T, B, frame, count, step, mask = row.T, row.B, row.step_frame, row.count, row.step_x, row.backwards
        bias = vload(row.bias, 0)
        start, stop = prepare_frames(row)
        for b in range(B):
            v, p, q = vload(h, b * LANES), x + (start * B + b) * (GATES * width), y + b * row.step_row
            for t in range(start, stop):
                z, r = load(p, 0, step, count), load(p, width, step, count)
                z, r, c = sum_units(v, w, z, r, bias)
                v = next_state(v, z, r, c, load(p, 2 * width, step, count), cell)
                if mask == 0:
                    vstore(q, t * frame, v)
                else:
                    store(q, t * frame, (T - 1 - t) * frame, count, v, mask)
                p = p + B * (GATES * width)
            vstore(h, b * LANES, v)

    return compute_frames


compute_fours = make_frames(4, vload_fours, make_sum(4, vrotate_fours), vstore_fours)
compute_eights = make_frames(8, vload_eights, make_sum(8, vrotate_eights), vstore_eights)


@kernel
def gru_fours(row: GruFoursRow) -> None:
    compute_fours(row)


@kernel
def gru_eights(row: GruEightsRow) -> None:
    compute_eights(row)
