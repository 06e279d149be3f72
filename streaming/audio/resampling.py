# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""Sample rate conversion in chunks, for files; live audio has ``native.resample``."""

from typing import Any

import numpy as np

from pulse.errors import InputError
from pulse.support.not_copyable import NotCopyable
from streaming.audio.channels import Samples
from streaming.native.filters import require_rates

QUALITIES = ("sinc_best", "sinc_medium", "sinc_fastest")
"""Stop bands of -150, -119 and -97 dB; delays of about 9, 3 and 1 ms at 48 kHz to 16 kHz."""


class Resampler(NotCopyable, reason="its state is in libsamplerate; make another and repeat the samples"):
    """Converts blocks from one rate to another.

    rate_in_hz, rate_out_hz  samples per second
    channels                 the channels of every block
    quality                  one of ``QUALITIES``
    Raises                   InputError: rates that are not positive or more than 256 times apart

    Output sample k is at the time ``k / rate_out_hz``: the filter's delay postpones output without adding
    samples. The samples do not depend on the split into blocks. After any exception in ``process`` or ``flush``, both
    raise InputError until ``reset``.
    """

    def __init__(
        self, rate_in_hz: int, rate_out_hz: int, channels: int = 1, quality: str = "sinc_best"
    ) -> None:
        require_rates(rate_in_hz, rate_out_hz)
        if quality not in QUALITIES:
            raise InputError(f"resampling quality {quality!r}: choose one of {', '.join(QUALITIES)}")
        self.rate_in_hz = rate_in_hz
        self.rate_out_hz = rate_out_hz
        self.channels = channels
        self._is_same_rate = rate_in_hz == rate_out_hz
        self._ratio = rate_out_hz / rate_in_hz
        self._converter: Any = None if self._is_same_rate else _converter(quality, channels)
        self._samples_in = 0
        self._samples_out = 0
        self._changing = False

    def process(self, block: Samples) -> Samples:
        """Resample [samples, channels]; returns the samples that are ready, [samples, channels].

        Raises InputError: a block of the wrong shape, or an exception ended an earlier call
        """
        self._require_whole()
        if block.ndim != 2 or block.shape[1] != self.channels:
            raise InputError(f"expected a block [samples, {self.channels}], got {list(block.shape)}")
        try:
            self._changing = True
            self._samples_in += len(block)
            if self._is_same_rate or not len(block):
                ready = block if self._is_same_rate else block[:0]
            else:
                ready = self._convert(block)
            self._samples_out += len(ready)
            self._changing = False
            return ready
        except BaseException:
            self._changing = True
            raise

    def flush(self, total: int | None = None) -> Samples:
        """End the audio, return the rest, and reset the resampler.

        total  samples of the whole output; as long as the input, rounded, if None
        Raises InputError: an exception ended an earlier call
        """
        self._require_whole()
        try:
            self._changing = True
            rest = self._rest(total)
            self.reset()
            return rest
        except BaseException:
            self._changing = True
            raise

    def _rest(self, total: int | None) -> Samples:
        if total is None:
            total = resampled_length(self._samples_in, self.rate_in_hz, self.rate_out_hz)
        missing = total - self._samples_out
        pieces = [np.zeros((0, self.channels), np.float32)]
        silence = np.zeros((max(self.rate_in_hz // 50, 1), self.channels), np.float32)
        while missing > 0:
            piece = (silence if self._is_same_rate else self._convert(silence))[:missing]
            pieces.append(piece)
            missing -= len(piece)
        return np.concatenate(pieces)

    def reset(self) -> None:
        """Start a new stream."""
        self._changing = True
        if self._converter is not None:
            self._converter.reset()
        self._samples_in = self._samples_out = 0
        self._changing = False

    def _require_whole(self) -> None:
        if self._changing:
            raise InputError(
                "an exception interrupted process or flush, and a part of the block may be lost: begin a new stream "
                "with reset()"
            )

    def _convert(self, block: Samples) -> Samples:
        return self._converter.process(block, self._ratio).reshape(-1, self.channels)


def _converter(quality: str, channels: int) -> Any:
    """Create libsamplerate's converter, whose import is slow."""
    import samplerate

    return samplerate.Resampler(quality, channels)


def resampled_length(samples: int, rate_in_hz: int, rate_out_hz: int) -> int:
    """Return the number of samples of a signal at another rate."""
    return (2 * samples * rate_out_hz + rate_in_hz) // (2 * rate_in_hz)
