"""A model in some runtime, stepped pulse by pulse: one interface for all runtimes.

A peer runs on one thread, keeps its state, and takes and returns numpy arrays, so each figure includes the cost of the
runtime's public Python interface. Denormals count as zero in all of them.
"""

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.models.explicit import ChunkInput, Explicit

Array: TypeAlias = NDArray[Any]
Feed: TypeAlias = Mapping[str, Array]
"""One pulse of each input, by name."""
Outputs: TypeAlias = Mapping[str, Array]


class Peer(Protocol):
    """A model that runs pulse by pulse."""

    def step(self, feed: Feed) -> Outputs:
        """Run one pulse: return the outputs, which the caller owns; the peer keeps the state."""
        ...

    def delay(self, output: str) -> int | None:
        """Return the leading frames of an output to drop; None if it is this project's own delay."""
        ...


class Chunk:
    """An input of an explicit-state model: the frames of the past that it needs, and the new ones."""

    def __init__(self, name: str, chunk_input: ChunkInput, sample: Array) -> None:
        self.name, axis = name, chunk_input.axis or 0
        shape = list(np.atleast_1d(sample).shape)
        if chunk_input.context > shape[axis]:
            raise ValueError(f"{name}: a context of {chunk_input.context} frames is longer than a pulse")
        shape[axis] += chunk_input.context
        along = np.moveaxis(np.zeros(shape, sample.dtype), axis, 0)
        self._past, self._last = along[: chunk_input.context], along[len(along) - chunk_input.context :]
        self._new = np.moveaxis(along[chunk_input.context :], 0, axis)
        self.array = np.moveaxis(along, 0, axis).reshape(shape if sample.ndim else ())

    def push(self, feed: Feed) -> None:
        """Append new frames."""
        self._past[...] = self._last
        self._new[...] = feed[self.name]


def chunks(explicit: Explicit, sample: Feed) -> list[Chunk]:
    """Return the chunk of each input."""
    return [Chunk(name, chunk_input, sample[name]) for name, chunk_input in explicit.inputs.items()]
