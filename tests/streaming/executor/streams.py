"""Programs that are made once, and helpers that feed and collect streams of an executor."""

import contextlib
import functools
import gc
import os
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np

from pulse.facts import Array
from pulse.program.program import Program
from streaming.executor.executor_statistics import ExecutorStatistics
from streaming.executor.stream import Stream
from tests.streaming.models import (
    cached_program,
    decimating_model,
    ending_model,
    filter_model,
    limited_model,
    two_rate_model,
)

MODELS = {
    "filtered": filter_model,
    "decimated": decimating_model,
    "ending": ending_model,
    "two_rates": two_rate_model,
    "short": functools.partial(limited_model, 10),
}


def named_program(name: str, pulse: int, backend: str = "numba") -> Program:
    """The program of one of the small models, by its name; made once."""
    return cached_program(MODELS[name], pulse, backend)


def join_pieces(pieces: list[dict[str, Array]], program: Program) -> dict[str, Array]:
    """Output name -> joined frames, or the last value of an output that does not stream."""
    outputs = {}
    for port in program.outputs:
        arrays = [piece[port.name] for piece in pieces if port.name in piece]
        if port.streams and arrays:
            outputs[port.name] = np.concatenate(arrays, port.axis)
        elif arrays:
            (outputs[port.name],) = arrays
    return outputs


def assert_balanced(statistics: ExecutorStatistics) -> None:
    assert statistics.frames_in == (
        statistics.frames_out
        + statistics.frames_dropped
        + statistics.frames_discarded
        + statistics.frames_in_flight
    )


async def collect(stream: Stream) -> list[dict[str, Array]]:
    return [outputs async for outputs in stream]


async def blocks(x: Array, axis: int, cuts: Any) -> AsyncIterator[Any]:
    """An async source: ``x`` in pieces that end at ``cuts``, each overwritten when the next one is asked for."""
    for piece in np.split(x, sorted(cuts), axis):
        block = piece.copy()
        yield block
        block[...] = np.nan


def threads() -> set[Any]:
    """The threads of this process, without helpers of event loops, which start and end when they like."""
    helpers = "Trio thread", "AnyIO worker thread"
    return {thread for thread in threading.enumerate() if not thread.name.startswith(helpers)}


def _open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


@contextlib.contextmanager
def assert_nothing_left() -> Iterator[None]:
    """Fail if threads of engines or descriptors are left over."""
    before, descriptors = set(threading.enumerate()), len(_open_descriptors())
    yield
    left = [thread.name for thread in set(threading.enumerate()) - before]
    assert "pulse engine" not in left
    if len(_open_descriptors()) > descriptors:
        gc.collect()
    assert len(_open_descriptors()) <= descriptors
