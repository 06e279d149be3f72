"""pulse devices: the audio devices of this machine."""

from typing import TYPE_CHECKING

from streaming.cli import options
from streaming.cli.console import print_json, print_table, stdout

if TYPE_CHECKING:
    from streaming.hosts.devices import Device

COLUMNS = ("", "device", "audio system", "in", "out", "rate", "latency in", "latency out", "default")


def devices(json: options.AsJson = False) -> None:
    """List audio devices, as --mic and --speaker of pulse run --live take them: by number or a part of the name.

    Latencies are what the system suggests: low for talking, high for never breaking off.

    [bold]Examples[/bold]

      [cyan]pulse devices[/cyan]                      a table; there may be none

      [cyan]pulse run --live --mic usb --speaker 3[/cyan]

      [cyan]pulse run aec.onnx --live --mic usb:0 --far usb:1[/cyan]   two channels of one device
    """
    from streaming.hosts.default import list_devices

    found = list_devices()
    if json:
        print_json({"devices": [device.as_dict() for device in found]})
        return
    if not found:
        stdout().print(
            "no audio devices: no sound card is plugged in or allowed to this user, and no sound server runs; "
            "files work without one"
        )
        return
    print_table("devices", COLUMNS, [_row(device) for device in found], right=(0, 3, 4, 5, 6, 7))


def _row(device: "Device") -> list[str]:
    is_default = ("in" if device.default_in else "", "out" if device.default_out else "")
    plays = f"{device.name}, monitor of an output" if device.monitor else device.name
    return [
        str(device.index),
        plays,
        device.host_api,
        str(device.inputs or "-"),
        str(device.outputs or "-"),
        f"{device.default_rate_hz} Hz",
        _latency(device.inputs, device.low_input_latency_s, device.high_input_latency_s),
        _latency(device.outputs, device.low_output_latency_s, device.high_output_latency_s),
        ", ".join(filter(None, is_default)),
    ]


def _latency(channels: int, low_s: float, high_s: float) -> str:
    return f"{low_s * 1e3:.0f}-{high_s * 1e3:.0f} ms" if channels else "-"
