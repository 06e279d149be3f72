"""The ports that audio hosts need of a model: audio inputs at one rate, and an audio output."""

import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from pulse.c_library.library_contents import LibraryContents
from pulse.c_library.texts import fill
from pulse.errors import WriteError
from pulse.interface import MAX_CHANNELS, Port, main_output
from pulse.support.record import record
from pulse.support.wording import spell

BLOCKS = "blocks/blocks.c"


@record
class SoundPorts:
    """The ports of a model that takes sound.

    inputs        all inputs, which are audio
    outputs       the number of outputs, including outputs that are not sound
    output        the output that hosts play, chosen by ``main_output``; None: none
    output_index  its number, counted from the first output; -1: none
    rate_hz       samples per second, of all sound
    """

    inputs: tuple[Port, ...]
    outputs: int
    output: Port | None
    output_index: int
    rate_hz: int

    @property
    def input_channels(self) -> int:
        """The channels of all inputs."""
        return sum(port.channels for port in self.inputs)

    @property
    def output_channels(self) -> int:
        """The channels that a host gets; one, of silence, if no output is audio."""
        return self.output.channels if self.output is not None else 1


def sound_ports(contents: LibraryContents) -> SoundPorts:
    """Return the ports, for audio hosts. Raises WriteError: it does not take audio, or its rate is not known."""
    if contents.rate_hz is None:
        raise WriteError(
            f"{contents.title}: its sample rate is unknown, but audio hosts need it; give {spell('rate')}"
        )
    others = [port for port in contents.program.inputs if not _is_host_sound(port)]
    if others:
        port = others[0]
        raise WriteError(
            f"{contents.title}: audio hosts pass audio of up to {MAX_CHANNELS} channels at one rate, and the input "
            f"{port.name} is {port.dtype} {list(port.shape)}: add the processing before the model with a "
            "recipe (docs/recipes.md)"
        )
    if contents.rate_hz.denominator != 1:
        raise WriteError(
            f"{contents.title}: {contents.rate_hz} samples per second; audio hosts have integer rates"
        )
    inputs, outputs = tuple(contents.program.inputs), contents.program.outputs
    output = main_output([port for port in outputs if _is_host_sound(port)], inputs[0])
    return SoundPorts(
        inputs=inputs,
        outputs=len(outputs),
        output_index=next((index for index, port in enumerate(outputs) if port is output), -1),
        output=output,
        rate_hz=int(contents.rate_hz),
    )


def _is_host_sound(port: Port) -> bool:
    """Return whether a port is audio with one frame for each frame of the symbol, as audio hosts need it."""
    return port.channels > 0 and port.rate == 1


def find_sound_ports(contents: LibraryContents) -> SoundPorts | str:
    """Return the ports, for audio hosts, or why the model has none."""
    try:
        return sound_ports(contents)
    except WriteError as error:
        return str(error)


def blocks_header(contents: LibraryContents, ports: SoundPorts) -> str:
    """Return the C header of the interface for sound in blocks."""
    return fill(
        "blocks/blocks.h",
        contents,
        {"INPUT_CHANNELS": str(ports.input_channels), "OUTPUT_CHANNELS": str(ports.output_channels)},
    )


def blocks_source(
    contents: LibraryContents, ports: SoundPorts, resample: str, half: int, phases: int, stop_db: float
) -> str:
    """Return the C source that takes sound in blocks of any size and rate.

    resample  the symbol of the resampler
    half, phases, stop_db  its filter: frames on either side and phases at the lower rate, what its window is made for
    """
    numbers = {"HALF_FRAMES": half, "PHASES": phases, "STOP_DB": float(stop_db)}
    sizes = {"INPUTS": len(ports.inputs), "OUTPUTS": ports.outputs, "RATE_HZ": ports.rate_hz}
    channels = {"SOUND_OUT": ports.output_index, "DRY_CHANNELS": ports.inputs[0].channels}
    more = {name: str(value) for name, value in {**numbers, **sizes, **channels}.items()}
    layouts = {
        "IN_LAYOUTS": _layouts(ports.inputs),
        "OUT_LAYOUTS": _layouts(output_ports(ports)),
    }
    return fill(BLOCKS, contents, {**more, **layouts, "RESAMPLE": resample})


