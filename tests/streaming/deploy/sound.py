"""The expected output of an audio host, in Python: the same resamplers, pulses and delay."""

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from pulse.interface import main_output
from pulse.program.program import Program
from streaming import Session
from streaming.live.delay import Timing
from streaming.native.resample import NativeResampler

Sound = NDArray[np.float32]
RATE_HZ = 16_000


def delay_and_output(program: Program, sound: Sound, host_hz: int, block: int) -> tuple[int, Sound]:
    """The reported delay, and as many output frames as the signal has.

    sound  [frames] or [frames, channels], the channels of all inputs; the output is [frames] if it has one channel
    block  frames of the host's blocks; 1 if their size changes
    """
    port = main_output(program.outputs, program.inputs[0])
    assert port is not None
    columns = sound.reshape(len(sound), -1).T
    differs, delay = host_hz != RATE_HZ, port.delay
    inward, outward = NativeResampler(host_hz, RATE_HZ), NativeResampler(RATE_HZ, host_hz)
    ahead = (inward.delay_frames, outward.delay_frames) if differs else (0, 0)
    timing = Timing(program.pulse, block, RATE_HZ, host_hz, host_hz, *ahead).plan_delay(None, worker=False)
    before = np.zeros(timing.preroll_model_frames, np.float32)
    frames = iter([np.concatenate([before, resample(column, host_hz, RATE_HZ)]) for column in columns])
    feed = {
        source.name: source.shape_sound(np.stack([*islice(frames, source.channels)], axis=1))
        for source in program.inputs
    }
    output = port.read_sound(Session(program).push(feed)[port.name]).T
    waiting = timing.frames - timing.preroll_device_frames
    late = [
        np.concatenate([np.zeros(waiting, np.float32), resample(delayed, RATE_HZ, host_hz)])
        for delayed in np.pad(output, ((0, 0), (delay, 0)))
    ]
    assert len(late[0]) >= len(sound)
    whole = (timing.preroll_model_frames + delay) * host_hz
    expected = np.stack(late, axis=1)[: len(sound)]
    return waiting + (2 * whole + RATE_HZ) // (2 * RATE_HZ), expected if port.channels > 1 else expected[:, 0]


def resample(sound: Sound, rate_in_hz: int, rate_out_hz: int) -> Sound:
    """Audio of one channel at the other rate."""
    if rate_in_hz == rate_out_hz:
        return sound
    return NativeResampler(rate_in_hz, rate_out_hz).process(np.ascontiguousarray(sound, np.float32))
