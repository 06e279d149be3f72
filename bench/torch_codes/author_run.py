"""A published model by itself in PyTorch: its streaming mode and its speed."""

import copy
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from pulse.facts import Array

TIMED_S = 1.0
"""Seconds for which the author's calls are timed."""


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
    pulses = min(
        value.shape[stream_axis] // stream_pulse for value, stream_axis in feeds if stream_axis is not None
    )
    pieces: list[Array] = []
    times: list[float] = []
    with torch.no_grad():
        call = stream.begin()
        for index in range(pulses):
            tensors = [
                torch.from_numpy(
                    np.ascontiguousarray(
                        value
                        if stream_axis is None
                        else value.take(
                            range(index * stream_pulse, index * stream_pulse + stream_pulse), stream_axis
                        )
                    )
                )
                for value, stream_axis in feeds
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


def author_copy(module: Any) -> Any:
    """Return a copy of the module, since a streaming mode changes its module."""
    return copy.deepcopy(module).eval()
