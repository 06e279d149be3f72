"""The channels of audio: those that are chosen of a file or device, and those of a model's inputs and outputs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.facts import Array
from pulse.interface import Port
from pulse.support.record import record
from pulse.support.wording import count_of

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
            choices = "0" if channels == 1 else f"one of 0 to {channels - 1}"
            raise InputError(
                f"channel {self.index}: the audio has {count_of(channels, 'channel')}, numbered from 0; give mix, each "
                f"or {choices}"
            )
        return channels if self.each else 1

    def select(self, block: Samples) -> Samples:
        """Select from a block [samples, channels] the samples of every stream [samples, streams]."""
        if self.each or block.shape[1] == 1:
            return block
        if self.index is not None:
            return block[:, self.index : self.index + 1]
        return block.mean(axis=1, keepdims=True, dtype=np.float32)


@record
class InputChannel:
    """A channel of an audio input of a model.

    port   the input
    index  the channel, counted from 0
    """

    port: Port
    index: int

    @property
    def name(self) -> str:
        """The name of the input; followed by ``:`` and the channel if it has several."""
        return self.port.channel_name(self.index)


def input_channels(ports: Sequence[Port]) -> list[InputChannel]:
    """Return all channels of audio inputs, in order."""
    return [InputChannel(port, index) for port in ports for index in range(port.channels)]


@record
class OutputChoice:
    """An output of a model, or one channel of an output of audio.

    port     the output
    channel  the channel, counted from 0; None for all
    """

    port: Port
    channel: int | None = None

    @property
    def name(self) -> str:
        """The name of the output; followed by ``:`` and the channel if it is one of several."""
        return self.port.name if self.channel is None else self.port.channel_name(self.channel)

    @property
    def channels(self) -> range:
        """The numbers of its channels in the output."""
        if self.channel is None:
            return range(self.port.channels)
        return range(self.channel, self.channel + 1)

    def samples(self, frames: Array) -> Array:
        """Return frames of the output as [frames, channels]."""
        return self.port.read_sound(frames)[:, self.channels]


def output_choices(ports: Sequence[Port]) -> dict[str, OutputChoice]:
    """Return audio outputs by name, and the channels of those that have several, as ``name:channel``."""
    choices: list[OutputChoice] = []
    for port in ports:
        if port.channels:
            channels = range(port.channels) if port.channels > 1 else ()
            choices += [OutputChoice(port), *(OutputChoice(port, channel) for channel in channels)]
    return {choice.name: choice for choice in choices}
