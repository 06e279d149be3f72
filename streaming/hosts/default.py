"""The devices of this machine, unless another host is named."""

from streaming.errors import DeviceError
from streaming.hosts.devices import Device
from streaming.hosts.host import Host
from streaming.hosts.portaudio.portaudio import PortAudio


def default_host() -> Host:
    """Return the host of this system's devices."""
    return PortAudio()


def list_devices(refresh: bool = False) -> tuple[Device, ...]:
    """Return all devices, as the first search found them.

    refresh  search for them now; indices may change. Open streams continue
    Raises   DeviceError: no PortAudio, or it does not respond
    """
    host = PortAudio()
    if refresh and not host.refresh():
        raise DeviceError("PortAudio does not find the devices; is a sound server hanging? Start that again")
    return host.devices()
