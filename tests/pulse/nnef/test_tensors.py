"""The .dat files: what is written is read, and what contradicts itself is refused."""

import numpy as np
import pytest

from pulse.errors import LoadError, WriteError
from pulse.facts import Array
from pulse.nnef.tensors import HEADER, dump_tensor, load_tensor

TYPES = ("f2", "f4", "f8", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "?")


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3, 5), (1,) * 8])
def test_written_content_is_read_back(name: str, shape: tuple[int, ...]) -> None:
    value = (np.random.default_rng(0).standard_normal(shape) * 3).astype(name)
    back = load_tensor(dump_tensor(np.asarray(value), "x"), "x")
    assert back.dtype == np.dtype(name)
    np.testing.assert_array_equal(back, value)


def test_the_header_is_that_of_the_standard() -> None:
    head = dump_tensor(np.zeros((2, 3), np.float32), "x")[: HEADER.size]
    assert HEADER.size == 128
    assert head[:4] == b"N\xef\x01\x00"
    assert int.from_bytes(head[4:8], "little") == 24
    assert int.from_bytes(head[8:12], "little") == 2
    assert [int.from_bytes(head[start : start + 4], "little") for start in (12, 16, 20)] == [2, 3, 0]
    assert int.from_bytes(head[44:48], "little") == 32


def change_byte(offset: int, number: int) -> bytes:
    data = bytearray(dump_tensor(np.zeros((2, 3), np.float32), "x"))
    data[offset : offset + 4] = number.to_bytes(4, "little")
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "0 bytes are not a .dat file", id="empty"),
        pytest.param(b"PK" + bytes(200), "not a .dat file of NNEF 1.0", id="zip"),
        pytest.param(change_byte(8, 9), "9 axes, but a .dat file has up to 8", id="nine axes"),
        pytest.param(
            change_byte(12, 1 << 31),
            r"the header states shape \[2147483648, 3\], 25769803776 bytes",
            id="huge shape",
        ),
        pytest.param(change_byte(4, 1 << 30), "1073741824 bytes of data, but 24 follow", id="huge size"),
        pytest.param(
            change_byte(44, 33),
            "entries of kind 0 with 33 bits of vendor 0x0 are not supported",
            id="33 bits",
        ),
        pytest.param(change_byte(48, 77), "entries of kind 77", id="unknown kind"),
        pytest.param(change_byte(0, 0x0002EF4E), "not a .dat file of NNEF 1.0", id="wrong magic"),
        pytest.param(dump_tensor(np.zeros(3, np.float32), "x")[:-1], "but 11 follow", id="cut short"),
    ],
)
def test_files_that_contradict_themselves_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(LoadError, match=f"w: .*{reason}"):
        load_tensor(data, "w")


@pytest.mark.parametrize(
    ("tensor", "reason"),
    [
        pytest.param(np.zeros(2, np.complex64), "cannot hold complex64", id="complex"),
        pytest.param(np.zeros((1,) * 9, np.float32), "holds up to 8 axes, not the 9", id="nine axes"),
    ],
)
def test_tensors_that_no_file_can_hold_are_refused(tensor: Array, reason: str) -> None:
    with pytest.raises(WriteError, match=rf"w: a .dat file {reason}"):
        dump_tensor(tensor, "w")
