# pyright: basic, reportIndexIssue=false, reportArgumentType=false, reportCallIssue=false
"""A resampler for one stream: a polyphase filter whose ratio can be tuned while it runs.

Output k belongs exactly to the input time ``k * rate_in / rate_out``: positions are integers, in units of
``1 / (rate_out << 20)`` frames of the input, so no error accumulates. ``feed``, ``missing_frames``, ``ready_outputs``,
``produce`` and ``tune`` are for compiled code, on one thread.
"""

from math import gcd

import numpy as np
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.jit.entries import entry
from pulse.jit.language.address import floats_at
from pulse.jit.language.cpu_registers import flush_denormals, restore_denormals
from pulse.jit.language.raw import as_u8, move_bytes
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import device, exact_device
from pulse.jit.rows.fields import FLOAT_BYTES
from pulse.jit.rows.pointer import Pointer
from pulse.support.mapping import aligned_bytes
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import count_of
from streaming.native.filter_sums import filter_at, filter_by_row, filter_one_by_one
from streaming.native.filters import DEFAULT_QUALITY, design
from streaming.snapshot import pack, unpack_one

UNIT_BITS = 20
INVERSE_MAX_TUNING = 200
"""The inverse of the largest tuning: 1/200 of the ratio."""


class ResamplerState(Struct):
    """The state of a resampler.

    nominal   the distance of outputs at the nominal ratio, in units
    step      the distance at the present tuning
    unit      the units of an input frame
    fraction  the time from frame ``first`` to the next output, in units
    first     the first frame of the history that the next output needs
    end       the frame after the last one in the history
    taps      the frames that an output is made of
    phases    the positions between two frames with separate coefficients
    window    the most frames that are kept; the history holds twice as many
    table     address of f32 [phases + 1, taps]
    history   address of f32 [2 * window]
    """

    nominal: int
    step: int
    unit: int
    fraction: int
    first: int
    end: int
    taps: int
    phases: int
    window: int
    table: int
    history: int


resampler_at = struct_at(ResamplerState)


@device
def ready_after(state: ResamplerState, frames: int) -> int:
    """Return how many outputs are ready after that many more frames."""
    beyond = state.end + frames - state.first - state.taps + 1
    if beyond <= 0:
        return 0
    return (beyond * state.unit - state.fraction + state.step - 1) // state.step


@device
def ready_outputs(state: ResamplerState) -> int:
    """Return how many outputs are ready."""
    return ready_after(state, 0)


@device
def missing_frames(state: ResamplerState, outputs: int) -> int:
    """Return how many more frames this many outputs (at least one) need."""
    last = state.first + (state.fraction + (outputs - 1) * state.step) // state.unit
    return max(last + state.taps - state.end, 0)


@device
def tune(state: ResamplerState, part: float) -> None:
    """Increase the distance of outputs by this fraction of the nominal one; 0.0 restores the nominal ratio.

    Earlier results of ``ready_outputs`` and ``missing_frames`` become invalid. The fraction is limited to 1/200.
    """
    nominal = state.nominal
    max_change = nominal // INVERSE_MAX_TUNING
    state.step = nominal + min(max(int(part * nominal), -max_change), max_change)


@device
def append_samples(state: ResamplerState, history: Pointer, source: Pointer, step: int, count: int) -> int:
    """Append samples to the history, as ``feed`` does; return how many."""
    first, end = state.first, state.end
    count = min(count, state.window - (end - first))
    if end + count > 2 * state.window:
        move_bytes(as_u8(history), as_u8(history + first), (end - first) * FLOAT_BYTES)
        first, end = 0, end - first
    target = history + end
    if step == 1:
        move_bytes(as_u8(target), as_u8(source), count * FLOAT_BYTES)
    else:
        for i in range(count):
            target[i] = source[i * step]
    state.first = first
    state.end = end + count
    return count


@exact_device
def write_outputs(
    state: ResamplerState,
    history: Pointer,
    table: Pointer,
    target: Pointer,
    step: int,
    count: int,
    interpolated: bool,
) -> int:
    """Write outputs from the history, as ``produce`` does; return how many.

    If they are not interpolated, each position of an output must have its own row. That takes half the products.
    """
    produced = min(count, ready_outputs(state))
    taps, unit, fraction, first = state.taps, state.unit, state.fraction, state.first
    frames = state.step // unit
    rest = state.step - frames * unit
    rows = state.phases / unit
    units_of_row = unit // state.phases
    for k in range(produced):
        part = np.float32(0)
        if interpolated:
            position = fraction * rows
            row = int(position)
            part = np.float32(position - row)
            output = filter_at(history + first, table + row * taps, taps, part)
        else:
            row = fraction // units_of_row
            output = filter_by_row(history + first, table + row * taps, taps)
        if output != output:
            output = filter_one_by_one(history + first, table + row * taps, taps, part)
        target[k * step] = output
        first += frames
        fraction += rest
        if fraction >= unit:
            first += 1
            fraction -= unit
    state.first = first
    state.fraction = fraction
    return produced


