"""Messages for devices that do not open."""

from collections.abc import Callable, Sequence

from streaming.errors import DeviceError
from streaming.hosts.devices import COMMON_RATES_HZ
from streaming.hosts.portaudio import portaudio_library as c
from streaming.hosts.portaudio.stream_spec import StreamSide

_REASONS = {
    c.UNAVAILABLE: "is busy, perhaps another program uses it exclusively; close that, or choose another device",
    c.INVALID_DEVICE: "is no longer available; pulse devices lists what there is",
    c.UNFIT_DEVICES: "cannot be opened; plug it in, start its sound server, or choose another device",
    c.NO_MEMORY: "cannot be opened, its sound server does not respond; start that again",
    c.TIMED_OUT: "cannot be opened, its sound server does not respond in time; start that again",
}
"""PortAudio's error codes -> reasons."""


def open_error(
    sides: Sequence[StreamSide], rate_hz: int, code: int, text: str, supports: Callable[[int], bool]
) -> DeviceError:
    """Return the error of devices that do not open.

    code, text  PortAudio's error
    supports    whether they would open at another rate
    """
    who = " and ".join(dict.fromkeys(side.device.title for side in sides))
    if code == c.INVALID_RATE:
        rates_hz = sorted({*COMMON_RATES_HZ, *(side.device.default_rate_hz for side in sides)})
        rates = ", ".join(str(rate) for rate in rates_hz if supports(rate))
        help = (
            f"use one of {rates} Hz"
            if rates
            else "none of the usual rates works with these channels; choose another device"
        )
        return DeviceError(f"{who}: does not run at {rate_hz} Hz; {help}")
    if code == c.INVALID_CHANNELS:
        requested = " and ".join(f"{side.channels} {side.kind}" for side in sides)
        have = " and ".join(str(side.device.channels(side.kind)) for side in sides)
        return DeviceError(f"{who}: {requested} channels were requested, it has {have}; use fewer")
    if code == c.UNFIT_DEVICES and len({side.device.host_api for side in sides}) > 1:
        return DeviceError(f"{who}: belong to different audio systems; open a stream for each")
    return DeviceError(f"{who}: {_REASONS.get(code, 'cannot be opened; choose another device')} ({text})")
