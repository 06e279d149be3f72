"""Blocks of a client are checked against the inputs of the stream before they are sent."""

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from streaming.client.input_arrays import arrays_by_port
from streaming.protocol.ports import StreamPort

SOUND = StreamPort(0, "audio", "sound", "f32", (1, None), 1, 16000.0)
CODES = StreamPort(0, "codes", "frames", "i64", (1, None), 1, 50.0)


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.uint8, bool])
def test_integers_are_not_sound(dtype: type) -> None:
    """16-bit samples would be 32768 times too loud."""
    with pytest.raises(
        InputError, match=r"audio: expected f32, got \w+; convert it with astype, sound to -1 .* 1"
    ):
        arrays_by_port([SOUND], np.zeros((1, 4), dtype))


@pytest.mark.parametrize(
    ("port", "block"),
    [
        (SOUND, np.zeros(4, np.float64)),
        (SOUND, np.zeros((1, 4), np.float16)),
        (CODES, np.zeros((1, 4), np.int32)),
        (CODES, np.zeros((1, 4), np.uint8)),
    ],
    ids=["f64", "f16", "i32", "u8"],
)
def test_types_of_the_same_kind_are_converted(port: StreamPort, block: Array) -> None:
    ((_, array),) = arrays_by_port([port], block)
    assert (array.shape, array.dtype.kind) == ((1, 4), "f" if port is SOUND else "i")


def test_floats_are_not_codes() -> None:
    with pytest.raises(InputError, match=r"codes: expected i64, got float32; convert it with astype$"):
        arrays_by_port([CODES], np.zeros((1, 4), np.float32))
