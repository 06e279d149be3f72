"""pulse run: a file through a model."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.cli import options
from streaming.cli.console import print_json
from streaming.cli.live.options import NOT_LIVE, LiveOptions
from streaming.cli.run_report import print_run, run_report, snr
from streaming.progress import progress

if TYPE_CHECKING:
    from pulse.program.program import Program
    from pulse.pulsify.model import Port
    from streaming.cli.model import Opened

SOUNDS = (".wav", ".flac", ".ogg")


@options.takes(chunks=options.ChunkOptions, live=LiveOptions)
def run(
    model: options.ModelPath = None,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="IN",
            help="Sound, or .npy/.npz; the built-in noisy sound by default.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT",
            help="Sound, or .npy/.csv for other frames; in this folder by default.",
            show_default=False,
        ),
    ] = None,
    pulse: options.Pulse = None,
    symbol: options.SymbolName = None,
    rate: options.Rate = None,
    channel: Annotated[
        str,
        typer.Option(
            "--channel", help="mix: the mean; a number: that one; each: one stream for every channel."
        ),
    ] = "mix",
    output: Annotated[
        str | None,
        typer.Option("--output", help="The output to write, where there are several.", show_default=False),
    ] = None,
    inputs: options.Inputs = None,
    max_context: options.MaxContext = None,
    backend: options.Backend = "numba",
    weights: options.Weights = "f32",
    json: options.AsJson = False,
    chunks: options.ChunkOptions = options.NO_CHUNKS,
    live: LiveOptions = NOT_LIVE,
) -> None:
    """Run a file, or with --live a microphone, through a model in pulses, and measure every chunk.

    Sound is resampled to the model's rate and back, and what is written is aligned with the input: the delay
    is cut off, the tail is there. The model's rate is --rate, or "sample_rate" in its metadata, or 16000 Hz.

    [bold]Examples[/bold]

      [cyan]pulse run[/cyan]                                       the built-in model on the built-in sound

      [cyan]pulse run noisy.wav quiet.wav[/cyan]                   the built-in model on your sound

      [cyan]pulse run model.onnx in.flac out.wav --channel each[/cyan]

      [cyan]pulse run vad.onnx in.wav speech.csv[/cyan]            probabilities with their times

      [cyan]pulse run features.onnx x.npy y.npy --pulse 4[/cyan]   frames that are no sound

      [cyan]pulse run --live[/cyan]                                microphone, built-in model, loudspeaker

      [cyan]pulse run model.onnx --live --mic usb --stats out.jsonl[/cyan]

      [cyan]pulse run model.onnx in.wav out.wav --live[/cyan]      the file as if a microphone gave it, in real time
    """
    from pulse.errors import InputError
    from streaming.builtin import noisy_path
    from streaming.cli.model import compile_model, open_model
    from streaming.frames import READABLE
    from streaming.replacing import refuse_same

    if model is not None and model.suffix.lower() in SOUNDS:
        if target is not None:
            raise InputError(f"{model}: is a sound where a model belongs; give [MODEL] IN OUT")
        model, source, target = None, model, source
    opened = open_model(model, symbol, inputs, rate, max_context, chunks, pulse)
    program = compile_model(opened.pulsed(pulse), backend, weights, live.live)
    if live.live:
        from streaming.cli.live.command import run_live

        refuse_same([model, source], [target, *live.written])
        run_live(opened, program, source, target, output, channel, live, json)
        return
    if live != NOT_LIVE:
        raise InputError("the options of the panel Live need --live")
    source = source or noisy_path()
    deadline_s = None if opened.rate_hz is None else program.pulse / opened.rate_hz
    if source.suffix.lower() in READABLE:
        report = _run_arrays(opened, program, source, target, output, deadline_s)
    else:
        report = _run_sound(opened, program, source, target, output, channel, deadline_s, model is None)
    if json:
        print_json(report)
    else:
        print_run(report, opened, program)


def _run_sound(
    opened: "Opened",
    program: "Program",
    source: Path,
    target: Path | None,
    output: str | None,
    channel: str,
    deadline_s: float | None,
    builtin: bool,
) -> dict[str, Any]:
    from pulse.errors import InputError
    from streaming.audio import AudioReader, is_sound
    from streaming.builtin import noisy_path
    from streaming.channels import Channels
    from streaming.files import audio_input, audio_output, stream_sound
    from streaming.frames import WRITABLE
    from streaming.replacing import refuse_same

    choice = Channels.parse(channel)
    port = audio_input(program)
    if port is None or opened.rate_hz is None:
        forms = "; ".join(str(found).partition(", ")[0] for found in program.inputs)
        once = " ".join(f"--constant {found.name}=VALUE" for found in program.inputs if not found.streams)
        raise InputError(
            f"{opened.title}: takes no sound but {forms}; give its input as .npy or .npz"
            + (f", or what does not stream with {once}" if once else "")
        )
    chosen = _output(program, output, lambda candidate: audio_output(candidate, port))
    sound = audio_output(chosen, port)
    target = target or Path("denoised.wav" if builtin else f"{opened.title}-out{'.wav' if sound else '.npy'}")
    if is_sound(target) and not sound:
        raise InputError(
            f"{target}: output {chosen.name} is no sound at the rate of the input; write .npy or .csv"
        )
    if sound and not is_sound(target) and target.suffix.lower() not in WRITABLE:
        known = f"sound is written as {', '.join(SOUNDS)}, frames as {', '.join(WRITABLE)}"
        raise InputError(f"{target}: {known}, not {target.suffix or 'this'}")
    refuse_same([source], [target])
    with AudioReader(source) as reader, progress(f"{source.name} -> {target.name}") as advance:
        result = stream_sound(program, reader, target, opened.rate_hz, chosen, choice, deadline_s, advance)
        about = {
            "file_rate_hz": reader.rate_hz,
            "file_channels": reader.channels,
            "channel": channel,
            "duration_s": reader.duration_s,
        }
    report = run_report(opened, program, source, target, [chosen.name], result) | about
    if source == noisy_path() and is_sound(target):
        report |= snr(target)
    return report


def _run_arrays(
    opened: "Opened",
    program: "Program",
    source: Path,
    target: Path | None,
    output: str | None,
    deadline_s: float | None,
) -> dict[str, Any]:
    from streaming.files import stream_arrays
    from streaming.frames import read_arrays
    from streaming.replacing import refuse_same

    arrays = read_arrays(source, [port.name for port in program.inputs])
    chosen = _output(program, output, lambda candidate: candidate.streams)
    target = target or Path(f"{opened.title}-out.npy")
    refuse_same([source], [target])
    with progress(f"{source.name} -> {target.name}") as advance:
        result = stream_arrays(program, arrays, {chosen.name: target}, opened.rate_hz, deadline_s, advance)
    report = run_report(opened, program, source, target, [chosen.name], result)
    if opened.rate_hz is not None:
        report["duration_s"] = result.frames / opened.rate_hz
    return report


def _output(program: "Program", name: str | None, suits: "Callable[[Port], bool]") -> "Port":
    """The output of that name, else the first that suits, else the first one. Raises InputError."""
    from pulse.errors import InputError

    if name is None:
        return next(filter(suits, program.outputs), program.outputs[0])
    for port in program.outputs:
        if port.name == name:
            return port
    raise InputError(
        f"no output is called {name!r}; there is {', '.join(port.name for port in program.outputs)}"
    )
