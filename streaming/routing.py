"""Routing: which file or device, or which of its channels, feeds each input of a model; which output is played."""

import re
from collections.abc import Sequence

from pulse.errors import InputError
from pulse.interface import Port, main_output
from pulse.program.program import Program
from pulse.support.naming import require_name
from pulse.support.record import record
from pulse.support.wording import count_of, spell
from streaming.audio.channels import Channels, InputChannel, OutputChoice, input_channels, output_choices

_CHANNEL = re.compile(r"(.*):([0-9]+)", re.DOTALL)


@record
class Route:
    """The source of one input, as requested.

    name     the name of the input, or of a channel of it
    source   a file or a device; empty for the one that the other inputs share
    channel  the channel, counted from 0; None if not given
    """

    name: str
    source: str
    channel: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Route":
        """Parse ``mic=near.wav`` or ``mic=in.wav:0``. Raises InputError: the name or the source is missing."""
        name, equals, source = text.partition("=")
        if not (name and equals and source):
            raise InputError(
                f"{spell('routes')} {text}: give NAME=SOURCE or NAME=SOURCE:CHANNEL, such as mic=in.wav:0"
            )
        return cls(name, *split_channel(source))

    @property
    def channels(self) -> Channels:
        """The channel; the mean of all if none is given."""
        return Channels(self.channel)

    def __str__(self) -> str:
        return f"{self.name}={self.source}" + ("" if self.channel is None else f":{self.channel}")


def split_channel(text: str) -> tuple[str, int | None]:
    """Return a place, and the number after its last colon."""
    match = _CHANNEL.fullmatch(text)
    return (match[1], int(match[2])) if match else (text, None)


def parse_routes(texts: Sequence[str], program: Program) -> dict[str, Route]:
    """Return routes by input or channel, from text.

    Raises InputError: no such input, or one that is named twice
    """
    routes, title = dict[str, Route](), program.model.title
    port_of = {port.name: port.name for port in program.inputs}
    port_of |= {channel.name: channel.port.name for channel in input_channels(program.inputs)}
    for route in map(Route.parse, texts):
        require_name("input", route.name, port_of, InputError, f"{title}: {spell('routes')} {route}")
        for name, other in routes.items():
            if name == route.name or name == port_of[route.name] or route.name == port_of[name]:
                raise InputError(f"{spell('routes')} {route}: {name} already takes {other.source}")
        routes[route.name] = route
    return routes


def sound_inputs(program: Program) -> list[Port]:
    """Return the inputs of audio, in the model's order.

    Values of several channels are audio at the rate of the inputs with one channel, else of the first input.

    Raises InputError: inputs of one channel have several rates
    """
    ports = [port for port in program.inputs if port.is_sound]
    if len({port.rate for port in ports}) > 1:
        rates = ", ".join(f"{port.name} {port.rate}" for port in ports)
        raise InputError(
            f"{program.model.title}: its audio inputs have several rates, frames for each of "
            f"{program.model.symbol.name}: {rates}; give them as .npy"
        )
    first = next((port for port in (*ports, *program.inputs) if port.channels), None)
    return [
        port for port in program.inputs if first is not None and port.channels and port.rate == first.rate
    ]


def find_output(program: Program, name: str) -> Port:
    """Return the output of that name. Raises InputError: there is none."""
    ports = {port.name: port for port in program.outputs}
    return ports[require_name("output", name, ports, InputError)]


def find_choice(program: Program, name: str) -> OutputChoice:
    """Return the output of that name, or its channel by ``name:channel``. Raises InputError: there is none."""
    choices = output_choices(program.outputs)
    return choices[name] if name in choices else OutputChoice(find_output(program, name))


def is_playable(port: Port, source: Port) -> bool:
    """Return whether an output is audio at the rate of the input."""
    return port.channels > 0 and port.rate == source.rate


def sound_output(program: Program, name: str | None) -> OutputChoice:
    """Return the output of that name, or its channel by ``name:channel``; by default ``main_output``.

    Raises InputError: there is no such output, or it is not audio
    """
    if name is not None:
        choice = find_choice(program, name)
        if not choice.port.channels:
            raise InputError(f"{name} is not audio: {choice.port}")
        return choice
    source = next((port for port in program.inputs if port.channels), None)
    if (port := main_output(program.outputs, source)) is not None:
        return OutputChoice(port)
    names = ", ".join(port.name for port in program.outputs)
    raise InputError(f"{program.model.title}: no output is audio; the outputs are {names}")


def playable_output(program: Program, source: Port, name: str | None) -> OutputChoice | None:
    """Return the output to play, which is audio at the input's rate; None if there is none.

    name    an output, or its channel by ``name:channel``; None for ``main_output``
    Raises  InputError: the output of that name cannot be played
    """
    ports = [port for port in program.outputs if is_playable(port, source)]
    if name is None:
        port = main_output(ports, source)
        return None if port is None else OutputChoice(port)
    choices = output_choices(ports)
    if name in choices:
        return choices[name]
    raise InputError(
        f"output {name!r} cannot be played: of {program.model.title} {', '.join(choices) or 'none'} is sound at the "
        "rate of its input"
    )


def channels_in_order(
    title: str,
    inputs: Sequence[InputChannel],
    source: str,
    channels: int,
    advice: str | None = None,
) -> dict[str, Channels]:
    """Return one channel of a file or device for each input channel, in their order.

    advice  an alternative to suggest to the user
    Raises  InputError: the numbers of channels differ
    """
    names = [channel.name for channel in inputs]
    if len(names) == channels:
        return {name: Channels(index) for index, name in enumerate(names)}
    advice = (
        advice or f"give {spell('routes', dict.fromkeys(names, 'SOURCE'))}, or SOURCE:CHANNEL, counted from 0"
    )
    several = any(channel.port.channels > 1 for channel in inputs)
    takes = "takes {} channels" if several else "has {} audio inputs"
    raise InputError(
        f"{source}: has {count_of(channels, 'channel')}, and {title} {takes.format(len(names))}: "
        f"{', '.join(names)}; {advice}"
        + ("; features of audio need a recipe (pulse recipe)" if several else "")
    )


def channels_of_source(program: Program, ports: Sequence[Port], channels: int, channel: str) -> Channels:
    """Return the channels of a source that the only audio input takes; several inputs take all, in order.

    ports     the audio inputs
    channels  the number of channels of the source
    channel   the choice of the user, as ``Channels`` parses it
    Raises    InputError: the model takes more than audio, or the source has no such channels
    """
    if not ports or len(ports) < len([port for port in program.inputs if port.streams]):
        raise InputError(
            f"{program.model.title}: takes no audio; give arrays, by input: "
            f"{', '.join(port.name for port in program.inputs)}"
        )
    choice = Channels.parse(channel)
    if choice.each:
        raise InputError(
            "channel each: a stream of an executor takes one channel; open a stream for each channel"
        )
    inputs = input_channels(ports)
    if len(inputs) > 1:
        channels_in_order(
            program.model.title, inputs, "the source", channels, "give blocks of arrays by input"
        )
        if choice != Channels():
            raise InputError(
                f"channel {channel}: the channels of the source go to "
                f"{', '.join(taken.name for taken in inputs)} in order; give no channel"
            )
    choice.count_streams(channels)
    return choice
