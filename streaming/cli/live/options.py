"""The options of ``pulse run --live``."""

from pathlib import Path
from typing import Annotated

import typer

from pulse.support.record import record

PANEL = "Live"


@record
class LiveOptions:
    """The options of a live run, as given on the command line."""

    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Run from microphone to loudspeaker, until Ctrl-C.", rich_help_panel=PANEL
        ),
    ] = False
    microphone: Annotated[
        str | None,
        typer.Option(
            "--mic",
            metavar="DEVICE[:CHANNEL]",
            help="Input device, by number or part of the name (see pulse devices); with several inputs, the source of "
            "the first. Channels count from 0.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    far: Annotated[
        str | None,
        typer.Option(
            "--far",
            metavar="DEVICE[:CHANNEL]",
            help="Source of the second input, such as the far end of an echo canceller; --in NAME=DEVICE:CHANNEL for "
            "any input.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    speaker: Annotated[
        str | None,
        typer.Option(
            "--speaker",
            metavar="DEVICE",
            help="Output device, by number or part of the name; none: play nothing.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    device_rate: Annotated[
        int | None,
        typer.Option(
            "--device-rate",
            metavar="HZ",
            min=1,
            help="Sample rate of the devices in Hz. Default: their own.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    block: Annotated[
        int | None,
        typer.Option(
            "--block",
            metavar="FRAMES",
            min=0,
            help="Frames per block of the device. Default: the length of a pulse; 0: the device chooses.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    latency: Annotated[
        str,
        typer.Option(
            "--latency",
            metavar="low|high|MS",
            help="Latency to request from the devices: low, high or milliseconds.",
            rich_help_panel=PANEL,
        ),
    ] = "low"
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="worker|callback",
            help="worker: a native thread computes; callback: the device's callback computes, without headroom.",
            rich_help_panel=PANEL,
        ),
    ] = "worker"
    headroom: Annotated[
        float | None,
        typer.Option(
            "--headroom",
            metavar="MS",
            min=0,
            help="Added delay in which the worker may compute a block, in ms. Default: 5 ms, in whole blocks.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="Policy for late blocks: wait, drop_oldest, silence_then_catch_up or abort.",
            rich_help_panel=PANEL,
        ),
    ] = "silence_then_catch_up"
    quality: Annotated[
        str,
        typer.Option(
            "--quality",
            metavar="low|medium|high",
            help="Quality of resampling: low, medium or high; its delay is 1, 2 or 6 ms at 16 kHz.",
            rich_help_panel=PANEL,
        ),
    ] = "medium"
    reconnect: Annotated[
        str | None,
        typer.Option(
            "--reconnect",
            metavar="HOW",
            help="Reopen a lost device when it returns, and keep or reset the model's state.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            metavar="S",
            min=0,
            help="Seconds to run.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    record_in: Annotated[
        Path | None,
        typer.Option(
            "--record-in",
            metavar="FILE",
            help="Record the input to this sound file.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    record_out: Annotated[
        Path | None,
        typer.Option(
            "--record-out",
            metavar="FILE",
            help="Record the output to this sound file.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    frames: Annotated[
        Path | None,
        typer.Option(
            "--frames",
            metavar="FILE",
            help=(
                "Write the frames of --output, such as probabilities, to a .csv or .npy; with --events, the events, "
                "which are otherwise printed as JSON lines."
            ),
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    stats: Annotated[
        Path | None,
        typer.Option(
            "--stats",
            metavar="FILE",
            help="Write statistics of each second as JSON lines; see pulse report.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    priority: Annotated[
        int,
        typer.Option(
            "--priority",
            metavar="0-99",
            min=0,
            max=99,
            help="Real-time priority of the engine; 0: none.",
            rich_help_panel=PANEL,
        ),
    ] = 70
    cpu: Annotated[
        int | None,
        typer.Option(
            "--cpu",
            metavar="N",
            min=0,
            help="CPU to which the engine is pinned.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    lock_memory: Annotated[
        bool,
        typer.Option(
            "--lock-memory/--no-lock-memory",
            help="Lock memory, so that it is not paged out.",
            rich_help_panel=PANEL,
        ),
    ] = True
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show nothing during the run.", rich_help_panel=PANEL)
    ] = False

    @property
    def output_paths(self) -> tuple[Path | None, ...]:
        """The files that a run writes."""
        return self.record_in, self.record_out, self.frames, self.stats
