"""The configuration of ``pulse run --live``: devices, engine, files in place of devices."""

from collections.abc import Sequence
from pathlib import Path

from pulse.errors import InputError
from pulse.interface import Port
from pulse.program.program import Program
from streaming.audio.channels import Channels
from streaming.audio.target import Target
from streaming.cli.live_options import LiveOptions
from streaming.cli.run_request import RunRequest
from streaming.live.config import EngineConfig
from streaming.live.file_host import FileHost
from streaming.live.instances import live_inputs
from streaming.live.plan import Plan
from streaming.realtime import Realtime
from streaming.routing import Route, find_output, is_playable, parse_routes, playable_output, split_channel

SILENT = "none"


def live_plan(rate_hz: int, program: Program, request: RunRequest, options: LiveOptions) -> Plan:
    """Return the devices, rates and channels of a run. By default, audio outputs are played.

    Raises InputError: options contradict each other, or do not fit the model
    """
    target = request.target
    if target is not None and options.speaker == SILENT:
        raise InputError(f"--speaker {SILENT}: {target} is for the played audio; omit one of them")
    has_target = target is not None or options.speaker not in (None, SILENT)
    outputs_sound = playable_output(program, live_inputs(program)[0], None) is not None
    plays = has_target or (outputs_sound and options.speaker != SILENT)
    return Plan(
        rate_hz=rate_hz,
        input=None,
        output=options.speaker if plays else None,
        play=plays,
        channels=Channels.parse(request.audio.channel),
        device_rate_hz=options.device_rate,
        block_frames=options.block,
        latency=_latency(options.latency),
        routes=_routes(program, request.audio.in_routes or (), options),
    )


def _routes(program: Program, in_routes: Sequence[str], options: LiveOptions) -> tuple[Route, ...]:
    """Return the sources of inputs: --mic is the first input, --far the second, --in any.

    Raises InputError: there is no such input, or it has two sources
    """
    routes = parse_routes(in_routes, program)
    names = [port.name for port in live_inputs(program)]
    for index, (option, device) in enumerate((("--mic", options.microphone), ("--far", options.far))):
        if device is None:
            continue
        if index >= len(names):
            raise InputError(
                f"{option} {device}: {program.model.title} has one audio input, {names[0]}, which --mic gives"
            )
        if names[index] in routes:
            raise InputError(f"{option} {device}: --in already gives the source of {names[index]}; omit one")
        routes[names[index]] = Route(names[index], *split_channel(device))
    return tuple(routes.values())


def engine_config(options: LiveOptions, played: str | None, records: bool) -> EngineConfig:
    """Return the settings of the engine."""
    headroom_s = None if options.headroom is None else options.headroom / 1e3
    return EngineConfig(options.engine, options.policy, headroom_s, options.quality, played, records)


def realtime_options(options: LiveOptions) -> Realtime:
    """Return the real-time settings to request from the system."""
    return Realtime(options.priority or None, options.lock_memory, options.cpu)


def _latency(text: str) -> str | float:
    if text in ("low", "high"):
        return text
    try:
        return float(text) / 1e3
    except ValueError:
        raise InputError(f"--latency {text}: give low, high or milliseconds") from None


def file_host(request: RunRequest) -> FileHost | None:
    """Return a file in place of the devices, if one is given.

    Raises InputError: the file cannot be read, or an encoding is given without one
    """
    if request.source is None and request.audio.subtype is not None:
        raise InputError("--subtype is for the file that is played to; give IN and OUT")
    if request.source is None:
        return None
    return FileHost(request.source, request.target, encoding=request.audio.subtype)


def frames_target(options: LiveOptions, request: RunRequest) -> Target | None:
    """Return the target of frames or events: standard output if no file is named; or None.

    Raises InputError: there is no such format of events
    """
    if request.events is None:
        return None if options.frames is None else _file_of_frames(options.frames)
    name = "microphone" if request.source is None else request.source.stem
    return Target.of_events(options.frames or Path("-"), request.events, name)


def _file_of_frames(path: Path) -> Target:
    target = Target.of_frames(path)
    if target.streamed:
        raise InputError(f"--frames {path}: frames of a live run are written to a .csv or .npy; name a file")
    return target


def frames_port(program: Program, request: RunRequest) -> Port:
    """Return the output whose frames go to a file; for events, the first that is not audio.

    Raises InputError: there is no such output
    """
    if request.audio.output is not None:
        return find_output(program, request.audio.output)
    source = live_inputs(program)[0]
    ports = (port for port in program.outputs if request.events and not is_playable(port, source))
    return next(ports, program.outputs[0])
