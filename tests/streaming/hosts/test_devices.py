"""Which device is meant, why one does not open, and the command that lists them; no PortAudio needed."""

import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from pulse.errors import InputError
from streaming.errors import DeviceError
from streaming.hosts.devices import Device, DeviceKind, choose_device
from streaming.hosts.portaudio import portaudio, portaudio_library, python_stream
from streaming.hosts.portaudio.refusal import open_error
from streaming.hosts.portaudio.stream_spec import StreamSide
from tests.streaming.command import pulse, report


def device(index: int, name: str, inputs: int, outputs: int, api: str = "ALSA", defaults: str = "") -> Device:
    return Device(
        index, name, api, inputs, outputs, 48000, 0.01, 0.04, 0.02, 0.08, "in" in defaults, "out" in defaults
    )


DEVICES = (
    device(0, "HDA Intel: Analog (hw:0,0)", 2, 2),
    device(1, "USB Mic", 1, 0, defaults="in"),
    device(2, "pulse", 32, 32),
    device(3, "pulse_mic", 2, 0),
    device(4, "system", 2, 2, "JACK Audio Connection Kit"),
    device(5, "HDMI", 0, 8, defaults="out"),
    device(6, "USB Mic", 1, 0, "OSS"),
    device(7, "jack", 2, 2),
)


@pytest.mark.parametrize(
    ("kind", "expected", "index"),
    [
        ("input", None, 1),
        ("output", None, 5),
        ("input", 3, 3),
        ("input", " 3 ", 3),
        ("input", "analog", 0),
        ("output", "PULSE", 2),  # a whole name, also where others contain it
        ("input", "pulse_m", 3),
        ("input", "connection kit", 4),  # host api: name
        ("input", "alsa: jack", 7),
        ("input", "jack", None),  # the device of ALSA, or JACK?
        ("input", "alsa: usb mic", 1),
        ("output", "usb hdmi", None),
        ("output", "us", None),
    ],
)
def test_a_device_is_chosen_by_name_or_number(
    kind: DeviceKind, expected: str | int | None, index: int | None
) -> None:
    if index is None:
        with pytest.raises(InputError, match=r"unknown device|may be any of|has no output"):
            choose_device(DEVICES, kind, expected)
    else:
        assert choose_device(DEVICES, kind, expected).index == index


@pytest.mark.parametrize(
    ("devices", "kind", "expected", "message"),
    [
        (
            DEVICES,
            "input",
            "usb",
            "'usb' may be any of 2 devices; choose by index or name: 1 ALSA: USB Mic; 6 OSS: USB",
        ),
        (DEVICES, "input", 9, "no device has the index 9; choose by index or name: 0 ALSA: HDA Intel"),
        (DEVICES, "input", "HDMI", "ALSA: HDMI has no input; choose by index or name: 0 ALSA"),
        (
            DEVICES,
            "output",
            1,
            "ALSA: USB Mic has no output; choose by index or name: 0 ALSA: HDA .*; 5 ALSA: HDMI; 7 ALSA: jack$",
        ),
        (
            DEVICES[2:3],
            "input",
            None,
            "there is no default input device; choose by index or name: 2 ALSA: pulse$",
        ),
        (
            (),
            "output",
            None,
            "there is no default output device, and this machine has no other output device; pulse devices",
        ),
    ],
    ids=["several", "no index", "no input", "no output", "no default", "no device"],
)
def test_unknown_or_ambiguous_devices_are_refused(
    devices: Sequence[Device], kind: DeviceKind, expected: str | int | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        choose_device(devices, kind, expected)


def test_latencies_are_suggested_or_given() -> None:
    """The latency is the system's suggestion or given in seconds."""
    device = DEVICES[0]
    assert [device.latency_s("input", expected) for expected in ("low", "high", 0.5)] == [0.01, 0.04, 0.5]
    assert [device.latency_s("output", expected) for expected in ("low", "high", 0)] == [0.02, 0.08, 0]


@pytest.mark.parametrize("latency", ["fast", -1.0, float("nan")])
def test_invalid_latencies_are_refused(latency: str | float) -> None:
    with pytest.raises(InputError, match="low"):
        DEVICES[0].latency_s("input", latency)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (portaudio_library.INVALID_RATE, "does not run at 96000 Hz; use one of 44100, 48000 Hz$"),
        (
            portaudio_library.INVALID_CHANNELS,
            "4 input and 2 output channels were requested, it has 2 and 8; use fewer",
        ),
        (
            portaudio_library.UNAVAILABLE,
            r"is busy, perhaps another program uses it exclusively; .* \(host says so\)$",
        ),
        (portaudio_library.INVALID_DEVICE, "is no longer available; pulse devices"),
        (
            portaudio_library.UNFIT_DEVICES,
            r"cannot be opened; plug it in, start its sound server, .* \(host says so\)$",
        ),
        (-1, r"cannot be opened; choose another device \(host says so\)$"),
    ],
)
def test_refusals_name_both_devices_and_the_reason(code: int, message: str) -> None:
    sides = (StreamSide("input", DEVICES[0], 4, 0.01), StreamSide("output", DEVICES[5], 2, 0.01))
    error = open_error(sides, 96000, code, "host says so", lambda rate_hz: rate_hz in (44100, 48000))
    assert isinstance(error, DeviceError)
    assert str(error).startswith("ALSA: HDA Intel: Analog (hw:0,0) and ALSA: HDMI: ")
    with pytest.raises(DeviceError, match=message):
        raise error


