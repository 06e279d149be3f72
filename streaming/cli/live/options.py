"""The options of ``pulse run --live``."""

from pathlib import Path
from typing import Annotated

import typer

from pulse.record import record

PANEL = "Live"


@record
class LiveOptions:
    """How a live run is to be, as it is written."""

    live: Annotated[
        bool,
        typer.Option(
            "--live", help="From the microphone to the loudspeaker, until Ctrl-C.", rich_help_panel=PANEL
        ),
    ] = False
    microphone: Annotated[
        str | None,
        typer.Option(
            "--mic",
            metavar="DEVICE[:CHANNEL]",
            help="Number or part of the name, see pulse devices; with several inputs the source of the first. Channels "
            "are counted from 0.",
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
            help="The same for what plays; none: nothing is played.",
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
            help="Of the devices; their usual one by default.",
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
            help="Device frames at once; as long as a pulse by default, 0: the device chooses.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    latency: Annotated[
        str,
        typer.Option("--latency", help="Of the devices: low, high or milliseconds.", rich_help_panel=PANEL),
    ] = "low"
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="worker: a native thread computes; callback: the device's callback does, without headroom.",
            rich_help_panel=PANEL,
        ),
    ] = "worker"
    headroom: Annotated[
        float | None,
        typer.Option(
            "--headroom",
            metavar="MS",
            min=0,
            help="What the worker may take to answer; 5 ms in whole blocks by default.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            help="When nothing is ready: wait, drop_oldest, silence_then_catch_up or abort.",
            rich_help_panel=PANEL,
        ),
    ] = "silence_then_catch_up"
    quality: Annotated[
        str,
        typer.Option(
            "--quality",
            help="Of resampling: low, medium or high, 1, 2 or 6 ms at 16 kHz.",
            rich_help_panel=PANEL,
        ),
    ] = "medium"
    reconnect: Annotated[
        str | None,
        typer.Option(
            "--reconnect",
            metavar="HOW",
            help="Open a device again when it comes back: keep what the model remembers, or reset it.",
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
            help="End after so long.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    record_in: Annotated[
        Path | None,
        typer.Option(
            "--record-in",
            metavar="FILE",
            help="A sound file for what came in.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    record_out: Annotated[
        Path | None,
        typer.Option(
            "--record-out",
            metavar="FILE",
            help="A sound file for what was played.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    frames: Annotated[
        Path | None,
        typer.Option(
            "--frames",
            metavar="FILE",
            help="A .csv or .npy for the frames of --output, such as probabilities; with --events for those, which "
            "are printed as JSON lines without it.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    stats: Annotated[
        Path | None,
        typer.Option(
            "--stats",
            metavar="FILE",
            help="Statistics of each second as JSON lines, see pulse report.",
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
            help="Real-time priority; 0: none.",
            rich_help_panel=PANEL,
        ),
    ] = 70
    cpu: Annotated[
        int | None,
        typer.Option(
            "--cpu",
            metavar="N",
            min=0,
            help="The only CPU of the engine.",
            show_default=False,
            rich_help_panel=PANEL,
        ),
    ] = None
    lock_memory: Annotated[
        bool,
        typer.Option(
            "--lock-memory/--no-lock-memory", help="Keep memory from being paged out.", rich_help_panel=PANEL
        ),
    ] = True
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show nothing while it runs.", rich_help_panel=PANEL)
    ] = False

    @property
    def written(self) -> tuple[Path | None, ...]:
        """The files that a run writes."""
        return self.record_in, self.record_out, self.frames, self.stats
