# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""What Python wants done between two pulses."""

from numba.core import types

from pulse.jit.address import bytes_at, doubles_at, words_at
from pulse.jit.entries import entry
from pulse.jit.pointer import Pointer
from pulse.jit.raw import fill_bytes, move_bytes
from pulse.jit.registry import device
from streaming.native import control_block as cb
from streaming.native.device_side import FLOAT
from streaming.native.drift import DELAY, TARGET
from streaming.native.primitives import load, replace, set_event, store


@device
def restart(control: Pointer) -> None:
    """No device is open, and one will be: what it plays is to be as late as it was when all began.

    Where input and output stopped at one block, it is. Else the ring of output is cut, or filled up with silence, and
    there is nothing to compensate.
    """
    control[cb.ANCHOR] = control[cb.FRAMES_IN]
    control[cb.ANCHOR_PLACE] = control[cb.IN_WRITTEN]
    for side in range(2):
        control[cb.SIDES + side * cb.SIDE_FIELDS + cb.LAST_NS] = 0
        control[cb.SIDES + side * cb.SIDE_FIELDS + cb.BLOCK_TIME_NS] = 0
    if control[cb.DRIFT] == 0:
        return
    drift, rate = doubles_at(control[cb.DRIFT]), control[cb.OUT_RATE]
    waiting = (control[cb.IN_WRITTEN] - control[cb.IN_READ]) * rate / control[cb.IN_RATE]
    waiting += control[cb.FILLED] * rate / control[cb.RATE]
    surplus = (
        control[cb.OUT_WRITTEN]
        - control[cb.OUT_READ]
        - types.int64(drift[TARGET] + control[cb.GROWN] - waiting + 0.5)
    )
    if surplus > 0:
        control[cb.CUT] = control[cb.CUT] + surplus
        control[cb.OUT_READ] = control[cb.OUT_READ] + surplus
    ring, channels = control[cb.OUT_RING], control[cb.OUT_CHANNELS]
    for _ in range(-surplus):
        place = control[cb.OUT_WRITTEN] & (control[cb.OUT_FRAMES] - 1)
        fill_bytes(bytes_at(ring + place * channels * FLOAT), 0, channels * FLOAT)
        control[cb.OUT_WRITTEN] = control[cb.OUT_WRITTEN] + 1
        control[cb.INITIAL_FRAMES] = control[cb.INITIAL_FRAMES] + 1
    control[cb.FORGIVEN] = control[cb.FRAMES_SILENT] - control[cb.FRAMES_SKIPPED] - control[cb.FRAMES_LOST]
    drift[DELAY] = drift[TARGET]


@device
def apply(control: Pointer) -> None:
    """What Python wants done between two pulses."""
    command = load(control, cb.COMMAND)
    if command == cb.NONE or command == cb.TAKEN or not replace(control, cb.COMMAND, command, cb.TAKEN):
        return
    if command == cb.SWAP:
        control[cb.PRIMING] = control[cb.SECOND]
        store(control, cb.NEXT_INSTANCES, control[cb.FIRST])
    elif command == cb.RESTART:
        restart(control)
    else:
        address = control[cb.FIRST]
        control[cb.SAVED] = words_at(control[cb.INSTANCES])[cb.RAN]
        for s in range(control[cb.STREAMS]):
            instance = words_at(control[cb.INSTANCES]) + s * cb.INSTANCE_FIELDS
            if command == cb.SAVE:
                move_bytes(bytes_at(address), bytes_at(instance[cb.MEMORY]), instance[cb.MEMORY_BYTES])
            else:
                move_bytes(bytes_at(instance[cb.MEMORY]), bytes_at(address), instance[cb.MEMORY_BYTES])
                instance[cb.RAN] = control[cb.SECOND]
                instance[cb.DELAY_LEFT] = max(instance[cb.DELAY] - control[cb.SECOND] * control[cb.PULSE], 0)
            address += instance[cb.MEMORY_BYTES]
        if command == cb.LOAD:
            control[cb.LOADS] = control[cb.LOADS] + 1
            control[cb.LOADED] = control[cb.SECOND] - control[cb.PULSES]
    store(control, cb.COMMAND, cb.NONE)


@entry("pipeline.command", 4)
def give_command(address, command, first, second):
    """A command for ``apply``; ``COMMAND`` is NONE again when it is done."""
    control = words_at(address)
    control[cb.FIRST] = first
    control[cb.SECOND] = second
    store(control, cb.COMMAND, command)
    if control[cb.WAKE] >= 0:
        set_event(control[cb.WAKE])


@entry("pipeline.take_back", 2, types.int64)
def take_back(address, command):
    """Take a command back; whether nobody had begun to apply it."""
    return 1 if replace(words_at(address), cb.COMMAND, command, cb.NONE) else 0


@entry("pipeline.apply", 1)
def apply_now(address):
    """``apply``, where nobody computes."""
    apply(words_at(address))