def test_a_refusal_depends_on_both_sides() -> None:
    apart = (StreamSide("input", DEVICES[0], 1, 0.01), StreamSide("output", DEVICES[4], 1, 0.01))
    error = open_error(apart, 48000, portaudio_library.UNFIT_DEVICES, "", lambda _: True)
    assert "belong to different audio systems; open a stream for each" in str(error)
    never = open_error(apart[:1], 96000, portaudio_library.INVALID_RATE, "", lambda _: False)
    assert "none of the usual rates works with these channels" in str(never)


def test_a_missing_portaudio_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error comes only when devices are asked for."""

    def refuse_library() -> str:
        raise DeviceError(portaudio_library.INSTALL_ADVICE)

    monkeypatch.setattr(portaudio_library, "library_path", refuse_library)
    monkeypatch.setattr(portaudio, "systems", portaudio.Systems())
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(DeviceError, match="apt install libportaudio2"):
        portaudio.PortAudio().devices()
    assert not portaudio.PortAudio().native
    result = pulse("devices", code=2)
    assert result.stderr.startswith("error: live audio needs the PortAudio library")
    assert result.stderr.count("\n") == 1


def test_devices_that_only_sounddevice_finds_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their streams go through Python."""

    class Package:
        default = SimpleNamespace(device=(0, -1))

        @staticmethod
        def query_hostapis() -> list[dict[str, str]]:
            return [{"name": "Core Audio"}]

        @staticmethod
        def query_devices() -> list[dict[str, object]]:
            latencies = {
                f"default_{how}_{kind}_latency": 0.01
                for how in ("low", "high")
                for kind in ("input", "output")
            }
            channels = {"max_input_channels": 1, "max_output_channels": 0}
            return [
                {"name": "Microphone", "hostapi": 0, "default_samplerate": 44100.0, **channels, **latencies}
            ]

    monkeypatch.setattr(portaudio, "is_callable", lambda: False)
    monkeypatch.setattr(python_stream, "sounddevice", lambda: Package)
    (device,) = portaudio.PortAudio().devices()
    assert (device.title, device.default_rate_hz, device.default_in, device.default_out) == (
        "Core Audio: Microphone",
        44100,
        True,
        False,
    )


def test_nothing_imports_sounddevice() -> None:
    """Its import opens a JACK client."""
    code = (
        "import sys, streaming.hosts.portaudio.native_stream, streaming.hosts.portaudio.portaudio; "
        "print('sounddevice' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert process.stdout == "False\n"


def test_the_command_lists_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table, JSON, and a word if there is nothing."""
    devices = list(DEVICES)
    monkeypatch.setattr(portaudio.PortAudio, "devices", lambda _: tuple(devices))
    lines = pulse("devices").stdout.splitlines()
    words = [" ".join(line.split()) for line in lines]
    assert words[1] == "device audio system in out rate latency in latency out default"
    assert words[3] == "1 USB Mic ALSA 1 - 48000 Hz 10-40 ms - in"
    assert words[7] == "5 HDMI ALSA - 8 48000 Hz - 20-80 ms out"
    assert report("devices")["devices"][4]["host_api"] == "JACK Audio Connection Kit"
    devices.clear()
    assert pulse("devices").stdout.startswith("no audio devices: no sound card is plugged in")
    assert report("devices") == {"devices": []}