@device
def feed(state: ResamplerState, source: Pointer, step: int, count: int) -> int:
    """Take samples that are ``step`` elements apart; return how many.

    The largest block always fits if all ready outputs have been produced.
    """
    return append_samples(state, floats_at(state.history), source, step, count)


@device
def produce(state: ResamplerState, target: Pointer, step: int, count: int) -> int:
    """Write the ready outputs, up to ``count``, ``step`` elements apart; return how many."""
    return write_outputs(state, floats_at(state.history), floats_at(state.table), target, step, count, True)


@entry("resample.convert", 5)
def convert(address, source_address, count, target_address, outputs_wanted):
    """Feed all samples and produce all outputs, whose number is known."""
    state, source, target = resampler_at(address), floats_at(source_address), floats_at(target_address)
    mode, produced = flush_denormals(), 0
    while count > 0:
        taken = feed(state, source, 1, count)
        source = source + taken
        count -= taken
        produced += produce(state, target + produced, 1, outputs_wanted - produced)
    restore_denormals(mode)


@entry("resample.convert_by_rows", 5)
def convert_by_rows(address, source_address, count, target_address, outputs_wanted):
    """Do the same as ``convert`` without interpolation."""
    state, source, target = resampler_at(address), floats_at(source_address), floats_at(target_address)
    history, table = floats_at(state.history), floats_at(state.table)
    mode, produced = flush_denormals(), 0
    while count > 0:
        taken = append_samples(state, history, source, 1, count)
        source = source + taken
        count -= taken
        missing = outputs_wanted - produced
        produced += write_outputs(state, history, table, target + produced, 1, missing, False)
    restore_denormals(mode)


