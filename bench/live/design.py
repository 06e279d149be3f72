"""What a design is given and what it gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pulse.program.program import Program
from streaming.latency import Latency


@dataclass(frozen=True)
class Setup:
    """What a design runs.

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
        """The time of a block."""
        return self.block_frames / self.rate_hz


@dataclass(frozen=True)
class Outcome:
    """What came of it.

    latency  of each block that was computed: from callback entry to the result; its deadline is the time of a block
    blocks   that the device gave
    dropped  of these: silence was played in their place, since there was no result
    flagged  callbacks for which the device flagged that it had lost or missed something
    """

    latency: Latency
    blocks: int
    dropped: int
    flagged: int


Design: TypeAlias = Callable[[Setup], Outcome]
"""Runs in a thread of its own, for as long as it is told."""
