# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""Another sample rate, for one stream: a polyphase filter whose ratio may be tuned while it runs.

Output k belongs to the input time ``k * rate_in / rate_out``, exactly: positions are integers, in units of
``1 / (rate_out << 20)`` frames of the input, so no error adds up however long a stream is. ``feed``, ``shortage``,
``ready``, ``produce`` and ``tune`` are for compiled code, on one thread.
"""

import numpy as np
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.jit.address import floats_at
from pulse.jit.cpu_registers import flush_denormals, restore_denormals
from pulse.jit.entries import entry
from pulse.jit.pointer import Pointer
from pulse.jit.raw import as_u8, move_bytes
from pulse.jit.registry import device, exact
from pulse.jit.simd import LANES, vfma, vload, vsum, vzero
from pulse.jit.structs import Struct, struct_at
from pulse.program.table.memory import aligned_bytes
from pulse.support.not_copyable import NotCopyable
from streaming.native.filters import design
from streaming.snapshot import pack, unpack_parts

UNIT_BITS = 20
MOST_TUNING = 200
"""A ratio is tuned by 1/200 at most."""
FLOAT = 4


class ResamplerState(Struct):
    """The state of a resampler."""

    nominal: int  # from output to output at the nominal ratio, in units
    step: int  # the same as it is tuned now
    unit: int  # units in a frame of the input
    fraction: int  # of a frame: where the next output is after frame ``first``
    first: int  # the first frame in the history that the next output needs
    end: int  # after the last frame in the history
    taps: int
    phases: int
    window: int  # the most frames that are kept; the history holds twice as many
    table: int  # address of f32 [phases + 1, taps]
    history: int  # address of f32 [2 * window]


resampler_at = struct_at(ResamplerState)


@device
def ready_after(state: ResamplerState, frames: int) -> int:
    """How many outputs can be made when that many frames more are fed."""
    beyond = state.end + frames - state.first - state.taps + 1
    if beyond <= 0:
        return 0
    return (beyond * state.unit - state.fraction + state.step - 1) // state.step


@device
def ready(state: ResamplerState) -> int:
    """How many outputs can be made."""
    return ready_after(state, 0)


@device
def shortage(state: ResamplerState, outputs: int) -> int:
    """How many frames are to be fed until this many outputs are ready, at least one."""
    last = state.first + (state.fraction + (outputs - 1) * state.step) // state.unit
    return max(last + state.taps - state.end, 0)


@device
def tune(state: ResamplerState, part: float) -> None:
    """Let an output be this part of the nominal step further from the one before it; 0.0 is the nominal ratio.

    Counts of ``ready`` and ``shortage`` hold until then. A part beyond 1/200 counts as that.
    """
    nominal = state.nominal
    most = nominal // MOST_TUNING
    state.step = nominal + min(max(int(part * nominal), -most), most)


@device
def append(state: ResamplerState, history: Pointer, source: Pointer, step: int, count: int) -> int:
    """``feed``, for a history at hand."""
    at, end = state.first, state.end
    count = min(count, state.window - (end - at))
    if end + count > 2 * state.window:
        move_bytes(as_u8(history), as_u8(history + at), (end - at) * FLOAT)
        at, end = 0, end - at
    target = history + end
    if step == 1:
        move_bytes(as_u8(target), as_u8(source), count * FLOAT)
    else:
        for i in range(count):
            target[i] = source[i * step]
    state.first = at
    state.end = end + count
    return count


@exact
def weigh(frames: Pointer, row: Pointer, taps: int, part: float) -> np.float32:
    """The product of frames with the row of a filter and with the next one; the result lies ``part`` between."""
    here, next_row, there = vzero(), row + taps, vzero()
    for j in range(0, taps, LANES):
        lanes = vload(frames, j)
        here, there = vfma(lanes, vload(row, j), here), vfma(lanes, vload(next_row, j), there)
    return vsum(vfma(part, there - here, here))


@exact
def outputs(
    state: ResamplerState, history: Pointer, table: Pointer, target: Pointer, step: int, count: int
) -> int:
    """``produce``, for a history and a table at hand."""
    made = min(count, ready(state))
    taps, unit, fraction, at = state.taps, state.unit, state.fraction, state.first
    frames = state.step // unit
    rest = state.step - frames * unit
    rows = state.phases / unit
    for k in range(made):
        place = fraction * rows
        row = int(place)
        target[k * step] = weigh(history + at, table + row * taps, taps, np.float32(place - row))
        at += frames
        fraction += rest
        if fraction >= unit:
            at += 1
            fraction -= unit
    state.first = at
    state.fraction = fraction
    return made


@device
def feed(state: ResamplerState, source: Pointer, step: int, count: int) -> int:
    """Take samples that are ``step`` elements apart; how many were taken.

    There is space for the largest block once all is produced that is ready, whatever that leaves over.
    """
    return append(state, floats_at(state.history), source, step, count)


@device
def produce(state: ResamplerState, target: Pointer, step: int, count: int) -> int:
    """Make outputs, ``step`` elements apart, as many as are ready and wanted; how many were made."""
    return outputs(state, floats_at(state.history), floats_at(state.table), target, step, count)


@entry("resample.convert", 5)
def convert(address, source_address, count, target_address, outputs_wanted):
    """Feed all samples and produce all outputs, whose number is known."""
    state, source, target = resampler_at(address), floats_at(source_address), floats_at(target_address)
    mode, made = flush_denormals(), 0
    while count > 0:
        taken = feed(state, source, 1, count)
        source = source + taken
        count -= taken
        made += produce(state, target + made, 1, outputs_wanted - made)
    restore_denormals(mode)


class NativeResampler(NotCopyable):
    """The memory of one stream's resampler.

    rate_in_hz, rate_out_hz  samples a second
    quality                  one of ``QUALITIES``, which says what delay and stop band each has
    largest_block            frames that are fed at a time by compiled code
    Raises                   InputError: rates more than 256 times apart, no such quality, blocks too large

    delay_frames  input frames that it waits: half of the filter. Output k is there when
                  ``floor(k * rate_in_hz / rate_out_hz) + delay_frames + 1`` frames are.
    state         what compiled code takes
    """

    why_not = "it holds addresses of this process; make another one"

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
        self.state = ResamplerState.new()
        self.state.nominal = self.state.step = rate_in_hz << UNIT_BITS
        self.state.unit, self.state.window = unit, window
        self.state.taps, self.state.phases = self.filter.taps, self.filter.phases
        self.state.table, self.state.history = self.filter.table.ctypes.data, self.history.ctypes.data
        self.reset()

    @property
    def address(self) -> int:
        """The address of the state."""
        return self.state.address

    @property
    def tuning_ppm(self) -> float:
        """By how many millionths an output is further from the one before it than nominal; -5000 to 5000."""
        return (self.state.step / self.state.nominal - 1) * 1e6

    @tuning_ppm.setter
    def tuning_ppm(self, ppm: float) -> None:
        if not abs(ppm) <= 1e6 / MOST_TUNING:
            raise InputError(f"a resampler is tuned by {1e6 / MOST_TUNING:g} ppm at most, got {ppm}")
        self.state.step = self.state.nominal + round(ppm / 1e6 * self.state.nominal)

    def reset(self) -> None:
        """Begin a new sound; the tuning stays."""
        silent = self.filter.taps - self.filter.half_frames - 1
        self._changing = True
        self.history[:silent] = 0
        self.state.first, self.state.end, self.state.fraction = 0, silent, 0
        self._changing = False

    def snapshot(self) -> bytes:
        """The sound up to here, and the tuning; the moment between two blocks. Raises InputError: inside of one."""
        self._require_whole()
        state = self.state
        numbers = [self.rate_in_hz, self.rate_out_hz, state.taps, state.fraction, state.step]
        return pack(numbers, [self.history[state.first : state.end].tobytes()])

    def restore(self, snapshot: bytes) -> None:
        """Go on from a snapshot, with the same bits. Raises InputError: that of another resampler; nothing changed."""
        (rate_in_hz, rate_out_hz, taps, fraction, step), (kept,) = unpack_parts(snapshot, 5, 1)
        state, frames = self.state, len(kept) // FLOAT
        ours = self.rate_in_hz, self.rate_out_hz, state.taps
        most = state.nominal // MOST_TUNING
        fits = len(kept) % FLOAT == 0 and frames <= state.window and fraction < state.unit
        if (rate_in_hz, rate_out_hz, taps) != ours or not fits or abs(step - state.nominal) > most:
            raise InputError("the snapshot belongs to a resampler of other rates or another quality")
        self._changing = True
        self.history[:frames] = np.frombuffer(kept, np.float32)
        state.first, state.end, state.fraction, state.step = 0, frames, fraction, step
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
        target = np.empty(ready_after(self.state, len(samples)), np.float32)
        self._require_whole()
        try:
            self._changing = True
            convert.call(self.address, samples.ctypes.data, len(samples), target.ctypes.data, len(target))
            self._changing = False
            return target
        except BaseException:
            self._changing = True
            raise

    def _require_whole(self) -> None:
        if self._changing:
            raise InputError(
                "an exception has ended process inside of a block: begin a new sound with reset()"
            )
