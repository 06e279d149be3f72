"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

ModelPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="MODEL", help="An ONNX file; the built-in denoiser where none is given.", show_default=False
    ),
]
Pulse = Annotated[
    int | None,
    typer.Option(
        "--pulse",
        "-p",
        help="Frames for each step. About 10 ms of sound, or the smallest possible.",
        show_default=False,
    ),
]
SymbolName = Annotated[
    str | None,
    typer.Option("--symbol", help="The dim that is time, where the model has several.", show_default=False),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        help='A shape to give or to fix, such as "x=1,80,T,f32". May be repeated.',
        show_default=False,
    ),
]
Rate = Annotated[
    int | None,
    typer.Option(
        "--rate", metavar="HZ", min=1, help="Samples (or frames) a second of the model.", show_default=False
    ),
]
MaxContext = Annotated[
    int | None,
    typer.Option(
        "--max-context",
        metavar="FRAMES",
        min=1,
        help="The longest stream, where attention sees all frames before its own.",
        show_default=False,
    ),
]
Backend = Annotated[
    str, typer.Option("--backend", help="numba: compiled kernels; numpy: the slow reference.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
