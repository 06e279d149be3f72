"""pulse run: a file, or live audio, through a model."""

from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from streaming.cli import options
from streaming.cli.audio_options import AudioOptions
from streaming.cli.console import print_note, print_warning
from streaming.cli.event_options import EventOptions
from streaming.cli.live_options import LiveOptions
from streaming.cli.options import ModelOptions, ProgramOptions, ReportOptions, option, takes_groups

if TYPE_CHECKING:
    from pulse.program.program import Program

SourcePath: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="IN",
        help="Audio, or .npy/.npz; - for standard input. Default: the built-in noisy recording.",
    ),
]
TargetPath: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="OUT",
        help="Audio, or .npy/.csv for other frames; - for standard output. Default: a file in the current folder.",
    ),
]


@takes_groups
def run(
    model: options.ModelPath = None,
    source: SourcePath = None,
    target: TargetPath = None,
    *,
    audio: AudioOptions,
    model_options: ModelOptions,
    program_options: ProgramOptions,
    specialise: bool = option(
        "Compile machine code for the shapes of this program during the run, in a process of low priority, and "
        "use it once it is ready if it makes a step at least 1.1 times as fast.",
        "--specialise",
        default=False,
    ),
    events: EventOptions,
    live: LiveOptions,
    report_options: ReportOptions,
) -> None:
    """Process a file, or live audio with --live, with a model in pulses, and measure every pulse.

    Audio is resampled to the model's rate and back. The output is aligned with the input: the delay is removed,
    the tail is kept. The model's rate is --rate, or "sample_rate" in its metadata, or 16000 Hz.

    All formats of libsndfile are read and written. Pipes carry WAV or raw samples; frames are written as soon
    as they are ready. If OUT is -, messages go to standard error.

    Examples:
      pulse run                                       the built-in model on the built-in recording
      pulse run noisy.mp3 quiet.wav                   the built-in model on your audio
      pulse run model.onnx in.flac out.wav --channel each
      pulse run vad.onnx in.wav speech.csv            probabilities with their times
      pulse run vad.onnx in.wav out.srt --events segments --event min_silence_s=1
      pulse run aec.onnx --in mic=near.wav --in far=far.wav out.wav   two inputs
      pulse run aec.onnx in.wav out.wav               the same from one file with a channel for each input
      pulse run parts.onnx in.wav --out speech=a.wav --out noise=b.wav
      pulse run separate.onnx stereo.wav --out y:0=voice.wav --out y:1=rest.wav   channels of an output
      pulse run model.pulse in.wav out.wav            a program of pulse compile
      pulse run recipe.toml in.wav out.wav            with the STFT or features that the recipe adds
      ffmpeg -i talk.mp4 -f wav - | pulse run model.onnx - - | aplay
      arecord -t raw -f S16_LE -r 48000 | pulse run vad.onnx - - --raw s16,48000   a table, row by row
      pulse run features.onnx x.npy y.npy --pulse 4   frames that are not audio
      pulse run --live                                microphone, built-in model, loudspeaker
      pulse run model.onnx --live --mic usb --stats out.jsonl
      pulse run model.onnx in.wav out.wav --live      the file replaces the microphone, in real time
    """
    from pulse.interface import MAX_CHANNELS
    from streaming.cli.model_opening import compile_opened, open_model_or_packaged
    from streaming.cli.run_request import RunRequest, sort_paths

    model, source, target = sort_paths(model, source, target, audio, live.live)
    request = RunRequest(model, source, target, audio, events.choice())
    if live.live:
        request.refuse_live(live)
    else:
        request.refuse_file(live)
    max_channels = 1 if request.has_frames else MAX_CHANNELS
    opened = open_model_or_packaged(model, model_options, program_options, max_channels)
    program = compile_opened(opened, program_options, live.live)
    with specialise_during(program) if specialise else nullcontext():
        if live.live:
            from streaming.cli.live.command import run_live

            run_live(opened, program, request, live, report_options)
            return
        from streaming.cli.file_run import run_file

        report = run_file(opened, program, request)
    report_options.print(report)
    if report_options == ReportOptions():
        for warning in report.warnings:
            print_warning(warning)


@contextmanager
def specialise_during(program: "Program") -> Generator[None]:
    """Compile specialised kernels during a run, and print the gain on stderr.

    Raises InputError: the program has no instructions that could be specialised
    """
    from streaming.compilation.specialisation import BackgroundSpecialisation

    specialisation = BackgroundSpecialisation(program)
    with specialisation:
        yield
    print_note(str(specialisation))
