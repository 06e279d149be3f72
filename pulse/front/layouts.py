"""Layouts of spectra: the order of frequencies, time and the two parts of a complex number."""

from itertools import permutations

from pulse.front.builder import FunctionBuilder
from pulse.front.parameter_checks import require_choice
from pulse.graph import OutletId

COMPLEX = (*tuple(",".join(order) for order in permutations(("F", "T", "2"))), "2F,T", "T,2F")
"""Layouts of complex spectra, after the batch axis: F frequencies, T frames, 2 real and imaginary part; 2F: all real
parts, then all imaginary ones."""
REAL = ("F,T", "T,F")
PARTS = ("complex", "apart", "polar")
"""One tensor of both parts; real and imaginary part each; magnitude and phase."""


def check_layout(function: str, layout: object, parts: object) -> tuple[str, str]:
    """Return the layout and the parts, checked. Raises InputError: unknown, or they do not go together."""
    kind = require_choice(function, "parts", parts, PARTS)
    if kind == "complex":
        return require_choice(function, "layout", layout, COMPLEX), kind
    axes = "F,T" if layout == "F,T,2" else layout
    return require_choice(function, f"layout of parts={kind!r}", axes, REAL), kind


def arrange(builder: FunctionBuilder, x: OutletId, layout: str) -> OutletId:
    """Return a spectrum [B, T, 2F], real parts first, in another layout."""
    batch, frames, both = builder.shape(x)
    axes = layout.split(",")
    if "2F" in axes:
        return builder.transpose(x, (0, 2, 1) if axes[0] == "2F" else (0, 1, 2))
    x = builder.reshape(x, batch, frames, 2, both // 2)
    return builder.transpose(x, (0, *(1 + ("T", "2", "F").index(axis) for axis in axes)), "spectrum")


def gather(builder: FunctionBuilder, x: OutletId, layout: str) -> OutletId:
    """Return the reverse: a spectrum of a layout as [B, T, 2F]."""
    axes = layout.split(",")
    builder.require_rank(x, len(axes) + 1, example(layout, 257))
    if "2F" in axes:
        return builder.transpose(x, (0, 2, 1) if axes[0] == "2F" else (0, 1, 2))
    if builder.require_fixed(x, 1 + axes.index("2"), "real and imaginary part") != 2:
        raise builder.error(f"layout={layout!r} of shape {builder.text(x)!r} does not have 2 parts")
    x = builder.transpose(x, (0, *(1 + axes.index(axis) for axis in ("T", "2", "F"))))
    return builder.join_axes(x)


def arrange_real(builder: FunctionBuilder, x: OutletId, layout: str) -> OutletId:
    """Return ``[B, T, F]`` in a layout of real numbers."""
    return builder.transpose(x, (0, 2, 1) if layout == "F,T" else (0, 1, 2))


def gather_real(builder: FunctionBuilder, x: OutletId, layout: str) -> OutletId:
    """Return the reverse: real numbers of a layout as [B, T, F]."""
    builder.require_rank(x, 3, example(layout, 257))
    return builder.transpose(x, (0, 2, 1) if layout == "F,T" else (0, 1, 2))


def example(layout: str, bins: int) -> str:
    """Return the shape of a spectrum of one signal."""
    sizes = {"F": str(bins), "T": "frames", "2": "2", "2F": str(2 * bins)}
    return ",".join(["1", *(sizes[axis] for axis in layout.split(","))])
