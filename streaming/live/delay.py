"""The delay of a frame in the pipeline by stage, fixed before the first block."""

from fractions import Fraction
from math import ceil, floor, gcd, lcm

import numpy as np
from numpy.typing import NDArray

from pulse.support.record import record

HEADROOM_S = 0.005
"""The default time in seconds that a worker may take to respond, rounded up to whole blocks."""
MAX_PERIOD_STEPS = 1 << 22
"""Maximum number of steps until blocks and pulses of different rates align; beyond it, the delay has an upper bound."""


@record
class PlannedDelay:
    """The delay of the output by stage, in frames at the device's output rate.

    A device that delivers block k of input takes block k of output at once. Output must start so much later that
    each pulse has its input in time:

    reblocking_frames      the wait until a pulse is full: with blocks of B frames and pulses of P (in device frames)
                           P - gcd(P, B), or P - 1 if B is unknown
    resampling_frames      the look-ahead of both resamplers' filters
    headroom_frames        the time that the worker may take to respond
    preroll_model_frames   silence to feed the model first, in frames of the model: it aligns the ends of the pulses
                           with the first resampler's blocks, which saves up to a pulse; part of ``resampling_frames``
    preroll_device_frames  the same in frames of the device
    """

    reblocking_frames: int
    resampling_frames: int
    headroom_frames: int
    preroll_model_frames: int = 0
    preroll_device_frames: int = 0

    @property
    def frames(self) -> int:
        """The sum of re-blocking, resampling and headroom."""
        return self.reblocking_frames + self.resampling_frames + self.headroom_frames


@record
class Timing:
    """The sizes and rates that determine the delay.

    pulse_frames         frames of a pulse of the model
    block_frames         device frames in a block; 0 if unknown or variable
    rate_hz              the rate of the model
    rate_in_hz, rate_out_hz  the rates of the device
    ahead_in_frames, ahead_out_frames  the look-ahead of each resampler's filter, in frames at the rate of its input
    """

    pulse_frames: int
    block_frames: int
    rate_hz: int
    rate_in_hz: int
    rate_out_hz: int
    ahead_in_frames: int = 0
    ahead_out_frames: int = 0

    def plan_delay(self, headroom_s: float | None, worker: bool, two_clocks: bool = False) -> PlannedDelay:
        """Return the smallest delay that works, without a pre-roll or with one of the first resampler's look-ahead.

        headroom_s  the time that a worker may take to respond; None: the default
        worker      whether a worker runs the model, and not the callback
        two_clocks  whether input and output have their own clocks, which costs two blocks
        """
        headroom = self._headroom(headroom_s) if worker else 0
        if two_clocks:
            headroom += 2 * (self.block_frames or self.in_device_frames(self.pulse_frames))
        min_wait = self._longest_wait(0, 0, 0)
        ahead = -(-self.ahead_in_frames * self.rate_hz // self.rate_in_hz) % self.pulse_frames
        waits = {
            preroll: self._longest_wait(self.ahead_in_frames, self.ahead_out_frames, preroll)
            for preroll in dict.fromkeys((0, ahead))
        }
        preroll = min(waits, key=lambda candidate: waits[candidate])
        return PlannedDelay(
            min_wait, waits[preroll] - min_wait, headroom, preroll, self.in_device_frames(preroll)
        )

    def in_device_frames(self, frames: int) -> int:
        """Convert frames of the model to the device's output rate."""
        return -(-frames * self.rate_out_hz // self.rate_hz)

    def _headroom(self, wanted_s: float | None) -> int:
        block = max(self.block_frames, 1)
        frames = ceil((HEADROOM_S if wanted_s is None else wanted_s) * self.rate_out_hz - 1e-9)
        return max(-(-frames // block), 1) * block

    def _longest_wait(self, ahead_in_frames: int, ahead_out_frames: int, preroll: int) -> int:
        """Return the most output frames by which the device is ahead of the model, over all blocks, with this pre-roll.

        The pattern of steps is periodic, so one period is enough.
        """
        pulse, in_hz, hz, out_hz = self.pulse_frames, self.rate_in_hz, self.rate_hz, self.rate_out_hz
        if in_hz == hz == out_hz and not ahead_in_frames and not ahead_out_frames:
            return pulse - gcd(pulse, max(self.block_frames, 1))
        period = lcm(in_hz * pulse // gcd(in_hz * pulse, hz), in_hz // gcd(in_hz, out_hz))
        step = gcd(max(self.block_frames, 1), period)
        if period // step > MAX_PERIOD_STEPS:
            wait_s = Fraction(ahead_in_frames, in_hz) + Fraction(pulse - 1 + ahead_out_frames - preroll, hz)
            return floor(1 + wait_s * out_hz) + self.in_device_frames(preroll)
        in_frames = np.arange(0, period, step, dtype=np.int64)
        model_frames = _count_resampled(in_frames, in_hz, hz, ahead_in_frames) + preroll
        output_frames = _count_resampled(model_frames // pulse * pulse, hz, out_hz, ahead_out_frames)
        device_frames = -(-in_frames * out_hz // in_hz)
        return int(np.max(device_frames - output_frames)) + self.in_device_frames(preroll)


def _count_resampled(frames: NDArray[np.int64], rate_in: int, rate_out: int, ahead: int) -> NDArray[np.int64]:
    """Return how many frames a resampler has made from ``frames``; its frame k is at time k / rate_out."""
    return -(-(frames - ahead) * rate_out // rate_in)
