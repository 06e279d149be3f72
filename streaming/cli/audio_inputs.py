"""The files that feed the inputs of a model in ``pulse run``, from the command line."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.program import Program
from pulse.support.record import record
from streaming.audio.aligned_audio import RoutedAudio
from streaming.audio.channels import Channels
from streaming.audio.frame_files import READABLE, add_leading_axes, read_arrays
from streaming.audio.interfaces import AudioSource
from streaming.audio.source import open_audio_source
from streaming.audio.wav_stream import StreamFormat
from streaming.routing import Route, channels_in_order, parse_routes, sound_inputs


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
    names = [port.name for port in sound_inputs(program)]
    choice = Channels.parse(channel)
    if len(names) > 1 and choice != Channels():
        raise InputError(
            f"--channel {channel}: {title} has inputs {', '.join(names)}; give each its channel with --in "
            f"{names[0]}=SOURCE:CHANNEL"
        )
    arrays: dict[str, Array] = {}
    by_source: dict[str, dict[str, Channels]] = {}
    paths: list[Path] = []
    for route in routes.values():
        path, number = _route_file(route, source)
        if path.suffix.lower() in READABLE:
            arrays |= add_leading_axes(read_arrays(path, [route.name]), program.inputs)
            paths.append(path)
        elif route.name not in names:
            raise InputError(
                f"--in {route}: {program.model.port(route.name)}, which is not audio; give a .npy file"
            )
        else:
            by_source.setdefault(str(path), {})[route.name] = choice if number is None else Channels(number)
    unrouted = [name for name in names if name not in routes]
    if source is not None and not unrouted and all(route.source for route in routes.values()):
        raise InputError(
            f"{source}: no input is left for it, since --in names {', '.join(routes)}; omit it, or if it is an output, "
            f"write --out {program.outputs[0].name}={source}"
        )
    if source is None:
        _refuse_unrouted(title, unrouted)
    if unrouted:
        by_source.setdefault(str(source), {}).update(dict.fromkeys(unrouted, choice))
    routed: list[RoutedAudio] = []
    for path in sorted(by_source, key=lambda path: min(map(names.index, by_source[path]))):
        reader = stack.enter_context(open_audio_source(Path(path), raw))
        channels_by_input = by_source[path]
        if path == str(source) and len(unrouted) > 1:
            channels_by_input |= channels_in_order(title, unrouted, path, reader.channels)
        _require_channels(reader, channels_by_input, len(names))
        routed.append(
            RoutedAudio(
                reader, {name: channels_by_input[name] for name in names if name in channels_by_input}
            )
        )
        paths.append(Path(path))
    return AudioInputs(routed, arrays, paths)


def read_array_inputs(program: Program, texts: Sequence[str]) -> tuple[dict[str, Array], list[Path]]:
    """Return the arrays of all inputs, and their files.

    texts   routes to .npy or .npz files
    Raises  InputError: a file cannot be read, or an input has none
    """
    arrays: dict[str, Array] = {}
    paths: list[Path] = []
    for route in parse_routes(texts, program).values():
        path = Path(route.source)
        arrays |= read_arrays(path, [route.name])
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
                f"{reader.name}: input {name} uses channel {choice.index}; it has {reader.channels} channels, counted "
                "from 0"
            )


def _route_file(route: Route, source: Path | None) -> tuple[Path, int | None]:
    """Return the file and the channel of a route; an existing file whose name ends like a channel has precedence."""
    if route.channel is not None and Path(f"{route.source}:{route.channel}").exists():
        return Path(f"{route.source}:{route.channel}"), None
    if route.source:
        return Path(route.source), route.channel
    if source is None:
        raise InputError(f"--in {route}: of which file? Give IN, or {route.name}=SOURCE:CHANNEL")
    return source, route.channel
