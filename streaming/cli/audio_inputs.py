"""The files that feed the inputs of a model in ``pulse run``, from the command line."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.program import Program
from pulse.support.record import record
from pulse.support.wording import count_of
from streaming.audio.aligned_audio import RoutedAudio
from streaming.audio.channels import Channels, InputChannel, input_channels
from streaming.audio.frame_files import READABLE, add_leading_axes, read_arrays
from streaming.audio.interfaces import AudioSource
from streaming.audio.source import open_audio_source
from streaming.audio.wav_stream import StreamFormat
from streaming.routing import (
    Route,
    channels_in_order,
    parse_routes,
    sound_inputs,
    split_channel,
)


@record
class AudioInputs:
    """The open files, in the order of the model's inputs.

    routed  the files
    arrays  the arrays for the other inputs
    paths   the paths of all files
    """

    routed: list[RoutedAudio]
    arrays: Mapping[str, Array]
    paths: list[Path]

    @property
    def title(self) -> str:
        """The names of all files."""
        return ", ".join(path.name for path in self.paths)


def open_audio_inputs(
    stack: ExitStack,
    program: Program,
    texts: Sequence[str],
    source: Path | None,
    channel: str,
    raw: StreamFormat | None,
) -> AudioInputs:
    """Open the sources of all inputs.

    texts    routes, see ``routing.Route``
    source   IN: for the inputs that no route names; one that several need gives each a channel, in their order
    channel  channel of a model's only audio input, see ``Channels.parse``
    Raises   InputError: a file cannot be read, or files and channels do not fit the inputs
    """
    title, routes = program.model.title, parse_routes(texts, program)
    inputs = input_channels(sound_inputs(program))
    names = [channel.name for channel in inputs]
    choice = Channels.parse(channel)
    if len(names) > 1 and choice != Channels():
        raise InputError(
            f"--channel {channel}: {title} has inputs {', '.join(names)}; give each its channel with --in "
            f"{names[0]}=SOURCE:CHANNEL"
        )
    arrays: dict[str, Array] = {}
    files: dict[str, _FileChannels] = {}
    paths: list[Path] = []
    for route in routes.values():
        path, number = _route_file(route, source)
        if path.suffix.lower() in READABLE:
            arrays |= _read_route(route, path, program)
            paths.append(path)
        else:
            fed = [channel for channel in inputs if route.name in (channel.name, channel.port.name)]
            files.setdefault(str(path), _FileChannels()).add(
                fed, choice if number is None else Channels(number)
            )
            _require_fitting(route, path, number, fed, program)
    unrouted = [channel for channel in inputs if not routes.keys() & {channel.name, channel.port.name}]
    if source is not None and not unrouted and all(route.source for route in routes.values()):
        raise InputError(
            f"{source}: no input is left for it, since --in names {', '.join(routes)}; omit it, or if it is an output, "
            f"write --out {program.outputs[0].name}={source}"
        )
    if source is None:
        _refuse_unrouted(title, [channel.name for channel in unrouted])
    if unrouted:
        files.setdefault(str(source), _FileChannels()).add(unrouted, choice)
    routed: list[RoutedAudio] = []
    for path in sorted(files, key=lambda path: min(map(names.index, files[path].choices))):
        reader = stack.enter_context(open_audio_source(Path(path), raw))
        choices = files[path].choices_of(reader, title)
        _require_channels(reader, choices, len(names))
        routed.append(RoutedAudio(reader, {name: choices[name] for name in names if name in choices}))
        paths.append(Path(path))
    return AudioInputs(routed, arrays, paths)


class _FileChannels:
    """The input channels that one file feeds: name -> channels of the file."""

    def __init__(self) -> None:
        self.choices: dict[str, Channels] = {}
        self._in_order: list[InputChannel] = []

    def add(self, inputs: Sequence[InputChannel], choice: Channels) -> None:
        """Add input channels; several at once take the channels of the file in order."""
        self.choices |= {channel.name: choice for channel in inputs}
        if len(inputs) > 1:
            self._in_order += inputs

    def choices_of(self, reader: AudioSource, title: str) -> dict[str, Channels]:
        """Return the choices for the open file. Raises InputError: it has more or fewer channels than are in order."""
        if not self._in_order:
            return self.choices
        return self.choices | channels_in_order(title, self._in_order, reader.name, reader.channels)


def _require_fitting(
    route: Route, path: Path, number: int | None, fed: Sequence[InputChannel], program: Program
) -> None:
    """Raise InputError if a route is not for audio, or gives one channel to several."""
    if not fed:
        raise InputError(
            f"--in {route}: {program.model.port(route.name)}, which is not audio; give a .npy file"
        )
    if number is not None and len(fed) > 1:
        raise InputError(
            f"--in {route}: {route.name} takes {len(fed)} channels; give each its own: "
            + " ".join(f"--in {channel.name}={path}:CHANNEL" for channel in fed)
        )


def _read_route(route: Route, path: Path, program: Program) -> Mapping[str, Array]:
    """Return the array of a route, by input. Raises InputError: it is for one channel, or cannot be read."""
    if route.name not in [port.name for port in program.inputs]:
        raise InputError(
            f"--in {route}: an array has all channels; give --in {split_channel(route.name)[0]}={path}"
        )
    return add_leading_axes(read_arrays(path, [route.name]), program.inputs)


def read_array_inputs(program: Program, texts: Sequence[str]) -> tuple[dict[str, Array], list[Path]]:
    """Return the arrays of all inputs, and their files.

    texts   routes to .npy or .npz files
    Raises  InputError: a file cannot be read, or an input has none
    """
    arrays: dict[str, Array] = {}
    paths: list[Path] = []
    for route in parse_routes(texts, program).values():
        path = Path(route.source)
        arrays |= _read_route(route, path, program)
        paths.append(path)
    _refuse_unrouted(program.model.title, [port.name for port in program.inputs if port.name not in arrays])
    return arrays, paths


def _refuse_unrouted(title: str, names: Sequence[str]) -> None:
    """Raise InputError if there are inputs without a source."""
    if names:
        raise InputError(
            f"{title}: no source for input {', '.join(names)}; give "
            + " ".join(f"--in {name}=SOURCE" for name in names)
        )


def _require_channels(reader: AudioSource, channels_by_input: Mapping[str, Channels], inputs: int) -> None:
    """Raise InputError if a file does not have the channels that inputs take."""
    for name, choice in channels_by_input.items():
        if inputs == 1:
            choice.count_streams(reader.channels)
        elif choice.index is not None and choice.index >= reader.channels:
            raise InputError(
                f"{reader.name}: input {name} uses channel {choice.index}; it has "
                f"{count_of(reader.channels, 'channel')}, counted from 0"
            )


def _route_file(route: Route, source: Path | None) -> tuple[Path, int | None]:
    """Return the file and the channel of a route; an existing file whose name ends like a channel has precedence."""
    if route.channel is not None and Path(f"{route.source}:{route.channel}").exists():
        return Path(f"{route.source}:{route.channel}"), None
    if route.source:
        return Path(route.source), route.channel
    if source is None:
        raise InputError(f"--in {route}: a channel of no file; give IN, or {route.name}=SOURCE:CHANNEL")
    return source, route.channel
