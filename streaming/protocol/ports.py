"""Ports of a stream as described in the protocol, and their values as bytes."""

from collections.abc import Mapping
from dataclasses import fields
from math import prod
from typing import Any

import numpy as np

from pulse.errors import InputError
from pulse.facts import DTYPES, Array, dtype_name
from pulse.interface import Port
from pulse.support.record import record
from pulse.support.report import field_values
from pulse.support.wording import count_of
from streaming.audio.encodings import ENCODINGS
from streaming.protocol.errors import ProtocolError

PCM16 = ENCODINGS["s16"]
_PCM16_STEP = np.float32(1 / (1 << 15))
_I2 = np.dtype("<i2")


@record
class StreamPort:
    """An input or output of a stream.

    number  its number in binary messages
    name    its name
    kind    ``sound``: samples of all channels, ``frames`` or ``final``
    dtype   numpy's name of the type
    shape   the shape of all frames; None at ``axis``, the stream axis
    axis    the stream axis; None for a final value
    rate    frames per second; None if the model's rate is unknown, or for a final value
    delay   frames by which the model looks ahead
    """

    number: int
    name: str
    kind: str
    dtype: str
    shape: tuple[int | None, ...]
    axis: int | None
    rate: float | None
    delay: int = 0

    @classmethod
    def of_port(cls, number: int, port: Port, rate_hz: int | None) -> "StreamPort":
        """Describe a port of a program. Raises InputError: the protocol does not support its type."""
        name = dtype_name(port.dtype)
        if name not in DTYPES:
            raise InputError(f"{port.name}: values of {name} cannot be sent")
        is_sound = port.is_sound or (port.channels > 0 and port.rate == 1)
        kind = "sound" if is_sound else "frames" if port.streams else "final"
        shape = tuple(None if index == port.axis else size for index, size in enumerate(port.shape))
        return cls(
            number=number,
            name=port.name,
            kind=kind,
            dtype=name,
            shape=shape,
            axis=port.axis,
            rate=port.frames_hz(rate_hz),
            delay=port.delay,
        )

    @classmethod
    def of_dict(cls, entries: Mapping[str, Any]) -> "StreamPort":
        """Create a port from a dictionary of ``as_dict``."""
        values: dict[str, Any] = {
            "delay": 0,
            **entries,
            "number": entries["port"],
            "shape": tuple(entries["shape"]),
        }
        return cls(**{field.name: values[field.name] for field in fields(cls)})

    def as_dict(self) -> dict[str, Any]:
        """Return the port as a dictionary for JSON."""
        values = field_values(self)
        return {"port": values.pop("number"), **values, "shape": list(self.shape)}

    @property
    def values(self) -> int:
        """The values of a frame, or of a final value: the channels of sound."""
        return prod(1 if size is None else size for size in self.shape)

    def frame_bytes(self, format: str) -> int:
        """Return the size of a frame, or of a final value, in this format."""
        return self.values * (2 if self.is_pcm(format) else DTYPES[self.dtype].itemsize)

    def encode(self, array: Array, format: str) -> bytes:
        """Encode the values of an array of the port's shape, frame after frame."""
        if self._is_turned:
            array = np.moveaxis(array, self.axis or 0, 0)
        if self.is_pcm(format):
            return PCM16.encode(array)
        return array.astype(_little_endian(array), copy=False).tobytes()

    def encode_all(self, arrays: Array, format: str) -> list[bytes]:
        """Encode several arrays as ``encode`` does, in about the time of one."""
        if self._is_turned:
            return [self.encode(array, format) for array in arrays]
        values = (
            PCM16.encode(arrays)
            if self.is_pcm(format)
            else arrays.astype(_little_endian(arrays), copy=False).tobytes()
        )
        size = len(values) // len(arrays)
        return [values[first : first + size] for first in range(0, size * len(arrays), size)]

    def decode(self, values: bytes | memoryview, frames: int, format: str) -> Array:
        """Decode this many frames to an array. Raises ProtocolError: there are more or fewer bytes."""
        frame_bytes = self.frame_bytes(format)
        size = frames * frame_bytes
        if len(values) != size:
            several = self.kind == "sound" and self.values > 1
            parts = f": one sample of each of {self.values} channels" if several else ""
            raise ProtocolError(
                "message",
                f"{self.name}: {len(values)} bytes follow the header of {count_of(frames, 'frame')}",
                f"a frame has {count_of(frame_bytes, 'byte')}{parts}",
            )
        dtype = DTYPES[self.dtype]
        if self.is_pcm(format):
            array: Array = np.frombuffer(values, _I2) * _PCM16_STEP
        else:
            array = np.frombuffer(values, dtype.newbyteorder("<")).astype(dtype, copy=False)
        if self.axis is None:
            return array.reshape([size or 0 for size in self.shape])
        if not self._is_turned:
            return array.reshape([frames if size is None else size for size in self.shape])
        others = [size for size in self.shape if size is not None]
        return np.ascontiguousarray(np.moveaxis(array.reshape([frames, *others]), 0, self.axis))

    @property
    def _is_turned(self) -> bool:
        """Whether the values of a frame are not contiguous in an array."""
        return any(size != 1 for size in self.shape[: self.axis])

    def is_pcm(self, format: str) -> bool:
        """Return whether the port's values are 16-bit samples in this format."""
        return format == "pcm16" and self.kind == "sound"


def _little_endian(array: Array) -> "np.dtype[Any]":
    return array.dtype.newbyteorder("<")
