# pyright: basic, reportArgumentType=false, reportCallIssue=false
"""The callback of a device, in the form of PortAudio's; its user data is the address of a pipeline's control block."""

from numba.core import types

from pulse.jit.address import address_of, call_at, doubles_at, floats_at, words_at
from pulse.jit.entries import callback
from pulse.jit.pointer import Pointer
from pulse.jit.registry import device
from streaming.native import control_block as cb
from streaming.native.callback_signature import COMPLETE, CONTINUE, SIGNATURE
from streaming.native.device_side import capture, now_ns, play
from streaming.native.histogram import record
from streaming.native.primitives import load, set_event, store


@device
def apart(first: float, then: float) -> float:
    """Seconds from one moment to a later one; 0 where one of them is not stated."""
    return then - first if 0 < first <= then else 0.0


@device
def note(side: Pointer, now: int, time_address: int, flags: int) -> None:
    """Count a callback: when it came, and what the device reports."""
    if side[cb.LAST_NS] > 0:
        gap = now - side[cb.LAST_NS]
        side[cb.LONGEST_GAP_NS] = max(side[cb.LONGEST_GAP_NS], gap)
        record(words_at(side[cb.INTERVAL_TIMES]), gap)
    store(side, cb.LAST_NS, now)
    for flag in range(4):
        if (flags >> flag) & 1:
            side[cb.INPUT_UNDERFLOWS + flag] = side[cb.INPUT_UNDERFLOWS + flag] + 1
    if time_address != 0:
        heard, now_s, played = 0, 1, 2
        times, stated = doubles_at(time_address), doubles_at(address_of(side))
        stated[cb.INPUT_AGE_S] = apart(times[heard], times[now_s])
        stated[cb.PLAYED_IN_S] = apart(times[now_s], times[played])


@callback("pipeline.callback", SIGNATURE)
def stream_callback(source, target, frames, time, flags, user):
    """Take a block, have it computed, give a block; PortAudio's paContinue, or paComplete when STOP is set."""
    control = words_at(address_of(user))
    entered = now_ns(control)
    heard, plays = address_of(source) != 0, address_of(target) != 0
    side = control + (cb.SIDES if heard else cb.SIDES + cb.SIDE_FIELDS)
    note(side, entered, address_of(time), types.int64(flags))
    count = types.int64(frames)
    if heard:
        capture(control, floats_at(address_of(source)), count, entered)
        if control[cb.ENGINE] == cb.IN_CALLBACK:
            call_at(control[cb.PUMP], address_of(user))
        elif control[cb.WAKE] >= 0:
            set_event(control[cb.WAKE])
    if plays:
        play(control, side, floats_at(address_of(target)), count, entered)
    record(words_at(side[cb.CALLBACK_TIMES]), now_ns(control) - entered)
    store(side, cb.CALLBACKS, side[cb.CALLBACKS] + 1)
    return CONTINUE if load(control, cb.STOP) == 0 else COMPLETE
