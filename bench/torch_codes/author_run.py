"""What a published model does by itself in PyTorch: its streaming mode, its speed, how far its frames look ahead."""

import copy
import functools
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from pulse.facts import Array

TIMED_S = 1.0
"""Seconds for which the author's calls are timed."""
MAX_FRAMES = 400
"""Output frames whose dependence on the input is found, one by one."""
MAX_PULSES = 16
"""Pulses for which the first output frame that depends on them is found."""


class AuthorStream(NamedTuple):
    """The author's streaming mode.

    begin   a new stream: a function from the pulses of the inputs to the outputs that are ready
    pulse   input frames of a call, if it is not any number
    """

    begin: Callable[[], Callable[..., Any]]
    pulse: int | None = None


class AuthorRun(NamedTuple):
    """The result of the author's streaming mode.

    error      the largest difference from the frames of another run, as a share of their largest value
    realtime   seconds of computing for a second of input
    """

    error: float
    realtime: float


def run_author(
    stream: AuthorStream,
    feeds: Sequence[tuple[Array, int | None]],
    pulse: int,
    expected: Array,
    axis: int,
    rate_hz: float,
) -> AuthorRun:
    """Feed the author's streaming mode, pulse by pulse.

    feeds     arrays and their stream axes, None for those without
    expected  frames of the first output
    """
    torch = import_module("torch")
    stream_pulse = stream.pulse or pulse
    pulses = min(value.shape[place] // stream_pulse for value, place in feeds if place is not None)
    pieces: list[Array] = []
    times: list[float] = []
    with torch.no_grad():
        call = stream.begin()
        for number in range(pulses):
            tensors = [
                torch.from_numpy(
                    np.ascontiguousarray(
                        value
                        if place is None
                        else value.take(
                            range(number * stream_pulse, number * stream_pulse + stream_pulse), place
                        )
                    )
                )
                for value, place in feeds
            ]
            started_s = time.perf_counter()
            result = call(*tensors)
            times.append(time.perf_counter() - started_s)
            leaf = next(leaf for leaf in torch.utils._pytree.tree_leaves(result) if torch.is_tensor(leaf))
            pieces.append(leaf.numpy().copy())
    joined = np.concatenate(pieces, axis)
    frames = min(joined.shape[axis], expected.shape[axis])
    reference = expected.take(range(frames), axis).astype(np.float64)
    error = np.abs(joined.take(range(frames), axis) - reference).max(initial=0) / max(
        np.abs(reference).max(initial=0), 1e-9
    )
    return AuthorRun(float(error), float(np.median(times)) * rate_hz / stream_pulse)


def time_whole(call: Callable[[], Any], seconds: float) -> float:
    """Return the seconds of computing for a second of input, when a call takes ``seconds``; the median of several."""
    times: list[float] = []
    until = time.perf_counter() + TIMED_S
    while not times or time.perf_counter() < until:
        started_s = time.perf_counter()
        call()
        times.append(time.perf_counter() - started_s)
    return float(np.median(times)) / seconds


def least_delay(
    call: Callable[[Any], Any], x: Array, axis: int, out_axis: int, pulse: int, frames: int, place: int = 0
) -> int | None:
    """Return a lower bound of any stream's delay of an output, in its frames, found by gradients.

    Frame j of the output depends on input frames up to one that the gradient of its sum shows. It cannot be in an
    earlier pulse than this one. Frames of the whole output are looked at: all of them, or where they are more than
    ``MAX_FRAMES``, the first one that depends on a pulse, for some pulses after those that frame 0 depends on.

    call    the module, in f64 if it can be: then small weights multiplied are not zero
    x       its input, longer than its frames look ahead
    pulse   input frames of a pulse; ``frames`` of the output are in one
    place   of the output that is looked at
    returns None for integers, which have no gradients
    """
    torch = import_module("torch")
    if x.dtype.kind != "f":
        return None
    leaf = torch.from_numpy(x.copy()).requires_grad_(True)
    result = call(leaf)
    first = [value for value in torch.utils._pytree.tree_leaves(result) if torch.is_tensor(value)][place]
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
        frames_tried = [0, *(bisect_left(range(count), number, key=last_pulse) for number in pulses)]
    return max((last_pulse(j) * frames - j for j in frames_tried if j < count), default=0)


def author_copy(module: Any) -> Any:
    """Return a copy of the module, since a streaming mode changes its module."""
    return copy.deepcopy(module).eval()
