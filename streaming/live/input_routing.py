"""Input routing: which channel of which device feeds each input of a model."""

from collections.abc import Mapping, Sequence

from pulse.errors import InputError
from pulse.program.program import Program
from pulse.support.naming import require_name
from pulse.support.record import record
from pulse.support.wording import count_of, spell
from streaming.audio.channels import Channels, InputChannel, input_channels
from streaming.hosts.host import Endpoint, Host
from streaming.live.instances import live_inputs
from streaming.routing import Route, channels_in_order


@record
class InputRouting:
    """The input device and the channels that feed the model's inputs.

    source    the input device
    requested  the device as requested by the user; None: the default device
    channels  the channels of a model with one input channel
    input_channels  the device's channel for each input channel of a model with several
    """

    source: Endpoint
    requested: str | int | None
    channels: Channels
    input_channels: tuple[int, ...] = ()


def route_inputs(
    host: Host, device: str | int | None, channels: Channels, routes: Sequence[Route], program: Program
) -> InputRouting:
    """Choose the device and channels for the inputs of a program.

    device    the device for inputs whose route names none
    channels  its channels, for a model with one input channel
    Raises    InputError: no such input, device or channel; DeviceError: the devices cannot be listed
    """
    title, inputs = program.model.title, input_channels(live_inputs(program))
    names = [channel.name for channel in inputs]
    route_of = {route.name: route for route in routes}
    ports = [channel.port.name for channel in inputs]
    for name in route_of:
        require_name("audio input", name, dict.fromkeys((*ports, *names)), InputError, title)
    endpoints: dict[str, tuple[Endpoint, str | int | None, int | None]] = {}
    for channel in inputs:
        route = route_of.get(channel.name) or route_of.get(channel.port.name) or Route(channel.name, "")
        endpoints[channel.name] = _endpoint(host, device, route)
        if route.name not in names and endpoints[channel.name][2] is not None:
            raise InputError(
                f"{route}: {route.name} takes {channel.port.channels} channels; give the device alone, or the channel "
                f"of each, such as {spell('routes', {channel.name: f'{route.source}:{channel.index}'})}"
            )
    source, device, _ = endpoints[names[0]]
    for name, (other, _, _) in endpoints.items():
        if other != source:
            raise _two_devices(names[0], source, name, other)
    channel_of = {name: channel for name, (_, _, channel) in endpoints.items()}
    if len(names) == 1:
        channel = channel_of[names[0]]
        return InputRouting(source, device, channels if channel is None else Channels(channel))
    if channels != Channels():
        raise InputError(
            f"{title}: has the inputs {', '.join(names)}, each of one channel, so one choice for all is not possible: "
            "give the channel of each after its device, such as usb:0"
        )
    return InputRouting(source, device, channels, _channels(host, title, inputs, source, channel_of))


def _channels(
    host: Host,
    title: str,
    inputs: Sequence[InputChannel],
    source: Endpoint,
    channel_of: Mapping[str, int | None],
) -> tuple[int, ...]:
    """Return the channel of each input: as given, or in the order of the inputs.

    Raises InputError: one is missing, or the source does not have it
    """
    numbers = [channel for channel in channel_of.values() if channel is not None]
    if not numbers:
        channels = source.channels if host.is_finite else min(source.channels, len(inputs))
        channels_in_order(title, inputs, source.name, channels)
        return tuple(range(len(inputs)))
    missing = [name for name, channel in channel_of.items() if channel is None]
    if missing:
        raise InputError(
            f"{source.name}: no channel is given for {', '.join(missing)}: give one for each input, DEVICE:CHANNEL, "
            "or for none"
        )
    if max(numbers) >= source.channels:
        raise InputError(
            f"{source.name}: has no channel {max(numbers)}; it has {count_of(source.channels, 'channel')}, from 0 on"
        )
    return tuple(numbers)


def _endpoint(
    host: Host, device: str | int | None, route: Route
) -> tuple[Endpoint, str | int | None, int | None]:
    """Return the device and the channel of a route; a device whose name ends like a channel has precedence."""
    if not route.source:
        return host.choose("input", device), device, route.channel
    if route.channel is not None:
        whole = f"{route.source}:{route.channel}"
        try:
            return host.choose("input", whole), whole, None
        except InputError:  # no such device: the end of the name is a channel
            pass
    return host.choose("input", route.source), route.source, route.channel


def _two_devices(name: str, device: Endpoint, other_name: str, other: Endpoint) -> InputError:
    return InputError(
        f"{name} takes {device.name}, and {other_name} {other.name}: two devices have two clocks, and their signals "
        "would drift apart; make one device of both, and name its channels: JACK or PipeWire ports connected to one "
        "client (jack_connect, pw-link), an ALSA pcm of type multi, an aggregate device of macOS"
    )
