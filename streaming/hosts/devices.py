"""Audio devices: listing and choosing them."""

from collections.abc import Sequence
from typing import Any, Literal

from pulse.errors import InputError
from pulse.support.record import record
from pulse.support.report import Report, Section, Table, Text, field_values
from pulse.support.wording import count_of

DeviceKind = Literal["input", "output"]
COMMON_RATES_HZ = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 176400, 192000)
"""The rates that are tried to say which ones a device takes."""


NO_DEVICES = (
    "no audio devices: no sound card is plugged in or allowed to this user, and no sound server runs; "
    "files work without one"
)
COLUMNS = ("", "device", "audio system", "in", "out", "rate", "latency in", "latency out", "default")


@record
class Device:
    """A device as PortAudio describes it.

    index            its number; valid until devices are searched again
    name             its name in the system
    host_api         the audio system that it belongs to: ALSA, JACK Audio Connection Kit, Core Audio …
    inputs, outputs  the most channels
    default_rate_hz  the default rate
    low_input_latency_s, low_output_latency_s    the system's suggestions for conversation
    high_input_latency_s, high_output_latency_s  its suggestions for the fewest dropouts
    default_in, default_out  whether it is the default input or output
    """

    index: int
    name: str
    host_api: str
    inputs: int
    outputs: int
    default_rate_hz: int
    low_input_latency_s: float
    high_input_latency_s: float
    low_output_latency_s: float
    high_output_latency_s: float
    default_in: bool
    default_out: bool

    @property
    def title(self) -> str:
        """Host API and name, which distinguishes devices with the same name."""
        return f"{self.host_api}: {self.name}"

    @property
    def is_monitor(self) -> bool:
        """Whether, by its name, it records the output of another one, as monitors of PulseAudio and PipeWire do."""
        return self.inputs > 0 and "monitor" in self.name.casefold()

    def as_dict(self) -> dict[str, Any]:
        """Return the device, for JSON."""
        return field_values(self) | {"monitor": self.is_monitor}

    def channels(self, kind: DeviceKind) -> int:
        """Return the number of channels in a direction."""
        return self.inputs if kind == "input" else self.outputs

    def latency_s(self, kind: DeviceKind, latency: float | str) -> float:
        """Return the latency in seconds, given seconds, ``low`` or ``high``.

        Raises InputError: neither of these, or not 0 to 10 s
        """
        if not isinstance(latency, str):
            if not 0 <= latency < 10:
                raise InputError(f"a latency of {latency} s: give 0 to 10 s, low or high")
            return float(latency)
        if latency not in ("low", "high"):
            raise InputError(f"latency {latency!r}: give low, high or seconds")
        pair = {
            "input": (self.low_input_latency_s, self.high_input_latency_s),
            "output": (self.low_output_latency_s, self.high_output_latency_s),
        }[kind]
        return pair[latency == "high"]


@record
class DeviceList(Report):
    """The devices of a machine."""

    devices: Sequence[Device]

    def sections(self) -> list[Section]:
        """Return a table; there may be none."""
        if not self.devices:
            return [Text(NO_DEVICES)]
        return [Table("devices", COLUMNS, [_row(device) for device in self.devices], (0, 3, 4, 5, 6, 7))]


def choose_device(devices: Sequence[Device], kind: DeviceKind, choice: str | int | None) -> Device:
    """Return the device that a choice names.

    choice  an index; a part of ``host api: name``, ignoring case, a whole name first; None for the default
    Raises  InputError: none, several, or one without that direction
    """
    able = [device for device in devices if device.channels(kind)]
    if isinstance(choice, str) and choice.strip().isdecimal():
        choice = int(choice)
    if choice is None:
        matches = [
            device for device in devices if (device.default_in if kind == "input" else device.default_out)
        ]
        problem = f"there is no default {kind} device"
    elif isinstance(choice, int):
        matches = [device for device in devices if device.index == choice]
        problem = f"no device has the index {choice}"
    else:
        matches = _find_named(devices, choice)
        problem = f"unknown device {choice!r}"
    fitting = [device for device in matches if device in able]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise _choice_error(f"{choice!r} may be any of {count_of(len(fitting), 'device')}", fitting, kind)
    raise _choice_error(f"{matches[0].title} has no {kind}" if matches else problem, able, kind)


def _find_named(devices: Sequence[Device], name: str) -> list[Device]:
    text = name.strip().casefold()
    titled = [device for device in devices if device.title.casefold() == text]
    if titled:
        return titled
    if any(device.name.casefold() == text for device in devices):
        # "jack" is an ALSA device, but may mean any JACK device
        return [d for d in devices if d.name.casefold() == text or d.host_api.casefold().startswith(text)]
    return [device for device in devices if text in device.title.casefold()]


def _choice_error(problem: str, choice: Sequence[Device], kind: DeviceKind) -> InputError:
    if not choice:
        return InputError(
            f"{problem}, and this machine has no other {kind} device; pulse devices lists all devices"
        )
    names = "; ".join(f"{device.index} {device.title}" for device in choice)
    return InputError(f"{problem}; choose by index or name: {names}")


def _row(device: Device) -> list[str]:
    is_default = ("in" if device.default_in else "", "out" if device.default_out else "")
    name = f"{device.name}, monitor of an output" if device.is_monitor else device.name
    return [
        str(device.index),
        name,
        device.host_api,
        str(device.inputs or "-"),
        str(device.outputs or "-"),
        f"{device.default_rate_hz} Hz",
        _latency_text(device.inputs, device.low_input_latency_s, device.high_input_latency_s),
        _latency_text(device.outputs, device.low_output_latency_s, device.high_output_latency_s),
        ", ".join(filter(None, is_default)),
    ]


def _latency_text(channels: int, low_s: float, high_s: float) -> str:
    return f"{low_s * 1e3:.0f}-{high_s * 1e3:.0f} ms" if channels else "-"
