"""PortAudio as a host of live runs: devices, streams, and recovery from a lost sound server.

PortAudio is called through its C interface, not through sounddevice, whose import opens a JACK client and whose
exit aborts the process if the JACK server was lost meanwhile. A copy of the library that hangs, or whose JACK
server was lost, is left as it is, and another copy with separate state is loaded.
"""

import atexit
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from streaming.errors import DeviceError
from streaming.hosts.devices import Device, DeviceKind, choose_device
from streaming.hosts.host import Endpoint, StreamRequest
from streaming.hosts.portaudio.portaudio_library import PortAudioLibrary
from streaming.hosts.portaudio.stream_spec import StreamSide
from streaming.hosts.portaudio.system import AudioSystem

if TYPE_CHECKING:
    from streaming.hosts.portaudio.native_stream import NativeStream
    from streaming.hosts.portaudio.python_stream import PythonStream

PortAudioStream: TypeAlias = "NativeStream | PythonStream"

SEARCH_TIMEOUT_S = 8.0
"""The seconds that the search for devices may take."""
REFRESH_TIMEOUT_S = 1.5
"""A search for devices may take longer: it continues, and the call says so."""
EXIT_TIMEOUT_S = 1.0
"""The seconds of each call that closes something at the end; what has not closed by then stays open."""


@dataclass
class Systems:
    """The audio systems of this process, and the streams that are open."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    current: AudioSystem | None = None
    replaced: Sequence[AudioSystem] = ()
    open: Sequence[PortAudioStream] = ()


systems = Systems()


def _system() -> AudioSystem:
    """Return the system in use; a new one if it cannot be used.

    Raises DeviceError: PortAudio cannot be loaded, or hangs
    """
    with systems.lock:
        current = systems.current
        if current is None or not current.is_usable:
            current = _replace_system(current)
        if not current.wait(SEARCH_TIMEOUT_S):
            raise DeviceError(
                f"PortAudio has been looking for devices for more than {SEARCH_TIMEOUT_S:g} s; is a sound server "
                "hanging? Restart the sound server"
            )
        return current


def _replace_system(old: AudioSystem | None) -> AudioSystem:
    """Replace a system that has ended or was abandoned. Raises DeviceError: PortAudio cannot be loaded."""
    if old is None:
        library = PortAudioLibrary()
    else:
        library = old.library if old.may_initialise_again else old.library.load_another_copy()
        old.is_replaced = True
        systems.replaced = [system for system in (*systems.replaced, old) if system.streams]
    systems.current = AudioSystem(library)
    return systems.current


def refresh(limit_s: float = REFRESH_TIMEOUT_S) -> bool:
    """Search for devices again. Returns whether the limit sufficed. Open streams continue, indices may change.

    Raises DeviceError: the search can never succeed
    """
    with systems.lock:
        current = systems.current
        if current is None or not (current.is_usable and current.is_starting):
            if current is not None and current.is_usable and current.streams == 0:
                current.end(limit_s)
            current = _replace_system(current)
        return current.wait(limit_s)


@atexit.register
def release(limit_s: float = EXIT_TIMEOUT_S) -> None:
    """Close all streams and terminate PortAudio, if each call returns within the limit; the next use restarts it."""
    with systems.lock:
        for stream in systems.open:
            stream.stop(limit_s)
        for system in (*systems.replaced, systems.current):
            if system is not None and system.is_usable:
                system.end(limit_s)
        systems.open = ()


class PortAudio:
    """Devices of this machine; see ``host.Host``.

    native  whether callbacks are compiled code; otherwise they go through sounddevice and Python, which streams note.
            None: compiled, unless PortAudio cannot be called directly
    """

    virtual_clock = False
    is_finite = False

    def __init__(self, native: bool | None = None) -> None:
        self.native = is_callable() if native is None else native

    def devices(self) -> tuple[Device, ...]:
        """Return all devices of the last search. Raises DeviceError: PortAudio is missing, or does not respond."""
        if self.native:
            return _system().devices
        from streaming.hosts.portaudio.python_stream import list_devices

        return list_devices()

    def choose(self, kind: DeviceKind, requested: str | int | None) -> Endpoint:
        """Find a device by number or a part of its name; the default if None. Raises as ``Host.choose``."""
        device = choose_device(self.devices(), kind, requested)
        return Endpoint(device.title, device.index, device.channels(kind), device.default_rate_hz)

    def open(self, request: StreamRequest) -> PortAudioStream:
        """Open a stream. Raises DeviceError: it cannot be opened; InputError: no such device."""
        with systems.lock:
            present = self.devices()
            sides: tuple[StreamSide, ...] = ()
            if request.source is not None:
                sides += (_side(present, "input", request.source, request.channels_in, request.latency),)
            if request.target is not None:
                sides += (_side(present, "output", request.target, request.channels_out, request.latency),)
            stream = self._open_stream(request, sides)
            systems.open = [*(other for other in systems.open if not other.closed), stream]
            return stream

    def _open_stream(self, request: StreamRequest, sides: tuple[StreamSide, ...]) -> PortAudioStream:
        if self.native:
            from streaming.hosts.portaudio.native_stream import NativeStream

            return NativeStream(_system(), request, sides)
        from streaming.hosts.portaudio.python_stream import PythonStream

        return PythonStream(request, sides)

    def refresh(self) -> bool:
        """Search for devices again, before a stream is reopened. Raises DeviceError: it can never succeed."""
        return refresh() if self.native else True


def is_callable() -> bool:
    """Return whether the library is found; if not, a host raises when it is used."""
    if systems.current is not None:
        return True
    try:
        PortAudioLibrary()
    except DeviceError:
        return False
    return True


def _side(
    present: Sequence[Device], kind: DeviceKind, endpoint: Endpoint, channels: int, latency: str | float
) -> StreamSide:
    matching_devices = [
        device for device in present if (device.index, device.title) == (endpoint.index, endpoint.name)
    ]
    device = matching_devices[0] if matching_devices else choose_device(present, kind, endpoint.name)
    return StreamSide(kind, device, channels, device.latency_s(kind, latency))
