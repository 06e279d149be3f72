"""pulse run --live: from a microphone, or a file in its place, through a model to a loudspeaker."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from streaming.cli.console import print_json, print_pairs, stderr
from streaming.cli.live.keys import key_presses
from streaming.cli.live.options import LiveOptions
from streaming.cli.signals import gather_signals
from streaming.cli.standard_output import take_stdout

if TYPE_CHECKING:
    from pulse.program.program import Program
    from pulse.pulsify.network import Port
    from streaming.cli.live.frames import FramesWriter
    from streaming.cli.live.view import LiveView
    from streaming.cli.model import Opened
    from streaming.events.choice import Choice
    from streaming.live.config import EngineConfig
    from streaming.live.file_host import FileHost
    from streaming.live.live import Live
    from streaming.live.plan import Plan
    from streaming.realtime import Realtime
    from streaming.routing import Route
    from streaming.stats.statistics import LiveStatistics
    from streaming.stats.writer import StatsWriter
    from streaming.target import Target

LOOK_S = 0.1
SILENT = "none"
KEYS = {"m": "mute", "b": "bypass", "r": "reset", "q": "quit"}


def run_live(
    opened: "Opened",
    program: "Program",
    source: Path | None,
    target: Path | None,
    subtype: str | None,
    output: str | None,
    channel: str,
    heard: Sequence[str],
    options: LiveOptions,
    events: "Choice | None",
    json: bool,
) -> None:
    """Run until Ctrl-C or q, SIGTERM, the end of the file, or so many seconds; then tell how it went.

    From the first block on until all files are complete, signals tear nothing: they end the run as q does.
    What ends the run before its time, or keeps a file from being written, is raised after that: all that was written
    until then is kept.
    """
    from pulse.errors import InputError, PulseError
    from streaming.cli.live.display import Control
    from streaming.cli.live.frames import FramesWriter
    from streaming.cli.live.summary import final_report
    from streaming.cli.live.view import LiveView
    from streaming.live.live import Live
    from streaming.stats.writer import StatsWriter

    if opened.rate_hz is None:
        raise InputError(f"{opened.title}: how many samples a second it takes is not known; give --rate")
    place = _place(options.frames, events, source)
    written = None if place is None else _written(program, output, events is not None)
    if written is not None and events is not None:
        events.of_port(written, opened.rate_hz)  # refuses before a device is opened
    talks = place is not None and place.streamed and os.isatty(1)
    host = _host(source, target, subtype)
    live = Live(
        program,
        _plan(opened.rate_hz, program, channel, heard, options, target),
        _behaviour(options, output if written is None else None, written is not None),
        _realtime(options),
        options.reconnect,
        host=host,
    )
    statistics: LiveStatistics | None = None
    errors: list[PulseError] = []
    problems: list[Exception] = []
    frames = stats = recorder = None
    with ExitStack() as signals, ExitStack() as files:
        if place is not None and written is not None:
            if place.streamed:
                place = replace(place, descriptor=take_stdout(text=True))
            frames = files.enter_context(FramesWriter(place, written, opened.rate_hz, live))
        try:
            with live:
                asked = signals.enter_context(gather_signals())
                if options.stats is not None:
                    stats = StatsWriter(options.stats, live.setup)
                    files.callback(stats.close)
                if options.record_in is not None or options.record_out is not None:
                    recorder = live.record(options.record_in, options.record_out)
                controls = [Control(key, name) for key, name in KEYS.items()]
                try:
                    with LiveView(live.setup, controls, options.quiet or talks) as view:
                        follow(live, view, stats, frames, options.seconds, asked)
                except PulseError as error:
                    errors.append(error)
                except OSError as error:  # of the terminal, which may be closed
                    problems.append(error)
                finally:
                    statistics = live.statistics()
                    if stats is not None:
                        stats.close(statistics)
                if recorder is not None:
                    with suppress(InputError):  # it is among ``problems``
                        recorder.close()
        except PulseError as error:
            if statistics is None:
                raise
            errors.append(error)
        if host is not None and host.problem is not None:
            # raised at the end of the run, which it has not ended
            errors = [error for error in errors if error is not host.problem]
            problems.append(host.problem)
        if frames is not None and not errors:
            frames.finish()
        elif frames is not None:
            frames.write()
    problems += () if recorder is None else recorder.problems
    problems += () if frames is None else frames.problems
    problems += () if stats is None or stats.problem is None else (stats.problem,)
    setup = live.setup
    if json:
        print_json({"setup": asdict(setup), "statistics": statistics.as_dict()})
    else:
        print_pairs(final_report(statistics, setup))
    if host is not None and host.clipping is not None and host.clipping.total:
        stderr().print(
            f"warning: {target}: clipped: {host.clipping}; --subtype float keeps them in a .wav file",
            style="yellow",
        )
    told = [*errors, *problems]
    for problem in told[1:]:
        stderr().print(f"warning: {problem}", style="yellow")
    if told:
        raise told[0]


def follow(
    live: "Live",
    view: "LiveView",
    stats: "StatsWriter | None",
    frames: "FramesWriter | None",
    seconds: float | None,
    asked: Sequence[int],
) -> None:
    """Look at the run again and again, until it is over, or a signal has asked for its end."""
    with key_presses() as pressed:
        while not (asked or live.wait(0)):
            statistics = live.statistics()
            control = live.control
            on = {"mute": control.muted, "bypass": control.bypassed}
            view.update(statistics, frozenset(name for name, active in on.items() if active))
            if stats is not None:
                stats.update(statistics)
            if frames is not None:
                frames.write()
            if seconds is not None and statistics.elapsed_s >= seconds:
                return
            match KEYS.get(pressed(LOOK_S)):
                case "quit":
                    return
                case "mute":
                    control.muted = not control.muted
                case "bypass":
                    control.bypassed = not control.bypassed
                case "reset":
                    control.reset()
                case _:
                    pass


def _plan(
    rate_hz: int,
    program: "Program",
    channel: str,
    heard: Sequence[str],
    options: LiveOptions,
    target: Path | None,
) -> "Plan":
    """Where it is not said whether to play, what is sound is played."""
    from pulse.errors import InputError
    from streaming.channels import Channels
    from streaming.live.instances import live_inputs, sound_output
    from streaming.live.plan import Plan

    if target is not None and options.speaker == SILENT:
        raise InputError(f"--speaker {SILENT}: {target} is for what is played; leave out one of both")
    asked = target is not None or options.speaker not in (None, SILENT)
    sounds = sound_output(program, live_inputs(program)[0], None) is not None
    plays = asked or (sounds and options.speaker != SILENT)
    return Plan(
        rate_hz,
        None,
        options.speaker if plays else None,
        plays,
        Channels.parse(channel),
        options.device_rate,
        options.block,
        _latency(options.latency),
        _routes(program, heard, options),
    )


def _routes(program: "Program", heard: Sequence[str], options: LiveOptions) -> "tuple[Route, ...]":
    """What inputs hear: --mic is the first input, --far the second, --in any. Raises InputError."""
    from pulse.errors import InputError
    from streaming.live.instances import live_inputs
    from streaming.routing import Route, parse_routes, split_channel

    routes = parse_routes(heard, program)
    names = [port.name for port in live_inputs(program)]
    for number, (option, device) in enumerate((("--mic", options.microphone), ("--far", options.far))):
        if device is None:
            continue
        if number >= len(names):
            raise InputError(
                f"{option} {device}: {program.model.title} has one input of sound, {names[0]}, which --mic gives"
            )
        if names[number] in routes:
            raise InputError(
                f"{option} {device}: --in already gives the source of {names[number]}; leave out one"
            )
        routes[names[number]] = Route(names[number], *split_channel(device))
    return tuple(routes.values())


def _behaviour(options: LiveOptions, played: str | None, records: bool) -> "EngineConfig":
    from streaming.live.config import EngineConfig

    headroom_s = None if options.headroom is None else options.headroom / 1e3
    return EngineConfig(options.engine, options.policy, headroom_s, options.quality, played, records)


def _realtime(options: LiveOptions) -> "Realtime":
    from streaming.realtime import Realtime

    return Realtime(options.priority or None, options.lock_memory, options.cpu)


def _latency(text: str) -> str | float:
    from pulse.errors import InputError

    if text in ("low", "high"):
        return text
    try:
        return float(text) / 1e3
    except ValueError:
        raise InputError(f"--latency {text}: give low, high or milliseconds") from None


def _host(source: Path | None, target: Path | None, subtype: str | None) -> "FileHost | None":
    """A file in place of the devices, where one is given. Raises InputError."""
    from pulse.errors import InputError

    if source is None and subtype is not None:
        raise InputError("--subtype is for the file that is played to; give IN and OUT")
    if source is None:
        return None
    from streaming.live.file_host import FileHost

    return FileHost(source, target, encoding=subtype)


def _place(path: Path | None, events: "Choice | None", source: Path | None) -> "Target | None":
    """Where frames go, or events: to standard output if no file is named; None: nowhere. Raises InputError."""
    from streaming.target import Target

    if events is not None:
        return Target.of_events(path or Path("-"), events, "microphone" if source is None else source.stem)
    return None if path is None else Target.of_frames(path)


def _written(program: "Program", name: str | None, events: bool) -> "Port":
    """The output whose frames go to a file; for events the first that is no sound as the input. Raises InputError."""
    from pulse.errors import InputError
    from streaming.live.instances import live_inputs
    from streaming.routing import is_playable

    if name is None:
        source = live_inputs(program)[0]
        found = (port for port in program.outputs if events and not is_playable(port, source))
        return next(found, program.outputs[0])
    for port in program.outputs:
        if port.name == name:
            return port
    raise InputError(
        f"no output is called {name!r}; there is {', '.join(port.name for port in program.outputs)}"
    )