class NativeResampler(NotCopyable, reason="it holds addresses of this process; make another one"):
    """The memory of one stream's resampler.

    rate_in_hz, rate_out_hz  samples per second
    quality                  one of ``QUALITIES``, which lists the delay and stop band of each
    largest_block            the most frames that compiled code feeds at a time
    tunable                  whether the ratio may be tuned; if not, the filter may have fewer rows
    Raises                   InputError: rates more than 256 times apart, an unknown quality, blocks too large

    delay_frames  the delay in input frames: half of the filter. Output k is ready after
                  ``floor(k * rate_in_hz / rate_out_hz) + delay_frames + 1`` frames.
    state         the struct for compiled code
    """

    def __init__(
        self,
        rate_in_hz: int,
        rate_out_hz: int,
        quality: str = DEFAULT_QUALITY,
        largest_block: int = 4096,
        tunable: bool = True,
    ) -> None:
        self.filter = design(rate_in_hz, rate_out_hz, quality, tunable)
        self.rate_in_hz, self.rate_out_hz, self.quality = rate_in_hz, rate_out_hz, quality
        self.tunable = tunable
        self.delay_frames = self.filter.half_frames
        unit, window = rate_out_hz << UNIT_BITS, self.filter.taps + largest_block
        max_block = (1 << 62) // unit - self.filter.taps
        if not 1 <= largest_block <= max_block:
            raise InputError(
                f"blocks of {count_of(largest_block, 'frame')} for {rate_out_hz} Hz: use 1 to {max_block}"
            )
        self.history = aligned_bytes(2 * window * FLOAT_BYTES).view(np.float32)
        self.state = ResamplerState.new()
        self.state.nominal = self.state.step = rate_in_hz << UNIT_BITS
        self.state.unit, self.state.window = unit, window
        self.state.taps, self.state.phases = self.filter.taps, self.filter.phases
        self.state.table, self.state.history = self.filter.table.ctypes.data, self.history.ctypes.data
        common_hz = gcd(rate_in_hz, rate_out_hz)
        self._position_units = common_hz << UNIT_BITS  # all positions are multiples, unless tuned
        has_all_rows = not tunable and self.filter.phases == rate_out_hz // common_hz
        self._convert = convert_by_rows if has_all_rows else convert
        self.reset()

    @property
    def address(self) -> int:
        """The address of the state."""
        return self.state.address

    @property
    def tuning_ppm(self) -> float:
        """The increase of the distance of outputs over the nominal one, in ppm; -5000 to 5000.

        Setting it raises InputError: it is too large, or the resampler is not tunable
        """
        return (self.state.step / self.state.nominal - 1) * 1e6

    @tuning_ppm.setter
    def tuning_ppm(self, ppm: float) -> None:
        if not self.tunable:
            raise InputError("this resampler has a fixed ratio: make one with tunable=True")
        if not abs(ppm) <= 1e6 / INVERSE_MAX_TUNING:
            raise InputError(f"a resampler is tuned by at most {1e6 / INVERSE_MAX_TUNING:g} ppm, got {ppm}")
        self.state.step = self.state.nominal + round(ppm / 1e6 * self.state.nominal)

    def reset(self) -> None:
        """Start a new stream; the tuning does not change."""
        silent = self.filter.taps - self.filter.half_frames - 1
        self._changing = True
        self.history[:silent] = 0
        self.state.first, self.state.end, self.state.fraction = 0, silent, 0
        self._changing = False

    def snapshot(self) -> bytes:
        """Return the state between two blocks, including the tuning. Raises InputError: a call was interrupted."""
        self._require_whole()
        state = self.state
        numbers = [self.rate_in_hz, self.rate_out_hz, state.taps, state.fraction, state.step]
        return pack(numbers, [self.history[state.first : state.end].tobytes()])

    def restore(self, snapshot: bytes) -> None:
        """Continue from a snapshot, bit-identically. Raises InputError: it does not match; nothing is changed."""
        (rate_in_hz, rate_out_hz, taps, fraction, step), content = unpack_one(snapshot, 5)
        state, frames = self.state, len(content) // FLOAT_BYTES
        ours = self.rate_in_hz, self.rate_out_hz, state.taps
        max_change = state.nominal // INVERSE_MAX_TUNING
        fits = len(content) % FLOAT_BYTES == 0 and frames <= state.window and fraction < state.unit
        if (rate_in_hz, rate_out_hz, taps) != ours or not fits or abs(step - state.nominal) > max_change:
            raise InputError("the snapshot belongs to a resampler of other rates or another quality")
        if not self.tunable and (step != state.nominal or fraction % self._position_units):
            raise InputError(
                "the snapshot belongs to a resampler that was tuned: restore it in one with tunable=True"
            )
        self._changing = True
        self.history[:frames] = np.frombuffer(content, np.float32)
        state.first, state.end, state.fraction, state.step = 0, frames, fraction, step
        self._changing = False

    def process(self, block: NDArray[np.floating]) -> NDArray[np.float32]:
        """Feed any number of samples [frames] and return all ready [outputs].

        Silence of ``delay_frames`` yields the rest.
        Raises InputError: not one row of floats, or an earlier call was interrupted
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
            self._convert.call(
                self.address, samples.ctypes.data, len(samples), target.ctypes.data, len(target)
            )
            self._changing = False
            return target
        except BaseException:
            self._changing = True
            raise

    def _require_whole(self) -> None:
        if self._changing:
            raise InputError("an exception has ended process inside a block: begin a new stream with reset()")


class AudioResampler(NotCopyable, reason="it holds addresses of this process; make another one"):
    """Converts audio, all channels, from one rate to another.

    rate_in_hz, rate_out_hz  samples per second
    channels                 the channels of every block
    quality                  one of ``QUALITIES``
    Raises                   InputError: rates more than 256 times apart, or an unknown quality

    Output sample k is at the time ``k / rate_out_hz``: the filter's delay postpones output without adding
    samples. The samples do not depend on the split into blocks. After any exception in ``process`` or ``flush``, both
    raise InputError until ``reset``.
    """

    def __init__(self, rate_in_hz: int, rate_out_hz: int, channels: int = 1, quality: str = "best") -> None:
        self.rate_in_hz, self.rate_out_hz, self.channels = rate_in_hz, rate_out_hz, channels
        self._rows = [
            NativeResampler(rate_in_hz, rate_out_hz, quality, tunable=False) for _ in range(channels)
        ]
        self.reset()

    def process(self, block: NDArray[np.float32]) -> NDArray[np.float32]:
        """Resample [samples, channels]; returns the samples that are ready, [samples, channels].

        Raises InputError: a block of the wrong shape, or an exception ended an earlier call
        """
        if self._changing:
            raise InputError(
                "an exception interrupted process or flush, and a part of the block may be lost: begin a new stream "
                "with reset()"
            )
        if block.ndim != 2 or block.shape[1] != self.channels:
            raise InputError(f"expected a block [samples, {self.channels}], got {list(block.shape)}")
        try:
            self._changing = True
            ready = block
            if self.rate_in_hz != self.rate_out_hz:
                ready = np.stack(
                    [row.process(block[:, index]) for index, row in enumerate(self._rows)], axis=1
                )
            self._samples_in += len(block)
            self._samples_out += len(ready)
            self._changing = False
            return ready
        except BaseException:
            self._changing = True
            raise

    def flush(self, total: int | None = None) -> NDArray[np.float32]:
        """End the audio, return the rest, and reset the resampler.

        total  samples of the whole output; as long as the input, rounded, if None
        Raises InputError: an exception ended an earlier call
        """
        if total is None:
            total = resampled_length(self._samples_in, self.rate_in_hz, self.rate_out_hz)
        missing = max(total - self._samples_out, 0)
        needed = (total - 1) * self.rate_in_hz // self.rate_out_hz + self._rows[0].delay_frames + 1
        silence = np.zeros((max(needed - self._samples_in, 0), self.channels), np.float32)
        try:
            rest = self.process(silence)[:missing]
            self.reset()
            return rest
        except BaseException:
            self._changing = True
            raise

    def reset(self) -> None:
        """Start a new stream."""
        self._changing = True
        for row in self._rows:
            row.reset()
        self._samples_in = self._samples_out = 0
        self._changing = False


def resampled_length(samples: int, rate_in_hz: int, rate_out_hz: int) -> int:
    """Return the number of samples of a signal at another rate."""
    return (2 * samples * rate_out_hz + rate_in_hz) // (2 * rate_in_hz)
