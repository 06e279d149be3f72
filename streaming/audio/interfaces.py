"""Audio that is read or written in blocks, and the samples that a writer has clipped."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import isfinite, log10
from typing import Any, Self

import numpy as np

from pulse.errors import InputError
from pulse.support.not_copyable import NotCopyable
from streaming.audio.channels import Samples

BLOCK_S = 0.5
"""The audio that is read at a time."""


class Clipping:
    """Samples beyond -1..1 that an integer encoding cannot hold.

    samples  their number, of each channel
    peaks    their largest magnitude, of each channel; 0 if there are none
    """

    def __init__(self, channels: int) -> None:
        self.samples = [0] * channels
        self.peaks = [0.0] * channels

    @property
    def total(self) -> int:
        """The clipped samples of all channels."""
        return sum(self.samples)

    def count(self, block: Samples) -> None:
        """Count the clipped samples of a block [samples, channels]."""
        size = np.abs(block)
        over = size > 1
        if over.any():
            counts, peaks = over.sum(axis=0).tolist(), np.where(over, size, 0).max(axis=0).tolist()
            self.samples = [total + count for total, count in zip(self.samples, counts)]
            self.peaks = [max(before, new) for before, new in zip(self.peaks, peaks)]

    def as_list(self) -> list[dict[str, Any]]:
        """Return the clipped channels, for JSON; the peak is None if it is infinite."""
        return [
            {"channel": channel, "samples": samples, "peak": peak if isfinite(peak) else None}
            for channel, (samples, peak) in enumerate(zip(self.samples, self.peaks))
            if samples
        ]

    def __str__(self) -> str:
        """Describe the clipping, such as ``channel 0: 12 samples by up to 3.5 dB``."""
        return ", ".join(
            f"channel {channel}: {samples:,} sample{'s' if samples > 1 else ''} by up to {_decibels(peak)}"
            for channel, (samples, peak) in enumerate(zip(self.samples, self.peaks))
            if samples
        )


def _decibels(peak: float) -> str:
    if not isfinite(peak):
        return "an infinite amount"
    return f"{20 * log10(peak):.2g} dB" if peak < 1.1 else f"{20 * log10(peak):.1f} dB"


class AudioSource(NotCopyable, ABC, reason="its source can only be read once; open it again"):
    """Audio, read once from its beginning to its end.

    name      the name in messages
    rate_hz   samples per second
    channels  the channels of every block
    encoding  libsndfile's name of the encoding, such as PCM_16

    Iteration yields [samples, channels] float32. It raises InputError if the audio is damaged or contains NaN.
    """

    name: str
    rate_hz: int
    channels: int
    encoding: str

    @property
    @abstractmethod
    def frames(self) -> int | None:
        """Samples of each channel; None if unknown before the end."""

    @abstractmethod
    def __iter__(self) -> Iterator[Samples]: ...

    @abstractmethod
    def close(self) -> None:
        """Close the source."""

    def _refuse_nan(self, block: Samples, start: int) -> None:
        bad = np.isnan(block).any(axis=1)
        if bad.any():
            sample = start + int(np.argmax(bad))
            raise InputError(
                f"{self.name}: NaN at sample {sample} ({sample / self.rate_hz:.3f} s); write the file again without NaN"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AudioSink(NotCopyable, ABC, reason="it writes one file; make another one with another path"):
    """Writes audio, in a ``with`` block.

    encoding  libsndfile's name of the encoding
    clipping  the samples clipped so far
    """

    encoding: str
    clipping: Clipping

    @abstractmethod
    def write(self, block: Samples) -> None:
        """Append [samples, channels]. Raises InputError: it cannot be written."""

    @abstractmethod
    def close(self) -> None:
        """End the audio. Raises InputError: it cannot be written."""

    @abstractmethod
    def discard(self) -> None:
        """End the audio after an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()
