"""PortAudio's library and its copies."""

from ctypes.util import find_library

import pytest

from streaming.errors import DeviceError
from streaming.hosts.portaudio.portaudio_library import PortAudioLibrary
from tests.live.servers import require_portaudio


@pytest.fixture(autouse=True)
def portaudio_is_here() -> None:
    require_portaudio()


def test_each_copy_has_a_state_of_its_own() -> None:
    first = PortAudioLibrary().load_another_copy()
    assert b"PortAudio" in first.GetVersionText()
    second, third = first.load_another_copy(), first.load_another_copy().load_another_copy()
    copies = first, second, third
    assert [copy.is_initialised for copy in copies] == [False, False, False]
    assert second.Initialize() == 0
    assert [copy.is_initialised for copy in copies] == [False, True, False]
    assert second.Terminate() == 0
    assert not second.is_initialised


def test_libraries_other_than_portaudio_are_refused() -> None:
    with pytest.raises(
        DeviceError, match=r"none\.so: cannot be loaded as PortAudio .* apt install libportaudio2"
    ):
        PortAudioLibrary("none.so")
    other = find_library("c") or ""
    with pytest.raises(DeviceError, match="cannot be loaded as PortAudio"):
        PortAudioLibrary(other)
    with pytest.raises(AttributeError):
        _ = PortAudioLibrary().NoSuchFunction
