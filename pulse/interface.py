"""The interface of a model to its streams: inputs and outputs, their lengths, and the wires that outputs wait for."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any, Protocol

import numpy as np

from pulse.dim import Symbol, TDim
from pulse.errors import DimError, PulsifyError
from pulse.facts import Array, DType, PulsedFact, StreamFact, dtype_name, shape_text
from pulse.support.bounds import FAR_FRAMES
from pulse.support.naming import require_name
from pulse.support.record import record

MAX_CHANNELS = 8
"""The most values of a frame that are the channels of audio; more are features."""


@record
class Port:
    """An input or output of a pulsed model.

    name    its name
    shape   shape of one pulse
    dtype   its dtype
    axis    the stream axis; None if the tensor does not stream: then an input is given once, and an output (or one
            whose rate is 0) is known when the stream has ended
    delay   leading frames to drop
    rate    frames for each frame of the symbol
    length  valid frames of the whole stream, a function of the symbol
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    axis: int | None
    delay: int
    rate: Fraction
    length: TDim

    @classmethod
    def of(cls, name: str, fact: PulsedFact, stream: StreamFact | None) -> "Port":
        """Return the port of a wire, with its position in time if it is a stream."""
        if stream is None:
            return cls(name, fact.sizes, fact.dtype, None, 0, Fraction(0), TDim.of(0))
        return cls(name, fact.sizes, fact.dtype, stream.axis, stream.offset, stream.rate, stream.length)

    def most_frames(self, symbol: Symbol) -> int | None:
        """Return the most frames of any stream; None if their number grows with the stream."""
        try:
            grows = self.length.slope(symbol) > 0
        except DimError:
            return None
        return None if grows else self.length.eval({symbol: FAR_FRAMES})

    @property
    def streams(self) -> bool:
        """Whether frames come with every pulse."""
        return self.axis is not None and self.rate > 0

    @property
    def channels(self) -> int:
        """The channels of audio: the f32 values of a frame, all before or all after the stream axis; 0: not audio."""
        if self.axis is None or not self.streams or self.dtype != np.float32:
            return 0
        before, after = prod(self.shape[: self.axis]), prod(self.shape[self.axis + 1 :])
        return before * after if 1 in (before, after) and before * after <= MAX_CHANNELS else 0

    @property
    def is_sound(self) -> bool:
        """Whether each frame is one f32 value."""
        return self.channels == 1

    @property
    def is_interleaved(self) -> bool:
        """Whether the values of a frame are neighbours in memory, as in [1, T, channels]."""
        return prod(self.shape[(self.axis or 0) + 1 :]) > 1

    @property
    def frames(self) -> int:
        """Frames in each pulse."""
        return self.shape[self.axis] if self.axis is not None else 0

    def frames_hz(self, rate_hz: float | None) -> float | None:
        """Return frames per second, from those of the symbol; None if that is unknown, or if it does not stream."""
        return float(rate_hz * self.rate) if rate_hz is not None and self.streams else None

    def channel_name(self, channel: int) -> str:
        """Return the port's name; followed by ``:`` and the channel, counted from 0, if it has several."""
        return self.name if self.channels == 1 else f"{self.name}:{channel}"

    def sound_layout(self, channel: int) -> tuple[int, int]:
        """Return the index of a channel's first value in the memory of a pulse, and the step to its next one."""
        return (channel, self.channels) if self.is_interleaved else (channel * self.frames, 1)

    def shape_sound(self, samples: Array) -> Array:
        """Return samples of a port of audio, [frames, channels], in its shape."""
        values = samples if self.is_interleaved else samples.T
        return np.ascontiguousarray(values).reshape(
            [len(samples) if axis == self.axis else size for axis, size in enumerate(self.shape)]
        )

    def read_sound(self, frames: Array) -> Array:
        """Return frames of a port of audio as [frames, channels]."""
        if self.is_interleaved:
            return frames.reshape(-1, self.channels)
        return frames.reshape(self.channels, -1).T

    @property
    def type_text(self) -> str:
        """The shape of a pulse and the dtype, such as ``1,160,f32``."""
        return f"{shape_text(self.shape)},{dtype_name(self.dtype)}"

    @property
    def label(self) -> str:
        """The name, shape and dtype."""
        return f"{self.name}: {self.type_text}"

    def __str__(self) -> str:
        if self.axis is None:
            return f"{self.label}, no stream"
        if not self.streams:
            return f"{self.label}, axis {self.axis}, {self.length} frames at the end"
        return f"{self.label}, axis {self.axis}, delay {self.delay}, rate {self.rate}, length {self.length}"

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {
            "name": self.name,
            "shape": list(self.shape),
            "dtype": dtype_name(self.dtype),
            "axis": self.axis,
            "delay_frames": self.delay,
            "rate": str(self.rate),
            "length": str(self.length),
        }


@record
class AwaitedWire:
    """A wire whose last frame some output waits for.

    frames  its frames in each pulse
    offset  frame j is at index j + offset of the concatenated pulses
    length  frames of the whole stream, a function of the symbol
    """

    frames: int
    offset: int
    length: TDim


class Interface(Protocol):
    """A pulsed model from outside; the graph need not be there.

    title        the model's name
    symbol       counts the frames of the stream; ``assumptions`` are the model's conditions on it
    pulse        frames of the symbol in each step
    sizes        symbols of the file that are not lengths of the stream -> what they were made
    chunks       how a chunk model is called; None if the model was pulsified
    """

    @property
    def title(self) -> str: ...
    @property
    def symbol(self) -> Symbol: ...
    @property
    def pulse(self) -> int: ...
    @property
    def inputs(self) -> tuple[Port, ...]: ...
    @property
    def outputs(self) -> tuple[Port, ...]: ...
    @property
    def assumptions(self) -> Sequence[TDim]: ...
    @property
    def sizes(self) -> Mapping[str, int]: ...
    @property
    def chunks(self) -> Any: ...

    def port(self, name: str) -> Port:
        """Return an input or output by its name. Raises PulsifyError: no such port."""
        ...

    def awaited_wires(self) -> Sequence[AwaitedWire]:
        """Return every wire whose last frame some output waits for."""
        ...


def find_port(model: Interface, name: str) -> Port:
    """Return an input or output by its name. Raises PulsifyError: no such port."""
    ports = {port.name: port for port in (*model.inputs, *model.outputs)}
    return ports[require_name("input or output", name, ports, PulsifyError)]


def main_output(ports: Sequence[Port], source: Port | None) -> Port | None:
    """Return the first of audio outputs with as many channels as an input, else the first; None if there are none."""
    channels = None if source is None else source.channels
    first = next((port for port in ports if port.channels), None)
    return next((port for port in ports if port.channels == channels), first)
