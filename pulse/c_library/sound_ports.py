"""The ports that audio hosts need of a model: audio inputs at one rate, and an audio output."""

import re
from collections.abc import Mapping
from hashlib import blake2b

from pulse.c_library.library_contents import LibraryContents
from pulse.c_library.texts import fill
from pulse.errors import WriteError
from pulse.interface import Port
from pulse.support.record import record
from pulse.support.wording import spell

BLOCKS = "blocks/blocks.c"


@record
class SoundPorts:
    """The ports of a model that takes sound.

    inputs    their number
    outputs   their number, including outputs that are not sound
    output    the first output that is sound, counted from the first output; -1: none
    rate_hz   samples per second, of all sound
    """

    inputs: int
    outputs: int
    output: int
    rate_hz: int


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
            f"{contents.title}: audio hosts pass audio of one channel, and the input {port.name} is "
            f"{port.dtype} {list(port.shape)}: add the processing before the model with a recipe (docs/recipes.md)"
        )
    if contents.rate_hz.denominator != 1:
        raise WriteError(
            f"{contents.title}: {contents.rate_hz} samples per second; audio hosts have integer rates"
        )
    outputs = contents.program.outputs
    output = next((index for index, port in enumerate(outputs) if _is_host_sound(port)), -1)
    return SoundPorts(len(contents.program.inputs), len(outputs), output, int(contents.rate_hz))


def _is_host_sound(port: Port) -> bool:
    """Return whether a port has one value for each frame of the symbol, as audio hosts need it."""
    return port.is_sound and port.rate == 1


def find_sound_ports(contents: LibraryContents) -> SoundPorts | str:
    """Return the ports, for audio hosts, or why the model has none."""
    try:
        return sound_ports(contents)
    except WriteError as error:
        return str(error)


def blocks_source(
    contents: LibraryContents, ports: SoundPorts, resample: str, half: int, phases: int, stop_db: float
) -> str:
    """Return the C source that takes sound in blocks of any size and rate.

    resample  the symbol of the resampler
    half, phases, stop_db  its filter: frames on either side and phases at the lower rate, what its window is made for
    """
    numbers = {"HALF_FRAMES": half, "PHASES": phases, "STOP_DB": float(stop_db), "SOUND_OUT": ports.output}
    sizes = {"INPUTS": ports.inputs, "OUTPUTS": ports.outputs, "RATE_HZ": ports.rate_hz}
    more = {name: str(value) for name, value in {**numbers, **sizes}.items()}
    return fill(BLOCKS, contents, {**more, "RESAMPLE": resample})


def plugin_names(contents: LibraryContents, ports: SoundPorts) -> Mapping[str, str]:
    """Return the values that the templates of plug-ins need of a model."""
    text = _quote(contents.title)
    names = [_quote(name) for name in input_names(contents)]
    ports_of_lv2 = [
        f"    [\n        a lv2:AudioPort, lv2:InputPort ;\n        lv2:index {index} ;\n"
        f'        lv2:symbol "in{index}" ;\n        lv2:name {name}\n    ] ,\n'
        for index, name in enumerate(names)
    ]
    return {
        "TEXT": text,
        "COMMENT": text[1:-1],
        "ID": str(int.from_bytes(blake2b(contents.name.encode(), digest_size=3).digest(), "big") | 0x1000),
        "URI": f"urn:pulse:{contents.name}",
        "INPUTS": str(ports.inputs),
        "INPUT_NAMES": ", ".join(names),
        "INPUT_KINDS": ", ".join(["INPUT | AUDIO"] * ports.inputs),
        "INPUT_RANGES": ", ".join(["{0, 0, 0}"] * ports.inputs),
        "INPUT_PORTS": "".join(ports_of_lv2),
        "OUT": str(ports.inputs),
        "ENABLED": str(ports.inputs + 1),
        "LATENCY": str(ports.inputs + 2),
    }


def input_names(contents: LibraryContents) -> list[str]:
    """Return the names of the inputs of a plug-in."""
    inputs = contents.program.inputs
    return ["Input"] if len(inputs) == 1 else [f"Input {port.name}" for port in inputs]


def _quote(text: str) -> str:
    """Return a string literal of C, Turtle and SPA-JSON; characters that one of them would escape are replaced."""
    return '"' + re.sub(r"[^ !#-\[\]-~]|\?", "_", text) + '"'
