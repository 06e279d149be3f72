"""Encodings of samples as bytes."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.support.naming import require_name
from pulse.support.record import record
from streaming.audio.channels import Samples


@record
class Encoding:
    """The encoding of a sample, little-endian.

    name      u8, s16, s24, s32: integers, u8 around 128; f32, f64: floating point
    subtype   libsndfile's name for it
    nbytes    bytes of a sample
    floating  whether values are written unchanged; integers are 2**(8*nbytes - 1) for 1
    """

    name: str
    subtype: str
    nbytes: int
    floating: bool = False

    @classmethod
    def of_name(cls, name: str) -> "Encoding":
        """Return the one of ``ENCODINGS`` with this name. Raises InputError: there is none."""
        return ENCODINGS[require_name("encoding", name, ENCODINGS, InputError)]

    @cached_property
    def _limits(self) -> tuple[Any, Any, Any]:
        """The lowest and the highest sample, and the integer for 1, in a type that has them exactly."""
        exact = np.float32 if self.nbytes < 4 else np.float64
        scale = exact(1 << (8 * self.nbytes - 1))
        return -scale / scale, (scale - 1) / scale, scale

    def decode(self, data: bytes) -> Samples:
        """Decode whole samples."""
        if self.floating:
            return np.frombuffer(data, f"<f{self.nbytes}").astype(np.float32)
        if self.nbytes == 1:
            return ((np.frombuffer(data, np.uint8).astype(np.float32) - 128) / 128).astype(np.float32)
        padded = np.zeros((len(data) // self.nbytes, 4), np.uint8)
        padded[:, 4 - self.nbytes :] = np.frombuffer(data, np.uint8).reshape(-1, self.nbytes)
        return (padded.view("<i4")[:, 0] / float(1 << 31)).astype(np.float32)

    def encode(self, samples: Samples) -> bytes:
        """Encode samples, rounded to the nearest; integers are clipped beyond -1 to 1, and NaN becomes 0."""
        if self.floating:
            return samples.astype(f"<f{self.nbytes}").tobytes()
        lowest, highest, scale = self._limits
        numbers = np.minimum(samples, highest)
        np.maximum(numbers, lowest, out=numbers)
        np.multiply(numbers, scale, out=numbers)
        np.rint(numbers, out=numbers)
        missing = np.isnan(numbers)
        if b"\1" in missing.tobytes():
            numbers[missing] = 0
        if self.nbytes == 1:
            return (numbers + 128).astype(np.uint8).tobytes()
        if self.nbytes == 2:
            return numbers.astype("<i2").tobytes()
        padded: NDArray[np.uint8] = np.ascontiguousarray(numbers.astype("<i4")).view(np.uint8)
        return padded.reshape(-1, 4)[:, : self.nbytes].tobytes()


ENCODINGS = {
    encoding.name: encoding
    for encoding in (
        Encoding("u8", "PCM_U8", 1),
        Encoding("s16", "PCM_16", 2),
        Encoding("s24", "PCM_24", 3),
        Encoding("s32", "PCM_32", 4),
        Encoding("f32", "FLOAT", 4, floating=True),
        Encoding("f64", "DOUBLE", 8, floating=True),
    )
}
"""The encodings by name."""
