"""What a published code does by itself in PyTorch: its streaming mode, its speed, how far its frames look ahead."""

import copy
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from pulse.facts import Array

TIMED_S = 1.0
MOST_FRAMES = 400
"""Output frames whose dependence on the input is found, one by one."""


class AuthorStream(NamedTuple):
    """The author's streaming mode.

    begin   a new stream: a function from the pulses of the inputs to the outputs that are ready
    pulse   input frames of a call, if it is not any number
    """

    begin: Callable[[], Callable[..., Any]]
    pulse: int | None = None


class AuthorRun(NamedTuple):
    """What the author's streaming mode gave.

    error      the largest difference from the frames of another run, as a share of their largest value
    realtime   seconds of computing for a second of input
    """

    error: float
    realtime: float


def run_author(
    stream: AuthorStream,
    feeds: Sequence[tuple[Array, int | None]],
    pulse: int,
    wanted: Array,
    axis: int,
    rate_hz: float,
) -> AuthorRun:
    """Feed the author's streaming mode, pulse by pulse.

    feeds   arrays and their stream axes, None for those without
    wanted  frames of the first output
    """
    torch = import_module("torch")
    own = stream.pulse or pulse
    pulses = min(value.shape[place] // own for value, place in feeds if place is not None)
    made: list[Array] = []
    times: list[float] = []
    with torch.no_grad():
        call = stream.begin()
        for number in range(pulses):
            given = [
                torch.from_numpy(
                    np.ascontiguousarray(
                        value if place is None else value.take(range(number * own, number * own + own), place)
                    )
                )
                for value, place in feeds
            ]
            begin = time.perf_counter()
            result = call(*given)
            times.append(time.perf_counter() - begin)
            leaf = next(each for each in torch.utils._pytree.tree_leaves(result) if torch.is_tensor(each))
            made.append(leaf.numpy().copy())
    joined = np.concatenate(made, axis)
    frames = min(joined.shape[axis], wanted.shape[axis])
    known = wanted.take(range(frames), axis).astype(np.float64)
    error = np.abs(joined.take(range(frames), axis) - known).max(initial=0) / max(
        np.abs(known).max(initial=0), 1e-9
    )
    return AuthorRun(float(error), float(np.median(times)) * rate_hz / own)


def time_whole(call: Callable[[], Any], seconds: float) -> float:
    """Seconds of computing for a second of input, of which a call takes ``seconds``: the median of several calls."""
    times: list[float] = []
    until = time.perf_counter() + TIMED_S
    while not times or time.perf_counter() < until:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return float(np.median(times)) / seconds


def least_delay(
    call: Callable[[Any], Any], x: Array, axis: int, out_axis: int, pulse: int, frames: int
) -> int | None:
    """A bound below which no stream can be: the delay of the first output, in its frames, by gradients.

    Frame j of the output depends on input frames up to one that the gradient of its sum shows. It cannot be in an
    earlier pulse than this one. Frames of the first half of the input are looked at, up to ``MOST_FRAMES`` of them.

    call    the module
    x       its input
    pulse   input frames of a pulse; ``frames`` of the output are in one
    returns None for integers, which have no gradients
    """
    torch = import_module("torch")
    if x.dtype.kind != "f":
        return None
    given = torch.from_numpy(x.copy()).requires_grad_(True)
    result = call(given)
    first = next(each for each in torch.utils._pytree.tree_leaves(result) if torch.is_tensor(each))
    if not first.is_floating_point() or not first.requires_grad or not frames:
        return None
    weights = torch.rand(first.shape, generator=torch.Generator().manual_seed(0)) + 0.5
    rows = (first * weights).movedim(out_axis, 0).flatten(1).sum(1)
    half = rows.shape[0] // 2
    chosen = range(half) if half <= MOST_FRAMES else _spread(half, frames)
    least = 0
    for j in islice(chosen, 2 * MOST_FRAMES):
        (gradient,) = torch.autograd.grad(rows[j], given, retain_graph=True)
        seen = np.flatnonzero(
            np.abs(np.moveaxis(gradient.numpy(), axis, 0)).reshape(x.shape[axis], -1).max(1)
        )
        if seen.size:
            least = max(least, int(seen[-1]) // pulse * frames - j)
    return least


def _spread(half: int, frames: int) -> list[int]:
    """The first frames, and those at the begin of pulses: there the delay is decided."""
    begins = [j for first in range(0, half, frames) for j in range(max(first - 2, 0), min(first + 3, half))]
    return sorted({*range(MOST_FRAMES // 4), *begins[:MOST_FRAMES]})


def author_copy(module: Any) -> Any:
    """A module of its own: a streaming mode changes the one that has it."""
    return copy.deepcopy(module).eval()
