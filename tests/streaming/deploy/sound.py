"""The expected output of an audio host, in Python: the same resamplers, pulses and delay."""

import numpy as np
from numpy.typing import NDArray

from pulse.program.program import Program
from streaming import Session
from streaming.live.delay import Timing
from streaming.native.resample import NativeResampler

Sound = NDArray[np.float32]
RATE_HZ = 16_000


def delay_and_output(program: Program, sound: Sound, host_hz: int, block: int) -> tuple[int, Sound]:
    """The reported delay, and as many output frames as the signal has.

    block  frames of the host's blocks; 1 if their size changes
    """
    inward, outward = NativeResampler(host_hz, RATE_HZ), NativeResampler(RATE_HZ, host_hz)
    differs, delay = host_hz != RATE_HZ, program.outputs[0].delay
    ahead = (inward.delay_frames, outward.delay_frames) if differs else (0, 0)
    timing = Timing(program.pulse, block, RATE_HZ, host_hz, host_hz, *ahead).plan_delay(None, worker=False)
    before = np.zeros(timing.preroll_model_frames, np.float32)
    frames = np.concatenate([before, inward.process(sound) if differs else sound])
    output = Session(program).push(frames[None])[program.outputs[0].name]
    delayed = np.concatenate([np.zeros(delay, np.float32), output.ravel()])
    waiting = timing.frames - timing.preroll_device_frames
    late = np.concatenate([np.zeros(waiting, np.float32), outward.process(delayed) if differs else delayed])
    assert len(late) >= len(sound)
    whole = (timing.preroll_model_frames + delay) * host_hz
    return waiting + (2 * whole + RATE_HZ) // (2 * RATE_HZ), late[: len(sound)]
