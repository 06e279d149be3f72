"""pulse devices: the audio devices of this machine."""

from streaming.cli.options import ReportOptions, takes_groups


@takes_groups
def devices(report_options: ReportOptions) -> None:
    """List audio devices for --mic and --speaker of pulse run --live, which take a number or a part of the name.

    Latencies are the system's suggestions: low for conversation, high for the fewest dropouts.

    Examples:
      pulse devices                                       a table, which may be empty
      pulse run --live --mic usb --speaker 3
      pulse run aec.onnx --live --mic usb:0 --far usb:1   two channels of one device
    """
    from streaming.hosts.devices import DeviceList
    from streaming.hosts.portaudio.portaudio import PortAudio

    report_options.print(DeviceList(PortAudio().devices()))
