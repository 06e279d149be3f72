# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""What Python wants done between two pulses."""

from numba.core import types

from pulse.program.kernels.address import bytes_at, doubles_at, words_at
from pulse.program.kernels.entries import entry
from pulse.program.kernels.pointer import Pointer
from pulse.program.kernels.raw import fill_bytes, move_bytes
from pulse.program.kernels.registry import device
from streaming.native import line_words as w
from streaming.native.device_side import FLOAT
from streaming.native.drift import DELAY, TARGET
from streaming.native.primitives import load, replace, set_event, store


@device
def restart(words: Pointer) -> None:
    """No device is open, and one will be: what it plays is to be as late as it was when all began.

    Where input and output stopped at one block, it is. Else the ring of output is cut, or filled up with silence, and
    there is no debt.
    """
    words[w.ANCHOR] = words[w.FRAMES_IN]
    words[w.ANCHOR_PLACE] = words[w.IN_WRITTEN]
    for side in range(2):
        words[w.SIDES + side * w.SIDE_WORDS + w.LAST_NS] = 0
        words[w.SIDES + side * w.SIDE_WORDS + w.PLACED_NS] = 0
    if words[w.DRIFT] == 0:
        return
    drift, rate = doubles_at(words[w.DRIFT]), words[w.OUT_RATE]
    waiting = (words[w.IN_WRITTEN] - words[w.IN_READ]) * rate / words[w.IN_RATE]
    waiting += words[w.FILLED] * rate / words[w.RATE]
    surplus = (
        words[w.OUT_WRITTEN] - words[w.OUT_READ] - types.int64(drift[TARGET] + words[w.GROWN] - waiting + 0.5)
    )
    if surplus > 0:
        words[w.CUT] = words[w.CUT] + surplus
        words[w.OUT_READ] = words[w.OUT_READ] + surplus
    ring, channels = words[w.OUT_RING], words[w.OUT_CHANNELS]
    for _ in range(-surplus):
        place = words[w.OUT_WRITTEN] & (words[w.OUT_FRAMES] - 1)
        fill_bytes(bytes_at(ring + place * channels * FLOAT), 0, channels * FLOAT)
        words[w.OUT_WRITTEN] = words[w.OUT_WRITTEN] + 1
        words[w.AGREED] = words[w.AGREED] + 1
    words[w.FORGIVEN] = words[w.FRAMES_SILENT] - words[w.FRAMES_SKIPPED] - words[w.FRAMES_LOST]
    drift[DELAY] = drift[TARGET]


@device
def obey(words: Pointer) -> None:
    """What Python wants done between two pulses."""
    order = load(words, w.COMMAND)
    if order == w.NONE or order == w.TAKEN or not replace(words, w.COMMAND, order, w.TAKEN):
        return
    if order == w.SWAP:
        words[w.PRIMING] = words[w.SECOND]
        store(words, w.NEXT_INSTANCES, words[w.FIRST])
    elif order == w.RESTART:
        restart(words)
    else:
        address = words[w.FIRST]
        words[w.SAVED] = words_at(words[w.INSTANCES])[w.RAN]
        for s in range(words[w.STREAMS]):
            instance = words_at(words[w.INSTANCES]) + s * w.INSTANCE_WORDS
            if order == w.SAVE:
                move_bytes(bytes_at(address), bytes_at(instance[w.MEMORY]), instance[w.MEMORY_BYTES])
            else:
                move_bytes(bytes_at(instance[w.MEMORY]), bytes_at(address), instance[w.MEMORY_BYTES])
                instance[w.RAN] = words[w.SECOND]
                instance[w.DELAY_LEFT] = max(instance[w.DELAY] - words[w.SECOND] * words[w.PULSE], 0)
            address += instance[w.MEMORY_BYTES]
        if order == w.LOAD:
            words[w.LOADS] = words[w.LOADS] + 1
            words[w.LOADED] = words[w.SECOND] - words[w.PULSES]
    store(words, w.COMMAND, w.NONE)


@entry("pipeline.order", 4)
def give_order(address, order, first, second):
    """A command for ``obey``; ``COMMAND`` is NONE again when it is done."""
    words = words_at(address)
    words[w.FIRST] = first
    words[w.SECOND] = second
    store(words, w.COMMAND, order)
    if words[w.WAKE] >= 0:
        set_event(words[w.WAKE])


@entry("pipeline.take_back", 2, types.int64)
def take_back(address, order):
    """Take a command back; whether nobody had begun to obey."""
    return 1 if replace(words_at(address), w.COMMAND, order, w.NONE) else 0


@entry("pipeline.obey", 1)
def obey_now(address):
    """``obey``, where nobody computes."""
    obey(words_at(address))
