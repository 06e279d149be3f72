"""The options of ``pulse run`` for reading and writing audio."""

from functools import partial
from typing import Annotated

import typer

from pulse.support.record import record

_option = partial(typer.Option, rich_help_panel="Files")


@record
class AudioOptions:
    """The options of reading and writing audio, as given on the command line."""

    channel: Annotated[
        str,
        _option(
            metavar="mix|each|N",
            help="mix: mean of all channels; a number: that channel, from 0; each: one stream per channel.",
        ),
    ] = "mix"
    output: Annotated[
        str | None,
        _option(
            metavar="NAME",
            help="Output to write, if the model has several, or a channel of it: NAME:CHANNEL.",
        ),
    ] = None
    in_routes: Annotated[
        list[str] | None,
        _option(
            "--in",
            metavar="NAME=SOURCE[:CHANNEL]",
            help=(
                "Source of an input, or of a channel of it (NAME:CHANNEL): a file, or with --live a device; channels "
                "count from 0. Use .npy for an input that is not audio. May be repeated."
            ),
        ),
    ] = None
    out_routes: Annotated[
        list[str] | None,
        _option(
            "--out",
            metavar="NAME=FILE",
            help="File of an output, or of a channel of it (NAME:CHANNEL), instead of OUT; outputs with the same audio "
            "file become its channels, in order. May be repeated.",
        ),
    ] = None
    raw: Annotated[
        str | None,
        _option(
            metavar="ENCODING[,HZ[,CHANNELS]]",
            help="Read samples without a header: s16,48000,2. Encodings: u8, s16, s24, s32, f32, f64. Default: the "
            "model's rate, 1 channel.",
        ),
    ] = None
    format_name: Annotated[
        str | None,
        _option(
            "--format",
            metavar="FORMAT",
            help="Format of OUT, if its name does not determine it: wav, flac …; raw, csv or npy for a pipe.",
        ),
    ] = None
    subtype: Annotated[
        str | None,
        _option(
            metavar="ENCODING",
            help="Encoding of the written samples: pcm_16, pcm_24, float … Default: that of IN.",
        ),
    ] = None
