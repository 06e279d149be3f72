"""The choice of channels of an audio file for a model."""

import numpy as np
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.support.record import record

Samples = NDArray[np.float32]


@record
class Channels:
    """A choice of channels.

    index  the one channel to take; None with ``each`` False for the mean of all
    each   one stream for every channel
    """

    index: int | None = None
    each: bool = False

    @classmethod
    def parse(cls, text: str) -> "Channels":
        """Parse ``mix``, ``each`` or the number of a channel from 0. Raises InputError: the text is none of these."""
        if text == "mix":
            return cls()
        if text == "each":
            return cls(each=True)
        if text.isascii() and text.isdigit():
            return cls(int(text))
        raise InputError(f"channel {text!r}: give mix, each or the number of a channel from 0")

    def count_streams(self, channels: int) -> int:
        """Return the number of streams for audio of that many channels.

        Raises InputError: the audio has no such channel
        """
        if self.index is not None and self.index >= channels:
            raise InputError(
                f"channel {self.index}: the audio has {channels} channel{'s' if channels > 1 else ''}, "
                f"numbered from 0; give mix, each or one of 0 to {channels - 1}"
            )
        return channels if self.each else 1

    def select(self, block: Samples) -> Samples:
        """Select from a block [samples, channels] the samples of every stream [samples, streams]."""
        if self.each or block.shape[1] == 1:
            return block
        if self.index is not None:
            return block[:, self.index : self.index + 1]
        return block.mean(axis=1, keepdims=True, dtype=np.float32)
