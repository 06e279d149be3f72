"""Values of ports as bytes, and back: every type and place of the stream axis, 16-bit samples, wrong sizes."""

from fractions import Fraction

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.errors import InputError
from pulse.facts import DTYPES
from pulse.interface import Port
from pulse.support.wording import count_of
from streaming.protocol.errors import ProtocolError
from streaming.protocol.ports import StreamPort


def stream_port(shape: tuple[int, ...], axis: int | None, dtype: str = "f32") -> StreamPort:
    rate = Fraction(0 if axis is None else 1, 2)
    return StreamPort.of_port(1, Port("x", shape, DTYPES[dtype], axis, 5, rate, TDim.of(0)), 16000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis"), [((7,), 0), ((1, 7), 1), ((7, 3), 0), ((2, 7, 3), 1), ((2, 3, 7), 2), ((2, 3), None)]
)
def test_values_are_the_same_after_encoding(
    rng: np.random.Generator, dtype: str, shape: tuple[int, ...], axis: int | None
) -> None:
    port = stream_port(shape, axis, dtype)
    frames = 1 if axis is None else shape[axis]
    array = (100 * rng.random(shape)).astype(DTYPES[dtype])
    values = port.encode(array, "raw")
    assert len(values) == frames * port.frame_bytes("raw")
    decoded = port.decode(values, frames, "raw")
    assert decoded.dtype == array.dtype
    np.testing.assert_array_equal(decoded, array)


def test_frames_follow_one_another_in_bytes() -> None:
    """The stream axis is first in a message, wherever it is in the array."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert stream_port((2, 3), 1).encode(array, "raw") == array.T.tobytes()


@pytest.mark.parametrize("shape", [(1, 5), (2, 5)])
def test_several_arrays_are_encoded_as_one_by_one(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    port, arrays = stream_port(shape, 1), rng.random((3, *shape)).astype(np.float32)
    assert port.encode_all(arrays, "pcm16") == [port.encode(array, "pcm16") for array in arrays]


def test_16_bit_samples_are_rounded_and_clipped() -> None:
    samples = np.float32([0, 0.5, -1, 1, 2, -2, np.nan, 1.4 / 32768, 1.6 / 32768, 1e38])
    values = np.frombuffer(stream_port((10,), 0).encode(samples, "pcm16"), "<i2")
    assert values.tolist() == [0, 16384, -32768, 32767, 32767, -32768, 0, 1, 2, 32767]


def test_only_sound_is_sent_as_16_bit_samples() -> None:
    assert stream_port((9,), 0).frame_bytes("pcm16") == 2
    assert stream_port((9, 3), 0).frame_bytes("pcm16") == 12


@pytest.mark.parametrize(("size", "frames"), [(11, 3), (16, 3), (0, 1)])
def test_values_of_another_size_are_refused(size: int, frames: int) -> None:
    with pytest.raises(
        ProtocolError, match=f"x: {size} bytes follow the header of {count_of(frames, 'frame')};"
    ) as caught:
        stream_port((7,), 0).decode(bytes(size), frames, "raw")
    assert caught.value.code == "message"


@pytest.mark.parametrize(
    ("shape", "axis", "kind", "rate"),
    [((1, 7), 1, "sound", 8000.0), ((1, 7, 2), 1, "frames", 8000.0), ((2, 3), None, "final", None)],
)
def test_a_port_is_described_by_its_kind(
    shape: tuple[int, ...], axis: int | None, kind: str, rate: float | None
) -> None:
    port = stream_port(shape, axis)
    assert (port.kind, port.rate, port.delay) == (kind, rate, 5)
    assert StreamPort.of_dict(port.as_dict()) == port


def test_types_that_the_protocol_lacks_are_refused() -> None:
    port = Port("x", (7,), np.dtype(np.complex64), 0, 0, Fraction(1), TDim.of(0))
    with pytest.raises(InputError, match=r"x: values of \w+ cannot be sent"):
        StreamPort.of_port(1, port, 16000)
