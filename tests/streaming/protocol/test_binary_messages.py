"""Headers of binary messages."""

import pytest

from pulse.support.wording import count_of
from streaming.protocol.binary_messages import (
    EPOCH_MODULUS,
    HEADER,
    INPUT,
    OUTPUT,
    Header,
    pack_frames,
    unpack_header,
)
from streaming.protocol.errors import ProtocolError


@pytest.mark.parametrize(
    "header",
    [
        Header(INPUT, 0, 0, 0, 0),
        Header(OUTPUT, 255, EPOCH_MODULUS - 1, 2**32 - 1, 2**64 - 1, 2**32 - 1, 7),
    ],
    ids=["smallest", "largest"],
)
def test_headers_are_read_as_they_were_written(header: Header) -> None:
    message = pack_frames(header, b"values")
    assert unpack_header(message) == header
    assert message[HEADER.size :] == b"values"


def test_times_beyond_the_field_are_its_largest() -> None:
    header = unpack_header(pack_frames(Header(OUTPUT, 0, 0, 1, 0, 2**40, 2**33), b""))
    assert (header.queue_us, header.step_us) == (2**32 - 1, 2**32 - 1)


@pytest.mark.parametrize("size", [0, 1, HEADER.size - 1])
def test_messages_shorter_than_a_header_are_refused(size: int) -> None:
    with pytest.raises(
        ProtocolError, match=f"a binary message of {count_of(size, 'byte')}; begin each one with a header"
    ):
        unpack_header(bytes(size))
