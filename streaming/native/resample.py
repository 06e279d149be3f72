# pyright: basic, reportIndexIssue=false, reportCallIssue=false
"""Another sample rate, for one stream: a polyphase filter whose ratio may be tuned while it runs.

Output k belongs to the input time ``k * rate_in / rate_out``, exactly: positions are integers, in units of
``1 / (rate_out << 20)`` frames of the input, so no error adds up however long a stream is. ``feed``, ``missing``,
``ready``, ``produce`` and ``tune`` are for compiled code, on one thread.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.jit.address import floats_at, words_at
from pulse.jit.entries import entry
from pulse.jit.pointer import Pointer
from pulse.jit.raw import as_u8, move_bytes
from pulse.jit.registry import device
from pulse.jit.simd import LANES, vfma, vload, vsum, vzero
from pulse.not_copyable import NotCopyable
from pulse.program.machine import flush_denormals, restore_denormals
from pulse.program.memory import aligned_bytes
from streaming.native.filters import design

(
    NOMINAL,  # from output to output at the nominal ratio, in units
    STEP,  # the same as it is tuned now
    UNIT,  # units in a frame of the input
    FRACTION,  # of a frame: where the next output is behind frame AT
    AT,  # the first frame in the history that the next output needs
    END,  # behind the last frame in the history
    TAPS,
    PHASES,
    WINDOW,  # the most frames that are kept; the history has room for twice as many
    TABLE,  # address of f32 [PHASES + 1, TAPS]
    HISTORY,  # address of f32 [2 * WINDOW]
) = range(11)
RESAMPLER_FIELDS = 16
UNIT_BITS = 20
MOST_TUNING = 200
"""A ratio is tuned by 1/200 at most."""
FLOAT = 4


def exact(function: Callable[..., Any]) -> Callable[..., Any]:
    """A ``device`` whose arithmetic is done as it is written: the same bits wherever it is inlined."""
    return register_jitable(forceinline=True, fastmath=False, error_model="numpy")(function)


@device
def ready_after(words: Pointer, frames: int) -> int:
    """How many outputs can be made when that many frames more are fed."""
    beyond = words[END] + frames - words[AT] - words[TAPS] + 1
    if beyond <= 0:
        return 0
    return (beyond * words[UNIT] - words[FRACTION] + words[STEP] - 1) // words[STEP]


@device
def ready(words: Pointer) -> int:
    """How many outputs can be made."""
    return ready_after(words, 0)


@device
def missing(words: Pointer, outputs: int) -> int:
    """How many frames are to be fed until this many outputs are ready, at least one."""
    last = words[AT] + (words[FRACTION] + (outputs - 1) * words[STEP]) // words[UNIT]
    return max(last + words[TAPS] - words[END], 0)


@device
def tune(words: Pointer, part: float) -> None:
    """Let an output be this part of the nominal step further from the one before it; 0.0 is the nominal ratio.

    Counts of ``ready`` and ``missing`` hold until then. A part beyond 1/200 counts as that.
    """
    nominal = words[NOMINAL]
    most = nominal // MOST_TUNING
    words[STEP] = nominal + min(max(int(part * nominal), -most), most)


@device
def append(words: Pointer, history: Pointer, source: Pointer, step: int, count: int) -> int:
    """``feed``, for a history at hand."""
    at, end = words[AT], words[END]
    count = min(count, words[WINDOW] - (end - at))
    if end + count > 2 * words[WINDOW]:
        move_bytes(as_u8(history), as_u8(history + at), (end - at) * FLOAT)
        at, end = 0, end - at
    target = history + end
    if step == 1:
        move_bytes(as_u8(target), as_u8(source), count * FLOAT)
    else:
        for i in range(count):
            target[i] = source[i * step]
    words[AT] = at
    words[END] = end + count
    return count


@exact
def weighed(frames: Pointer, row: Pointer, taps: int, part: float) -> np.float32:
    """The product of frames with the row of a filter and with the next one; the result lies ``part`` between."""
    here, next_row, there = vzero(), row + taps, vzero()
    for j in range(0, taps, LANES):
        lanes = vload(frames, j)
        here, there = vfma(lanes, vload(row, j), here), vfma(lanes, vload(next_row, j), there)
    return vsum(vfma(part, there - here, here))


@exact
def outputs(words: Pointer, history: Pointer, table: Pointer, target: Pointer, step: int, count: int) -> int:
    """``produce``, for a history and a table at hand."""
    made = min(count, ready(words))
    taps, unit, fraction, at = words[TAPS], words[UNIT], words[FRACTION], words[AT]
    frames = words[STEP] // unit
    rest = words[STEP] - frames * unit
    rows = words[PHASES] / unit
    for k in range(made):
        place = fraction * rows
        row = int(place)
        target[k * step] = weighed(history + at, table + row * taps, taps, np.float32(place - row))
        at += frames
        fraction += rest
        if fraction >= unit:
            at += 1
            fraction -= unit
    words[AT] = at
    words[FRACTION] = fraction
    return made


@device
def feed(words: Pointer, source: Pointer, step: int, count: int) -> int:
    """Take samples that are ``step`` elements apart; how many were taken.

    There is room for the largest block once all is produced that is ready, whatever that leaves over.
    """
    return append(words, floats_at(words[HISTORY]), source, step, count)


@device
def produce(words: Pointer, target: Pointer, step: int, count: int) -> int:
    """Make outputs, ``step`` elements apart, as many as are ready and wanted; how many were made."""
    return outputs(words, floats_at(words[HISTORY]), floats_at(words[TABLE]), target, step, count)


@entry("resample.convert", 5)
def convert(words_address, source_address, count, target_address, outputs_wanted):
    """Feed all samples and produce all outputs, whose number is known."""
    words, source, target = words_at(words_address), floats_at(source_address), floats_at(target_address)
    mode, made = flush_denormals(), 0
    while count > 0:
        taken = feed(words, source, 1, count)
        source = source + taken
        count -= taken
        made += produce(words, target + made, 1, outputs_wanted - made)
    restore_denormals(mode)


class NativeResampler(NotCopyable):
    """The memory of one stream's resampler.

    rate_in_hz, rate_out_hz  samples a second
    quality                  one of ``QUALITIES``, which says what delay and stop band each has
    largest_block            frames that are fed at a time by compiled code
    Raises                   InputError: rates more than 256 times apart, no such quality, blocks too large

    delay_frames  input frames that it waits: half of the filter. Output k is there when
                  ``floor(k * rate_in_hz / rate_out_hz) + delay_frames + 1`` frames are.
    words         what compiled code takes, int64
    """

    instead = "it holds addresses of this process; make another one"

    def __init__(
        self, rate_in_hz: int, rate_out_hz: int, quality: str = "medium", largest_block: int = 4096
    ) -> None:
        self.filter = design(rate_in_hz, rate_out_hz, quality)
        self.rate_in_hz, self.rate_out_hz, self.quality = rate_in_hz, rate_out_hz, quality
        self.delay_frames = self.filter.half_frames
        unit, window = rate_out_hz << UNIT_BITS, self.filter.taps + largest_block
        most = (1 << 62) // unit - self.filter.taps
        if not 1 <= largest_block <= most:
            raise InputError(f"blocks of {largest_block} frames for {rate_out_hz} Hz: use 1 to {most}")
        self.history = aligned_bytes(2 * window * FLOAT).view(np.float32)
        self.words: NDArray[np.int64] = np.zeros(RESAMPLER_FIELDS, np.int64)
        self.words[[NOMINAL, STEP]] = rate_in_hz << UNIT_BITS
        self.words[UNIT] = unit
        self.words[[TAPS, PHASES, WINDOW]] = self.filter.taps, self.filter.phases, window
        self.words[[TABLE, HISTORY]] = self.filter.table.ctypes.data, self.history.ctypes.data
        self.reset()

    @property
    def address(self) -> int:
        """Where the words are."""
        return self.words.ctypes.data

    @property
    def tuning_ppm(self) -> float:
        """By how many millionths an output is further from the one before it than nominal; -5000 to 5000."""
        return (int(self.words[STEP]) / int(self.words[NOMINAL]) - 1) * 1e6

    @tuning_ppm.setter
    def tuning_ppm(self, ppm: float) -> None:
        if not abs(ppm) <= 1e6 / MOST_TUNING:
            raise InputError(f"a resampler is tuned by {1e6 / MOST_TUNING:g} ppm at most, got {ppm}")
        self.words[STEP] = self.words[NOMINAL] + round(ppm / 1e6 * int(self.words[NOMINAL]))

    def reset(self) -> None:
        """Begin a new sound; the tuning stays."""
        silent = self.filter.taps - self.filter.half_frames - 1
        self._changing = True
        self.history[:silent] = 0
        self.words[[AT, END, FRACTION]] = 0, silent, 0
        self._changing = False

    def process(self, block: NDArray[np.floating]) -> NDArray[np.float32]:
        """From samples [frames], any number, all that is ready [outputs]; silence of ``delay_frames`` gives the rest.

        Raises InputError: not one row of floats, or an exception has ended an earlier call
        """
        if block.ndim != 1 or block.dtype.kind != "f":
            raise InputError(
                f"a resampler takes one row of floats, got an array {block.shape} of {block.dtype}"
            )
        samples = np.ascontiguousarray(block, np.float32)
        target = np.empty(ready_after(self.words.tolist(), len(samples)), np.float32)
        if self._changing:
            raise InputError(
                "an exception has ended process inside of a block: begin a new sound with reset()"
            )
        try:
            self._changing = True
            convert.call(self.address, samples.ctypes.data, len(samples), target.ctypes.data, len(target))
            self._changing = False
            return target
        except BaseException:
            self._changing = True
            raise
