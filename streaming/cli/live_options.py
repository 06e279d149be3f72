"""The options of ``pulse run --live``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pulse.support.record import record

_option = partial(typer.Option, rich_help_panel="Live")


@record
class LiveOptions:
    """The options of a live run, as given on the command line."""

    live: Annotated[
        bool,
        _option("--live", help="Run from microphone to loudspeaker, until you press q or Ctrl-C."),
    ] = False
    microphone: Annotated[
        str | None,
        _option(
            "--mic",
            metavar="DEVICE[:N]",
            help="Input device, by number or part of the name (see pulse devices); with several inputs, the source of "
            "the first. Channels count from 0.",
        ),
    ] = None
    far: Annotated[
        str | None,
        _option(
            metavar="DEVICE[:N]",
            help="Source of the second input, such as the far end of an echo canceller; --in NAME=DEVICE:CHANNEL for "
            "any input.",
        ),
    ] = None
    speaker: Annotated[
        str | None,
        _option(metavar="DEVICE", help="Output device, by number or part of the name; none: play nothing."),
    ] = None
    device_rate: Annotated[
        int | None,
        _option(metavar="HZ", min=1, help="Sample rate of the devices in Hz. Default: their own."),
    ] = None
    block: Annotated[
        int | None,
        _option(
            metavar="FRAMES",
            min=0,
            help="Frames per block of the device. Default: the length of a pulse; 0: the device chooses.",
        ),
    ] = None
    latency: Annotated[
        str,
        _option(metavar="MS", help="Latency to request from the devices: low, high or milliseconds."),
    ] = "low"
    engine: Annotated[
        str,
        _option(
            metavar="ENGINE",
            help="worker: a native thread computes; callback: the device's callback computes, without headroom.",
        ),
    ] = "worker"
    headroom: Annotated[
        float | None,
        _option(
            metavar="MS",
            min=0,
            help="Delay added for computing a block, in ms. Default: at least 5 ms, rounded up to whole blocks.",
        ),
    ] = None
    policy: Annotated[
        str,
        _option(
            metavar="POLICY",
            help="Policy for late blocks: wait, drop_oldest, silence_then_catch_up or abort.",
        ),
    ] = "silence_then_catch_up"
    quality: Annotated[
        str,
        _option(
            metavar="QUALITY",
            help="Quality of resampling: low, medium or high; its delay is 1, 2 or 6 ms at 16 kHz.",
        ),
    ] = "medium"
    reconnect: Annotated[
        str | None,
        _option(
            metavar="keep|reset",
            help="Reopen a lost device when it returns, and keep or reset the model's state. Default: a lost device "
            "ends the run.",
        ),
    ] = None
    seconds: Annotated[
        float | None,
        _option(metavar="S", min=0, help="Seconds to run."),
    ] = None
    record_in: Annotated[
        Path | None,
        _option(metavar="FILE", help="Record the input to this audio file."),
    ] = None
    record_out: Annotated[
        Path | None,
        _option(metavar="FILE", help="Record the output to this audio file."),
    ] = None
    frames: Annotated[
        Path | None,
        _option(
            metavar="FILE",
            help=(
                "Write the frames of --output, such as probabilities, to a .csv or .npy; with --events, the events, "
                "which are otherwise printed as JSON lines."
            ),
        ),
    ] = None
    stats: Annotated[
        Path | None,
        _option(metavar="FILE", help="Write statistics of each second as JSON lines; see pulse report."),
    ] = None
    priority: Annotated[
        int,
        _option(metavar="N", min=0, max=99, help="Real-time priority of the engine; 0: none."),
    ] = 70
    cpu: Annotated[
        int | None,
        _option(metavar="N", min=0, help="CPU to which the engine is pinned."),
    ] = None
    lock_memory: Annotated[
        bool,
        _option("--lock-memory/--no-lock-memory", help="Lock memory, so that it is not paged out."),
    ] = True
    quiet: Annotated[bool, _option("--quiet", "-q", help="Show nothing until the report at the end.")] = False

    @property
    def output_paths(self) -> tuple[Path | None, ...]:
        """The files that a run writes."""
        return self.record_in, self.record_out, self.frames, self.stats
