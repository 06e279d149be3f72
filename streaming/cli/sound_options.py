"""The options of ``pulse run`` that say how sound is read and written."""

from typing import Annotated

import typer

from pulse.record import record


@record
class SoundOptions:
    """How sound is read and written, as it is written."""

    channel: Annotated[
        str,
        typer.Option(
            "--channel", help="mix: the mean; a number: that one; each: one stream for every channel."
        ),
    ] = "mix"
    output: Annotated[
        str | None,
        typer.Option("--output", help="The output to write, where there are several.", show_default=False),
    ] = None
    in_routes: Annotated[
        list[str] | None,
        typer.Option(
            "--in",
            metavar="NAME=SOURCE[:CHANNEL]",
            help="The source of an input, where there are several: a file, with --live a device; channels are counted "
            "from 0. .npy for an input that is no sound. May be repeated.",
            show_default=False,
        ),
    ] = None
    written: Annotated[
        list[str] | None,
        typer.Option(
            "--out",
            metavar="NAME=FILE",
            help="An output and its file, in place of OUT; those of one sound file are its channels, in order. "
            "May be repeated.",
            show_default=False,
        ),
    ] = None
    raw: Annotated[
        str | None,
        typer.Option(
            "--raw",
            metavar="ENCODING[,HZ[,CHANNELS]]",
            help="What is read has no header: s16,48000,2. Encodings u8, s16, s24, s32, f32, f64; the model's rate and "
            "1 channel where they are not given.",
            show_default=False,
        ),
    ] = None
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Of OUT, where its name does not say it: wav, flac …; raw or csv for a pipe.",
            show_default=False,
        ),
    ] = None
    subtype: Annotated[
        str | None,
        typer.Option(
            "--subtype",
            metavar="ENCODING",
            help="How samples are written: pcm_16, pcm_24, float …; as in IN by default.",
            show_default=False,
        ),
    ] = None
