"""The setup that a design runs, and its outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench.live.steal_monitor import StolenTime
from pulse.program.program import Program
from streaming.latency import LatencyHistogram


@dataclass(frozen=True)
class Setup:
    """What a design runs: program, device and sizes.

    program  one pulse is one block of the device; one input and one output, sound of one channel at the same rate
    device   sounddevice's index, of an input and output
    """

    program: Program
    device: int
    rate_hz: int
    block_frames: int
    seconds: float

    @property
    def block_s(self) -> float:
        """The duration of a block."""
        return self.block_frames / self.rate_hz


@dataclass(frozen=True)
class Outcome:
    """The outcome of a run.

    times_ns  int64 [n, 2], for each computed block: when the callback was entered, and when the result was there
    block_s   the time of a block, which is the deadline
    blocks    blocks that the device delivered
    dropped   blocks without a result in time: silence was played in their place
    flagged   callbacks for which the device flagged that it had lost or missed something
    """

    times_ns: NDArray[np.int64]
    block_s: float
    blocks: int
    dropped: int
    flagged: int

    def latency(self, stolen: StolenTime) -> LatencyHistogram:
        """Return the time from callback entry to the result, without the stolen time."""
        latency = LatencyHistogram(self.block_s)
        for ns in (np.diff(self.times_ns, axis=1).ravel() - stolen.taken_ns(self.times_ns)).tolist():
            latency.record_ns(ns)
        return latency


Design: TypeAlias = Callable[[Setup], Outcome]
"""Runs in its own thread, for the seconds of the setup."""
