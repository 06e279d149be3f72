"""A lower bound of the delay of any stream of a module, by gradients: how far its frames look ahead."""

import functools
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from bench.torch_codes.author_run import author_copy
from bench.torch_codes.module_calls import call_module, draw_inputs
from bench.torch_codes.published_model import ModuleCase
from pulse.facts import Array
from pulse.models import PulsedModel, TypedModel

STREAM_EXAMPLES = 2
"""A stream has at least this many times the frames of the example."""
MAX_FRAMES = 400
"""Output frames whose dependence on the input is found, one by one."""
MAX_PULSES = 16
"""Pulses for which the first output frame that depends on them is found."""


def min_delay(
    call: Callable[[Any], Any], x: Array, axis: int, out_axis: int, pulse: int, frames: int, output: int = 0
) -> int | None:
    """Return a lower bound of any stream's delay of an output, in its frames, found by gradients.

    Frame j of the output depends on input frames up to one that the gradient of its sum shows. It cannot be in an
    earlier pulse than this one. All frames of the output are examined, or, if they are more than ``MAX_FRAMES``, the
    first one that depends on a pulse, for some pulses after those that frame 0 depends on.

    call    the module, in f64 if it can be: then small weights multiplied are not zero
    x       its input, longer than its frames look ahead
    pulse   input frames of a pulse; ``frames`` of the output are in one
    output  index of the output
    Returns  None for integers, which have no gradients
    """
    torch = import_module("torch")
    if x.dtype.kind != "f":
        return None
    leaf = torch.from_numpy(x.copy()).requires_grad_(True)
    result = call(leaf)
    first = [value for value in torch.utils._pytree.tree_leaves(result) if torch.is_tensor(value)][output]
    if not first.is_floating_point() or not first.requires_grad or not frames:
        return None
    weights = torch.rand(first.shape, generator=torch.Generator().manual_seed(0)) + 0.5
    rows = (first * weights).movedim(out_axis, 0).flatten(1).sum(1)
    count = rows.shape[0]

    @functools.cache
    def last_pulse(j: int) -> int:
        """Return the pulse of the last input frame that output frame j depends on."""
        (gradient,) = torch.autograd.grad(rows[j], leaf, retain_graph=True)
        sizes = np.abs(np.moveaxis(gradient.numpy(), axis, 0))
        positions = np.flatnonzero(sizes.reshape(x.shape[axis], -1).max(1))
        return int(positions[-1]) // pulse if positions.size else 0

    if count <= MAX_FRAMES:
        frames_tried = list(range(count))
    else:
        pulses = range(last_pulse(0) + 1, last_pulse(count - 1) + 1)[:MAX_PULSES]
        frames_tried = [0, *(bisect_left(range(count), index, key=last_pulse) for index in pulses)]
    return max((last_pulse(j) * frames - j for j in frames_tried if j < count), default=0)


def min_delay_of_case(case: ModuleCase, typed: TypedModel, pulsed: PulsedModel) -> int | None:
    """Return ``min_delay`` of the first output, for an input that is longer than its frames look ahead."""
    first, output = pulsed.inputs[0], pulsed.outputs[0]
    if len(typed.inputs) > 1 or first.axis is None or output.axis is None or not output.frames:
        return None
    ahead = -(-output.delay // output.frames) + MAX_PULSES
    example = draw_inputs(typed, case, 1)[first.name]
    if example.dtype.kind != "f":
        return None
    times = max(STREAM_EXAMPLES, -(-2 * ahead * pulsed.pulse // example.shape[first.axis]))
    x = draw_inputs(typed, case, STREAM_EXAMPLES if case.max_context else times)[first.name]
    index = 0 if case.outputs is None else case.outputs[0]
    try:
        wide = replace(case, module=author_copy(case.module).double())
        return _min_delay(wide, x.astype(np.float64), pulsed, index)
    except (RuntimeError, TypeError):  # a constant of its own is f32
        return _min_delay(case, x, pulsed, index)


def _min_delay(case: ModuleCase, x: Array, pulsed: PulsedModel, index: int) -> int | None:
    axis, output = pulsed.inputs[0].axis or 0, pulsed.outputs[0]
    run = functools.partial(call_module, case)
    return min_delay(lambda leaf: run([leaf]), x, axis, output.axis or 0, pulsed.pulse, output.frames, index)
