# pyright: basic, reportArgumentType=false, reportCallIssue=false
"""The callback of a device, with PortAudio's signature; its user data is the address of a pipeline's control block."""

import numpy as np

from pulse.jit.entries import callback
from pulse.jit.events import set_event
from pulse.jit.language.address import address_of, floats_at
from pulse.jit.language.atomics import load, store
from pulse.jit.language.foreign import call_address
from pulse.jit.registry import device
from streaming.native.callback_signature import (
    COMPLETE,
    CONTINUE,
    INPUT_OVERFLOW,
    INPUT_UNDERFLOW,
    OUTPUT_OVERFLOW,
    OUTPUT_UNDERFLOW,
    SIGNATURE,
    times_at,
)
from streaming.native.control_block import IN_CALLBACK, Side, control_at
from streaming.native.device_side import capture, now_ns, play
from streaming.native.histogram import count_time, histogram_at


@device
def seconds_between(first: float, second: float) -> float:
    """Return the seconds from one time to a later one; 0 if one of them is unknown."""
    return second - first if 0 < first <= second else 0.0


@device
def record_callback(side: Side, now: int, time_address: int, flags: int) -> None:
    """Record the time of a callback and the flags that the device reports."""
    if side.last_ns > 0:
        gap = now - side.last_ns
        side.longest_gap_ns = max(side.longest_gap_ns, gap)
        count_time(histogram_at(side.interval_times), gap)
    store(side, "last_ns", now)
    side.input_underflows += (flags & INPUT_UNDERFLOW) // INPUT_UNDERFLOW
    side.input_overflows += (flags & INPUT_OVERFLOW) // INPUT_OVERFLOW
    side.output_underflows += (flags & OUTPUT_UNDERFLOW) // OUTPUT_UNDERFLOW
    side.output_overflows += (flags & OUTPUT_OVERFLOW) // OUTPUT_OVERFLOW
    if time_address != 0:
        times = times_at(time_address)
        side.input_age_s = seconds_between(times.captured_s, times.now_s)
        side.played_in_s = seconds_between(times.now_s, times.played_s)


@callback("pipeline.callback", SIGNATURE)
def stream_callback(source, target, frames, time, flags, user):
    """Process a block of input and output; return PortAudio's paContinue, or paComplete if ``stop`` is set."""
    control = control_at(address_of(user))
    entered = now_ns(control)
    captures, plays = address_of(source) != 0, address_of(target) != 0
    side = control.input_side if captures else control.output_side
    record_callback(side, entered, address_of(time), np.int64(flags))
    count = np.int64(frames)
    if captures:
        capture(control, floats_at(address_of(source)), count, entered)
        if control.engine == IN_CALLBACK:
            call_address(control.pump, address_of(user))
    if plays:
        play(control, side, floats_at(address_of(target)), count, entered)
    if captures and control.engine != IN_CALLBACK and control.wake >= 0:
        # after ``play``, which makes space for the output of a pulse that waits for it
        set_event(control.wake)
    count_time(histogram_at(side.callback_times), now_ns(control) - entered)
    store(side, "callbacks", side.callbacks + 1)
    return CONTINUE if load(control, "stop") == 0 else COMPLETE