def _layouts(ports: Sequence[Port]) -> str:
    """Return the port of each channel, its first value in a pulse and the step to the next one, as rows of C."""
    rows = [
        (index, *port.sound_layout(channel))
        for index, port in enumerate(ports)
        for channel in range(port.channels)
    ]
    return ", ".join(f"{{{', '.join(map(str, row))}}}" for row in rows)


def plugin_names(contents: LibraryContents, ports: SoundPorts) -> Mapping[str, str]:
    """Return the values that the templates of plug-ins need of a model."""
    text = _quote(contents.title)
    inputs = [_quote(name) for name in channel_names("Input", ports.inputs)]
    outputs = [_quote(name) for name in channel_names("Output", output_ports(ports))]
    return {
        "TEXT": text,
        "COMMENT": text[1:-1],
        "ID": str(int.from_bytes(blake2b(contents.name.encode(), digest_size=3).digest(), "big") | 0x1000),
        "URI": f"urn:pulse:{contents.name}",
        "FEATURES": _clap_features(ports),
        "INPUTS": str(len(ports.inputs)),
        "INPUT_PORTS": ", ".join(
            f"{{{_quote(name)}, {port.channels}}}"
            for name, port in zip(port_names(ports.inputs), ports.inputs)
        ),
        "AUDIO_KINDS": ", ".join(["INPUT | AUDIO"] * len(inputs) + ["OUTPUT | AUDIO"] * len(outputs)),
        "AUDIO_NAMES": ", ".join([*inputs, *outputs]),
        "AUDIO_RANGES": ", ".join(["{0, 0, 0}"] * (len(inputs) + len(outputs))),
        "AUDIO_PORTS": "".join(
            [
                *(_lv2_port("InputPort", n, f"in{n}", name) for n, name in enumerate(inputs)),
                *(
                    _lv2_port("OutputPort", len(inputs) + n, f"out{n}" if len(outputs) > 1 else "out", name)
                    for n, name in enumerate(outputs)
                ),
            ]
        ),
        "ENABLED": str(len(inputs) + len(outputs)),
        "LATENCY": str(len(inputs) + len(outputs) + 1),
        "CAPTURE_CHANNELS": str(len(inputs)),
        "CAPTURE_POSITION": _positions(ports.inputs),
        "PLAYBACK_CHANNELS": str(len(outputs)),
        "PLAYBACK_POSITION": _positions(output_ports(ports)),
    }


def output_ports(ports: SoundPorts) -> tuple[Port, ...]:
    """Return the output that hosts play, if there is one."""
    return () if ports.output is None else (ports.output,)


def port_names(inputs: Sequence[Port]) -> list[str]:
    """Return the names of the inputs of a plug-in, which may have several channels each."""
    return ["Input"] if len(inputs) == 1 else [f"Input {port.name}" for port in inputs]


def channel_names(role: str, ports: Sequence[Port]) -> list[str]:
    """Return the names of the channels of a plug-in: the role alone if there is only one."""
    names = [port.channel_name(channel) for port in ports for channel in range(port.channels)]
    return [role] if len(names) == 1 else [f"{role} {name}" for name in names]


def _lv2_port(kind: str, index: int, symbol: str, name: str) -> str:
    """Return a channel as a port in Turtle."""
    return (
        f"    [\n        a lv2:AudioPort, lv2:{kind} ;\n        lv2:index {index} ;\n"
        f'        lv2:symbol "{symbol}" ;\n        lv2:name {name}\n    ] ,\n'
    )


def _clap_features(ports: SoundPorts) -> str:
    """Return what CLAP calls a plug-in whose main ports have these channels, as strings of C."""
    channels = {ports.inputs[0].channels, ports.output_channels}
    return {1: '"mono", ', 2: '"stereo", '}.get(channels.pop(), "") if len(channels) == 1 else ""


def _positions(ports: Sequence[Port]) -> str:
    """Return what PipeWire calls the channels: those of one port are mono or stereo, others have no position."""
    channels = sum(port.channels for port in ports)
    if len(ports) == 1 and channels <= 2:
        return "MONO" if channels == 1 else "FL FR"
    return " ".join(f"AUX{channel}" for channel in range(channels))


def _quote(text: str) -> str:
    """Return a string literal of C, Turtle and SPA-JSON; characters that one of them would escape are replaced."""
    return '"' + re.sub(r"[^ !#-\[\]-~]|\?", "_", text) + '"'
