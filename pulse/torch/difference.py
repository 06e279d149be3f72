"""Describe where a module and a model first differ."""

from collections.abc import Mapping

import numpy as np

from pulse.facts import Array
from pulse.proof.tolerance import PERTURBED_RUNS, ExpectedOutputs
from pulse.support.wording import count_of


def first_difference(
    module: Mapping[str, Array],
    model: ExpectedOutputs,
    example: Mapping[str, Array],
    runs: int = PERTURBED_RUNS,
) -> str | None:
    """Return the first output that differs, and its first frame; None if all agree.

    module   its outputs by name
    model    the model's outputs for the same inputs, and how far rounding may move them
    example  the module's outputs for the example: frames are along the first axis whose length differs
    runs     runs of the model with random errors, if the result is not clear without
    """
    if len(module) != len(model.native):
        return f"the module returns {count_of(len(module), 'output')}, the model {len(model.native)}"
    for name, value in module.items():
        native = model.native[name]
        if value.shape != native.shape:
            return (
                f"output {name}: the module returns shape {list(value.shape)}, the model {list(native.shape)}"
            )
        axis = _frame_axis(value, example.get(name))
        wrong = model.judge(name, value.astype(native.dtype, copy=False), axis, runs).wrong
        if wrong is not None:
            location = _first_index(wrong, axis)
            frame = "" if axis is None else f"frame {location[axis]}, "
            return (
                f"output {name}, {frame}at {list(location)}: the module returns {float(value[location]):.6g}, "
                f"the model {float(native[location]):.6g}"
            )
    return None


def _frame_axis(value: Array, example: Array | None) -> int | None:
    if example is None or example.ndim != value.ndim:
        return None
    return next((axis for axis in range(value.ndim) if value.shape[axis] != example.shape[axis]), None)


def _first_index(wrong: Array, axis: int | None) -> tuple[int, ...]:
    """Return the index of the first wrong element, the earliest frame first."""
    locations = np.argwhere(wrong)
    location = locations[0 if axis is None else int(np.argmin(locations[:, axis]))]
    return tuple(int(index) for index in location)
