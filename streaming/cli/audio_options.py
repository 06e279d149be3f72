"""The options of ``pulse run`` for reading and writing audio."""

from functools import partial

from pulse.support.record import record
from streaming.cli.options import option

_option = partial(option, panel="Files")


@record
class AudioOptions:
    """The options of reading and writing audio, as given on the command line."""

    channel: str = _option(
        "mix: mean of all channels; a number: that channel, from 0; each: one stream per channel.",
        metavar="mix|each|N",
        default="mix",
    )
    output: str | None = _option(
        "Output to write, if the model has several, or a channel of it: NAME:CHANNEL.", metavar="NAME"
    )
    in_routes: list[str] | None = _option(
        "Source of an input, or of a channel of it (NAME:CHANNEL): a file, or with --live a device; channels "
        "count from 0. Use .npy for an input that is not audio. May be repeated.",
        "--in",
        metavar="NAME=SOURCE[:CHANNEL]",
    )
    out_routes: list[str] | None = _option(
        "File of an output, or of a channel of it (NAME:CHANNEL), instead of OUT; outputs with the same audio "
        "file become its channels, in order. May be repeated.",
        "--out",
        metavar="NAME=FILE",
    )
    raw: str | None = _option(
        "Read samples without a header: s16,48000,2. Encodings: u8, s16, s24, s32, f32, f64. Default: the "
        "model's rate, 1 channel.",
        metavar="ENCODING[,HZ[,CHANNELS]]",
    )
    format_name: str | None = _option(
        "Format of OUT, if its name does not determine it: wav, flac …; raw, csv or npy for a pipe.",
        "--format",
        metavar="FORMAT",
    )
    subtype: str | None = _option(
        "Encoding of the written samples: pcm_16, pcm_24, float … Default: that of IN.", metavar="ENCODING"
    )
