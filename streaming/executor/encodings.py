"""Samples as bytes, and back."""

from dataclasses import dataclass

import numpy as np

from pulse.errors import InputError
from streaming.channels import Samples


@dataclass(frozen=True)
class Encoding:
    """How a sample is written.

    name   s16 or s32: whole numbers, the largest stands for 1; f32: as it is
    scale  what 1 is multiplied by; 0 where samples are written as they are
    """

    name: str
    dtype: "np.dtype[np.int16] | np.dtype[np.int32] | np.dtype[np.float32]"
    scale: float = 0.0

    @classmethod
    def named(cls, name: str) -> "Encoding":
        """One of ``ENCODINGS``. Raises InputError."""
        if name not in ENCODINGS:
            raise InputError(f"no encoding is called {name!r}; there is {', '.join(ENCODINGS)}")
        return ENCODINGS[name]

    def decode(self, data: bytes) -> Samples:
        """The samples of whole encoded ones."""
        samples = np.frombuffer(data, self.dtype)
        if not self.scale:
            return samples.astype(np.float32)
        return (samples / self.scale).astype(np.float32)

    def encode(self, samples: Samples) -> bytes:
        """The nearest that can be written; beyond -1 to 1 whole numbers are cut off."""
        if not self.scale:
            return samples.astype(self.dtype).tobytes()
        scaled = np.rint(samples.astype(np.float64) * self.scale)
        return np.clip(scaled, -self.scale, self.scale - 1).astype(self.dtype).tobytes()


ENCODINGS = {
    encoding.name: encoding
    for encoding in (
        Encoding("s16", np.dtype("<i2"), float(1 << 15)),
        Encoding("s32", np.dtype("<i4"), float(1 << 31)),
        Encoding("f32", np.dtype("<f4")),
    )
}
"""By name; all are little-endian."""
