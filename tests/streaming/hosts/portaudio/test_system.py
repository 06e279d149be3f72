"""The answers of PortAudio's calls when streams end, with a library that only answers."""

from ctypes import c_void_p
from typing import Any, cast

import pytest

from streaming.hosts.portaudio.system import AudioSystem

IS_STOPPED, INTERNAL_ERROR = -9983, -9986
LIMIT_S = 10.0


class AnsweringLibrary:
    """A library in which stopping and closing give one code."""

    def __init__(self, code: int) -> None:
        self.code = code

    def StopStream(self, handle: c_void_p) -> int:
        return self.code

    def CloseStream(self, handle: c_void_p) -> int:
        return self.code


@pytest.mark.parametrize(("code", "is_closed"), [(0, True), (INTERNAL_ERROR, False)])
def test_a_stream_that_the_library_does_not_close_is_not_closed(code: int, is_closed: bool) -> None:
    system = AudioSystem(cast(Any, AnsweringLibrary(code)))
    assert system.close(c_void_p(), uses_jack=False, limit_s=LIMIT_S) is is_closed


def test_a_stream_that_has_ended_by_itself_is_stopped() -> None:
    system = AudioSystem(cast(Any, AnsweringLibrary(IS_STOPPED)))
    assert system.stop(c_void_p(), LIMIT_S)
