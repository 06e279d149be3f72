"""pulse run --live: from a microphone, or a file in its place, through a model to a loudspeaker."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace

from pulse.errors import InputError, PulseError
from pulse.program.program import Program
from streaming.cli.console import print_warning
from streaming.cli.live.configuration import (
    engine_config,
    file_host,
    frames_port,
    frames_target,
    live_plan,
    realtime_options,
)
from streaming.cli.live.display import KeyCommand
from streaming.cli.live.frames_writer import FramesWriter
from streaming.cli.live.view import LiveView
from streaming.cli.live_options import LiveOptions
from streaming.cli.options import ReportOptions
from streaming.cli.run_request import RunRequest
from streaming.cli.signals import gather_signals
from streaming.cli.standard_output import take_stdout
from streaming.live.file_host import FileHost
from streaming.live.live import Live
from streaming.live.recorder import Recorder
from streaming.opening.opened_model import OpenedModel
from streaming.stats.live_statistics import LiveStatistics
from streaming.stats.summary import LiveReport
from streaming.stats.writer import StatsWriter
from streaming.terminal.keys import key_presses

POLL_S = 0.1
"""The seconds between two looks at keys, signals and the state of the run."""
KEYS = {"m": "mute", "b": "bypass", "r": "reset", "q": "quit"}


def run_live(
    opened: OpenedModel,
    program: Program,
    request: RunRequest,
    options: LiveOptions,
    report_options: ReportOptions,
) -> None:
    """Run until Ctrl-C or q, SIGTERM, the end of the file, or the given seconds; then print the report.

    From the first block until all files are complete, signals interrupt no writing: they end the run as q does.
    An error that ends the run early, or prevents a file from being written, is raised after that: all that was
    written so far is kept.
    """
    if opened.rate_hz is None:
        raise InputError(f"{opened.title}: its sample rate is unknown; give --rate")
    target = frames_target(options, request)
    port = None if target is None else frames_port(program, request)
    if port is not None and request.events is not None:
        request.events.of_port(port, opened.rate_hz)  # raises before a device is opened
    host = file_host(request)
    live = Live(
        program,
        live_plan(opened.rate_hz, program, request, options),
        engine_config(options, request.audio.output if port is None else None, port is not None),
        realtime_options(options),
        options.reconnect,
        host=host,
    )
    run = _LiveRun(
        live, host, options, quiet=options.quiet or (target is not None and target.streamed and os.isatty(1))
    )
    with ExitStack() as signals, ExitStack() as files:
        if target is not None and port is not None:
            if target.streamed:
                target = replace(target, descriptor=take_stdout(text=True))
            run.frames = files.enter_context(FramesWriter(target, port, opened.rate_hz, live))
        statistics = run.run_to_end(signals, files)
    report_options.print(LiveReport(live.setup, statistics.summary()))
    if host is not None and host.clipping is not None and host.clipping.total:
        print_warning(
            f"{request.target}: clipped: {host.clipping}; --subtype float keeps them in a .wav file"
        )
    run.raise_first()


class _LiveRun:
    """A live run, the files that it writes, and its errors."""

    def __init__(self, live: Live, host: FileHost | None, options: LiveOptions, quiet: bool) -> None:
        self._live, self._host, self._options, self._quiet = live, host, options, quiet
        self._errors: list[PulseError] = []
        self._problems: list[Exception] = []
        self._stats: StatsWriter | None = None
        self._recorder: Recorder | None = None
        self.frames: FramesWriter | None = None

    def run_to_end(self, signals: ExitStack, files: ExitStack) -> LiveStatistics:
        """Open the device, run, and complete the files. Raises PulseError: the run does not start."""
        statistics: LiveStatistics | None = None
        try:
            with self._live:
                signal_numbers = signals.enter_context(gather_signals())
                self._open(files)
                try:
                    self._follow(signal_numbers)
                finally:
                    statistics = self._live.statistics()
                    if self._stats is not None:
                        self._stats.close(statistics)
                if self._recorder is not None:
                    with suppress(InputError):  # the error is among its problems
                        self._recorder.close()
        except PulseError as error:
            if statistics is None:
                raise
            self._errors.append(error)
        host_problem = None if self._host is None else self._host.problem
        if host_problem is not None:
            # the host raises it only at the end of the run
            self._errors = [error for error in self._errors if error is not host_problem]
            self._problems.append(host_problem)
        if self.frames is not None:
            self.frames.write() if self._errors else self.frames.finish()
        return statistics

    def raise_first(self) -> None:
        """Raise the first error; the others become warnings."""
        writers = (self._recorder, self.frames)
        problems = [
            *self._problems,
            *(problem for writer in writers if writer is not None for problem in writer.problems),
        ]
        if self._stats is not None and self._stats.problem is not None:
            problems.append(self._stats.problem)
        first, *others = [*self._errors, *problems, None]
        for problem in others[:-1]:
            print_warning(problem)
        if first is not None:
            raise first

    def _open(self, files: ExitStack) -> None:
        options = self._options
        if options.stats is not None:
            self._stats = StatsWriter(options.stats, self._live.setup)
            files.callback(self._stats.close)
        if options.record_in is not None or options.record_out is not None:
            self._recorder = self._live.record(options.record_in, options.record_out)

    def _follow(self, signal_numbers: Sequence[int]) -> None:
        controls = [KeyCommand(key, name) for key, name in KEYS.items()]
        try:
            with LiveView(self._live.setup, controls, self._quiet) as view:
                follow_run(self._live, view, self._stats, self.frames, self._options.seconds, signal_numbers)
        except PulseError as error:
            self._errors.append(error)
        except OSError as error:  # from the terminal, which may be closed
            self._problems.append(error)


def follow_run(
    live: Live,
    view: LiveView,
    stats: StatsWriter | None,
    frames: FramesWriter | None,
    seconds: float | None,
    signals: Sequence[int],
) -> None:
    """Poll the run until it is over, or a signal requests its end."""
    with key_presses() as pressed:
        while not (signals or live.wait(0)):
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
            match KEYS.get(pressed(POLL_S)):
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
