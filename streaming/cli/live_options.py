"""The options of ``pulse run --live``."""

from functools import partial
from pathlib import Path

from pulse.support.record import record
from streaming.cli.options import option

_option = partial(option, panel="Live")


@record
class LiveOptions:
    """The options of a live run, as given on the command line."""

    live: bool = _option(
        "Run from microphone to loudspeaker, until you press q or Ctrl-C.", "--live", default=False
    )
    microphone: str | None = _option(
        "Input device, by number or part of the name (see pulse devices); with several inputs, the source of "
        "the first. Channels count from 0.",
        "--mic",
        metavar="DEVICE[:N]",
    )
    far: str | None = _option(
        "Source of the second input, such as the far end of an echo canceller; --in NAME=DEVICE:CHANNEL for "
        "any input.",
        metavar="DEVICE[:N]",
    )
    speaker: str | None = _option(
        "Output device, by number or part of the name; none: play nothing.", metavar="DEVICE"
    )
    device_rate: int | None = _option(
        "Sample rate of the devices in Hz. Default: their own.", metavar="HZ", min=1
    )
    block: int | None = _option(
        "Frames per block of the device. Default: the length of a pulse; 0: the device chooses.",
        metavar="FRAMES",
        min=0,
    )
    latency: str = _option(
        "Latency to request from the devices: low, high or milliseconds.", metavar="MS", default="low"
    )
    engine: str = _option(
        "worker: a native thread computes; callback: the device's callback computes, without headroom.",
        metavar="ENGINE",
        default="worker",
    )
    headroom: float | None = _option(
        "Delay added for computing a block, in ms. Default: at least 5 ms, rounded up to whole blocks.",
        metavar="MS",
        min=0,
    )
    policy: str = _option(
        "Policy for late blocks: wait, drop_oldest, silence_then_catch_up or abort.",
        metavar="POLICY",
        default="silence_then_catch_up",
    )
    quality: str = _option(
        "Quality of resampling: low, medium, high or best; its delay is 1, 2, 6 or 10 ms at 16 kHz.",
        metavar="QUALITY",
        default="medium",
    )
    reconnect: str | None = _option(
        "Reopen a lost device when it returns, and keep or reset the model's state. Default: a lost device "
        "ends the run.",
        metavar="keep|reset",
    )
    seconds: float | None = _option("Seconds to run.", metavar="S", min=0)
    record_in: Path | None = _option("Record the input to this audio file.", metavar="FILE")
    record_out: Path | None = _option("Record the output to this audio file.", metavar="FILE")
    frames: Path | None = _option(
        "Write the frames of --output, such as probabilities, to a .csv or .npy; with --events, the events, "
        "which are otherwise printed as JSON lines.",
        metavar="FILE",
    )
    stats: Path | None = _option(
        "Write statistics of each second as JSON lines; see pulse report.", metavar="FILE"
    )
    priority: int = _option(
        "Real-time priority of the engine; 0: none.", metavar="N", default=70, min=0, max=99
    )
    cpu: int | None = _option("CPU to which the engine is pinned.", metavar="N", min=0)
    lock_memory: bool = _option(
        "Lock memory, so that it is not paged out.", "--lock-memory/--no-lock-memory", default=True
    )
    quiet: bool = _option("Show nothing until the report at the end.", "--quiet", "-q", default=False)

    @property
    def output_paths(self) -> tuple[Path | None, ...]:
        """The files that a run writes."""
        return self.record_in, self.record_out, self.frames, self.stats
