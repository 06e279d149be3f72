"""Where two results differ first, in words."""

from collections.abc import Mapping

import numpy as np

from pulse.facts import Array
from pulse.proof import ATOL, RTOL

STEPS = 8
"""How many steps of its type's precision a value may be off, where these are coarser than the tolerances."""


def wrong_elements(got: Array, expected: Array) -> Array | None:
    """Where two arrays of one shape differ by more than the order of summation explains; None where they agree.

    The absolute tolerance grows with the largest value, since small values may be differences of large ones.
    """
    if not np.issubdtype(expected.dtype, np.floating):
        wrong = got != expected
    else:
        wide, target = got.astype(np.float64), expected.astype(np.float64)
        largest = float(np.abs(target[np.isfinite(target)]).max(initial=1.0))
        step = STEPS * float(np.finfo(expected.dtype).eps)
        wrong = ~np.isclose(wide, target, max(RTOL, step), max(ATOL, step) * largest, equal_nan=True)
    return wrong if wrong.any() else None


def first_difference(
    module: Mapping[str, Array], model: Mapping[str, Array], example: Mapping[str, Array]
) -> str | None:
    """The first output that differs, and its first frame; None where all agree.

    module, model   the outputs of both by name, those of the module being right
    example         the module's for the example: frames are along the first axis whose length is another one there
    """
    if len(module) != len(model):
        return f"the module gives {len(module)} outputs, the model {len(model)}"
    for name, expected in module.items():
        got = model[name]
        if got.shape != expected.shape:
            return (
                f"output {name}: the module gives shape {list(expected.shape)}, the model {list(got.shape)}"
            )
        wrong = wrong_elements(got, expected)
        if wrong is not None:
            axis = _frame_axis(expected, example.get(name))
            place = _first(wrong, axis)
            frame = "" if axis is None else f"frame {place[axis]}, "
            return (
                f"output {name}, {frame}at {list(place)}: the module gives {float(expected[place]):.6g}, "
                f"the model {float(got[place]):.6g}"
            )
    return None


def _frame_axis(expected: Array, example: Array | None) -> int | None:
    if example is None or example.ndim != expected.ndim:
        return None
    return next((axis for axis in range(expected.ndim) if expected.shape[axis] != example.shape[axis]), None)


def _first(wrong: Array, axis: int | None) -> tuple[int, ...]:
    """The place of the first wrong element, the earliest frame first."""
    places = np.argwhere(wrong)
    place = places[0 if axis is None else int(np.argmin(places[:, axis]))]
    return tuple(int(index) for index in place)
