"""pulse run: a file through a model."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.cli import options
from streaming.cli.console import print_json
from streaming.cli.event_options import NO_EVENTS, EventOptions
from streaming.cli.live.options import NOT_LIVE, LiveOptions
from streaming.cli.run_report import print_run, run_report, snr
from streaming.cli.standard_output import take_stdout
from streaming.progress import progress

if TYPE_CHECKING:
    from pulse.program.program import Program
    from pulse.pulsify.network import Port
    from streaming.cli.model import Opened
    from streaming.events.choice import Choice
    from streaming.output_files import OutputRoute


@options.takes(chunks=options.ChunkOptions, asked_events=EventOptions, live=LiveOptions)
def run(
    model: options.ModelPath = None,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="IN",
            help="Sound, or .npy/.npz; - for standard input; the built-in noisy sound by default.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="OUT",
            help="Sound, or .npy/.csv for other frames; - for standard output; in this folder by default.",
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
    heard: Annotated[
        list[str] | None,
        typer.Option(
            "--in",
            metavar="NAME=SOURCE[:CHANNEL]",
            help="The source of an input, where there are several: a file, with --live a device; channels are counted "
            "from 0. .npy for an input that is no sound. May be repeated.",
            show_default=False,
        ),
    ] = None,
    written: Annotated[
        list[str] | None,
        typer.Option(
            "--out",
            metavar="NAME=FILE",
            help="An output and its file, in place of OUT; those of one sound file are its channels, in order. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None,
    raw: Annotated[
        str | None,
        typer.Option(
            "--raw",
            metavar="ENCODING[,HZ[,CHANNELS]]",
            help="What is read has no header: s16,48000,2. Encodings u8, s16, s24, s32, f32, f64; the model's rate and "
            "1 channel where they are not given.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Of OUT, where its name does not say it: wav, flac …; raw or csv for a pipe.",
            show_default=False,
        ),
    ] = None,
    subtype: Annotated[
        str | None,
        typer.Option(
            "--subtype",
            metavar="ENCODING",
            help="How samples are written: pcm_16, pcm_24, float …; as in IN by default.",
            show_default=False,
        ),
    ] = None,
    inputs: options.Inputs = None,
    max_context: options.MaxContext = None,
    backend: options.Backend = "numba",
    weights: options.Weights = "f32",
    json: options.AsJson = False,
    chunks: options.ChunkOptions = options.NO_CHUNKS,
    asked_events: EventOptions = NO_EVENTS,
    live: LiveOptions = NOT_LIVE,
) -> None:
    """Run a file, or with --live a microphone, through a model in pulses, and measure every chunk.

    Sound is resampled to the model's rate and back, and what is written is aligned with the input: the delay
    is cut off, the tail is there. The model's rate is --rate, or "sample_rate" in its metadata, or 16000 Hz.

    Files may be whatever libsndfile reads and writes. A pipe brings WAV or raw samples, and what is ready is
    written at once; messages are on standard error where OUT is -.

    [bold]Examples[/bold]

      [cyan]pulse run[/cyan]                                       the built-in model on the built-in sound

      [cyan]pulse run noisy.mp3 quiet.wav[/cyan]                   the built-in model on your sound

      [cyan]pulse run model.onnx in.flac out.wav --channel each[/cyan]

      [cyan]pulse run vad.onnx in.wav speech.csv[/cyan]            probabilities with their times

      [cyan]pulse run vad.onnx in.wav speech.srt --events segments --event min_silence_s=0.3[/cyan]

      [cyan]pulse run aec.onnx --in mic=near.wav --in far=far.wav out.wav[/cyan]   two sounds in

      [cyan]pulse run aec.onnx in.wav out.wav[/cyan]               the same, of a file with a channel for each input

      [cyan]pulse run parts.onnx in.wav --out speech=a.wav --out noise=b.wav[/cyan]

      [cyan]pulse run recipe.toml in.wav out.wav[/cyan]            STFT or features, model and what is behind it

      [cyan]ffmpeg -i talk.mp4 -f wav - | pulse run model.onnx - - | aplay[/cyan]

      [cyan]arecord -t raw -f S16_LE -r 48000 | pulse run vad.onnx - - --raw s16,48000[/cyan]   a table as it comes

      [cyan]pulse run features.onnx x.npy y.npy --pulse 4[/cyan]   frames that are no sound

      [cyan]pulse run --live[/cyan]                                microphone, built-in model, loudspeaker

      [cyan]pulse run model.onnx --live --mic usb --stats out.jsonl[/cyan]

      [cyan]pulse run model.onnx in.wav out.wav --live[/cyan]      the file as if a microphone gave it, in real time
    """
    from pulse.errors import InputError
    from streaming.atomic_files import refuse_same
    from streaming.builtin import noisy_path
    from streaming.cli.model import compile_model, open_model
    from streaming.frames import READABLE
    from streaming.source import is_sound_source

    if model is not None and is_sound_source(model):
        if target is not None:
            raise InputError(f"{model}: is a sound where a model belongs; give [MODEL] IN OUT")
        model, source, target = None, model, source
    if heard and not written and not live.live and target is None:
        source, target = None, source
    events = asked_events.choice()
    if events is not None and model is None:
        raise InputError(
            "--events: the built-in denoiser gives sound, and no probabilities; name a model in front of the sound"
        )
    if live.live:
        _refuse_streams(source, target, raw, form)
    opened = open_model(model, symbol, inputs, rate, max_context, chunks, pulse)
    program = compile_model(opened.pulsed(pulse), backend, weights, live.live)
    if live.live:
        from streaming.cli.live.command import run_live

        refuse_same([model, source], [target, *live.written])
        if written:
            raise InputError(
                "--out does not go with --live; --output is what is played, --frames a file of frames"
            )
        run_live(opened, program, source, target, subtype, output, channel, heard or [], live, events, json)
        return
    if live != NOT_LIVE:
        raise InputError("the options of the panel Live need --live")
    if written and (target is not None or output is not None or events is not None):
        raise InputError("--out names outputs and their files: leave out OUT, --output and --events")
    if not heard:
        source = source or noisy_path()
    deadline_s = None if opened.rate_hz is None else program.pulse / opened.rate_hz
    if source is not None and source.suffix.lower() in READABLE and not heard:
        if raw or form or subtype:
            raise InputError(f"{source}: holds frames; --raw, --format and --subtype are for sound")
        if written:
            raise InputError(f"{source}: holds frames; --out is for sound, give OUT and --output")
        report = _run_arrays(opened, program, source, target, output, events, deadline_s)
    else:
        asked = SoundOptions(channel, raw, form, subtype, events, heard or [], written or [])
        report = _run_sound(opened, program, source, target, output, asked, deadline_s, model is None)
    if json:
        print_json(report)
    else:
        print_run(report, opened, program)


def _refuse_streams(source: Path | None, target: Path | None, raw: str | None, form: str | None) -> None:
    """Raises InputError where --live is given with what it cannot read or write."""
    from pulse.errors import InputError
    from streaming.source import is_stream

    for path in (source, target):
        if path is not None and is_stream(path):
            raise InputError(
                f"{path}: --live takes files; without it what comes from a pipe is run as it comes"
            )
    if raw or form:
        raise InputError(
            "--raw and --format do not go with --live; --live reads files with a header, and writes by suffix"
        )


@dataclass(frozen=True)
class SoundOptions:
    """How sound is read and written, as it is asked for; see the options of ``run``."""

    channel: str
    raw: str | None
    form: str | None
    subtype: str | None
    events: "Choice | None"
    heard: list[str]
    written: list[str]


def _run_sound(
    opened: "Opened",
    program: "Program",
    source: Path | None,
    target: Path | None,
    output: str | None,
    asked: SoundOptions,
    deadline_s: float | None,
    builtin: bool,
) -> dict[str, Any]:
    from contextlib import ExitStack

    from pulse.errors import InputError
    from streaming.atomic_files import refuse_same
    from streaming.builtin import noisy_path
    from streaming.cli.sounds import open_sounds
    from streaming.files import stream_sound
    from streaming.routing import sound_inputs
    from streaming.sound_formats import float_way
    from streaming.source import is_stream
    from streaming.wav_stream import StreamFormat

    if not sound_inputs(program) or opened.rate_hz is None:
        forms = "; ".join(str(found).partition(", ")[0] for found in program.inputs)
        once = " ".join(f"--constant {found.name}=VALUE" for found in program.inputs if not found.streams)
        raise InputError(
            f"{opened.title}: takes no sound but {forms}; write a recipe with what is in front of it (pulse recipe), "
            "give its input as .npy or .npz" + (f", or what does not stream with {once}" if once else "")
        )
    if asked.events is not None and asked.subtype is not None:
        raise InputError("--subtype is for sound; leave it out with --events")
    raw = None if asked.raw is None else StreamFormat.parse(asked.raw, opened.rate_hz)
    with ExitStack() as stack:
        writes = _writes(opened, program, source, target, output, asked, builtin)
        writes = [_standard(write, asked.events is not None) for write in writes]
        sounds = open_sounds(stack, program, asked.heard, source, asked.channel, raw)
        for write in writes:
            if not write.target.streamed:
                refuse_same([path for path in sounds.paths if not is_stream(path)], [write.target.path])
        place = writes[0].target
        shown = not any(write.target.is_terminal for write in writes)
        title = f"{sounds.title} -> {', '.join(write.target.path.name for write in writes)}"
        with progress(title, shown) as advance:
            result = stream_sound(
                program, sounds.heard, writes, opened.rate_hz, sounds.arrays, deadline_s, advance
            )
        reader = sounds.heard[0].reader
        about = {
            "file_rate_hz": reader.rate_hz,
            "file_channels": reader.channels,
            "file_encoding": reader.encoding,
            "channel": asked.channel,
            "duration_s": (result.samples or 0) / reader.rate_hz,
            "heard": sounds.rows(),
            "padded_s": {
                name: float(frames / program.model.port(name).rate / opened.rate_hz)
                for name, frames in result.padded.items()
            },
        }
    names = [port.name for write in writes for port in write.ports]
    inputs = ", ".join(map(str, sounds.paths))
    outputs = ", ".join(str(write.target.path) for write in writes)
    report: dict[str, Any] = run_report(opened, program, inputs, outputs, names, result) | about
    for one in result.written:
        if one.target.form is not None and one.clipping.total:
            report["warnings"].append(
                f"{one.target.name}: clipped to {one.encoding.lower()}: {one.clipping}; {float_way(one.target.form)}"
            )
    if source == noisy_path() and place.is_sound and not place.streamed and builtin:
        report |= snr(place.path)
    return report


def _writes(
    opened: "Opened",
    program: "Program",
    source: Path | None,
    target: Path | None,
    output: str | None,
    asked: SoundOptions,
    builtin: bool,
) -> "list[OutputRoute]":
    """Which outputs go where. Raises InputError."""
    from streaming.output_files import OutputRoute
    from streaming.routing import is_playable, sound_inputs
    from streaming.target import Target

    heard = sound_inputs(program)[0]
    if asked.written:
        return _named_writes(program, heard, asked)
    chosen = _output(
        program, output, lambda candidate: is_playable(candidate, heard) == (asked.events is None)
    )
    sound = is_playable(chosen, heard)
    if asked.events is not None:
        path = target or Path(f"{opened.title}-events.csv")
        name = "sound" if source is None else source.stem
        return [OutputRoute((chosen,), Target.of_events(path, asked.events, name, asked.form))]
    path = target or Path("denoised.wav" if builtin else f"{opened.title}-out{'.wav' if sound else '.npy'}")
    write = OutputRoute((chosen,), Target.of(path, "wav" if sound else "csv", asked.form, asked.subtype))
    _require_sound(write, heard)
    return [write]


def _named_writes(program: "Program", heard: "Port", asked: SoundOptions) -> "list[OutputRoute]":
    """Those of --out. Raises InputError."""
    from pulse.errors import InputError
    from streaming.output_files import OutputRoute
    from streaming.routing import is_playable
    from streaming.target import Target

    ports: dict[str, list[Port]] = {}
    for text in asked.written:
        name, given, path = text.partition("=")
        if not (name and given and path):
            raise InputError(f"--out {text}: give NAME=FILE, such as speech=speech.wav")
        port = _output(program, name, lambda _: False)
        ports.setdefault(path, []).append(port)
    writes: list[OutputRoute] = []
    for path, those in ports.items():
        usual = "wav" if is_playable(those[0], heard) else "csv"
        write = OutputRoute(tuple(those), Target.of(Path(path), usual, asked.form, asked.subtype))
        _require_sound(write, heard)
        if not write.target.is_sound and len(those) > 1:
            raise InputError(
                f"{path}: holds the frames of one output, not of {', '.join(port.name for port in those)}; name a file "
                "for each"
            )
        writes.append(write)
    return writes


def _require_sound(write: "OutputRoute", heard: "Port") -> None:
    from pulse.errors import InputError
    from streaming.routing import is_playable

    for port in write.ports:
        if write.target.is_sound and not is_playable(port, heard):
            raise InputError(
                f"{write.target.name}: output {port.name} is no sound at the rate of the input; write .npy or .csv"
            )


def _standard(write: "OutputRoute", text: bool) -> "OutputRoute":
    """The same, with the descriptor of standard output where it goes there."""
    from streaming.target import OUTPUT_NAMES

    if str(write.target.path) not in OUTPUT_NAMES:
        return write
    return replace(write, target=replace(write.target, descriptor=take_stdout(text=text)))


def _run_arrays(
    opened: "Opened",
    program: "Program",
    source: Path,
    target: Path | None,
    output: str | None,
    events: "Choice | None",
    deadline_s: float | None,
) -> dict[str, Any]:
    from streaming.atomic_files import refuse_same
    from streaming.files import stream_arrays
    from streaming.frames import read_arrays
    from streaming.target import OUTPUT_NAMES, Target

    arrays = read_arrays(source, [port.name for port in program.inputs])
    chosen = _output(program, output, lambda candidate: candidate.streams)
    target = target or Path(f"{opened.title}-{'out.npy' if events is None else 'events.csv'}")
    place = target if events is None else Target.of_events(target, events, source.stem)
    refuse_same([source], [target])
    if isinstance(place, Target) and str(target) in OUTPUT_NAMES:
        place = replace(place, descriptor=take_stdout(text=True))
    shown = not (isinstance(place, Target) and place.is_terminal)
    with progress(f"{source.name} -> {target.name}", shown) as advance:
        result = stream_arrays(program, arrays, {chosen.name: place}, opened.rate_hz, deadline_s, advance)
    report = run_report(opened, program, str(source), str(target), [chosen.name], result)
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
