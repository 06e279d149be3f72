"""Options that several commands have."""

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.cli.spelling import as_options

if TYPE_CHECKING:
    from pulse.report import Report

ModelPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="MODEL",
        help="An ONNX file, a recipe (.toml) or a program (.pulse); the built-in denoiser where none is given.",
        show_default=False,
    ),
]
Backend = Annotated[
    str, typer.Option("--backend", help="numba: compiled kernels; numpy: the slow reference.")
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        help="f32, the default; bf16 or int8: rounded, a half or a quarter of the memory, see pulse check.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class ReportOptions:
    """How a report is printed."""

    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the report as Markdown.")] = False

    def print(self, report: "Report") -> None:
        """Print a report on stdout. Raises InputError: both forms are wanted."""
        from streaming.cli.console import print_report

        print_report(report, self.json, self.markdown)


@dataclass(frozen=True)
class ModelOptions:
    """What is said of a model as it is opened, as it is written; from ``constant`` on, of one of chunks and states."""

    pulse: Annotated[
        int | None,
        typer.Option(
            "--pulse",
            "-p",
            help="Frames for each step. About 10 ms of sound, or the smallest possible.",
            show_default=False,
        ),
    ] = None
    symbol: Annotated[
        str | None,
        typer.Option(
            "--symbol", help="The dim that is time, where the model has several.", show_default=False
        ),
    ] = None
    rate: Annotated[
        int | None,
        typer.Option(
            "--rate",
            metavar="HZ",
            min=1,
            help="Samples (or frames) a second of the model.",
            show_default=False,
        ),
    ] = None
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            help='A shape to give or to fix, such as "x=1,80,T,f32". May be repeated.',
            show_default=False,
        ),
    ] = None
    max_context: Annotated[
        int | None,
        typer.Option(
            "--max-context",
            metavar="FRAMES",
            min=1,
            help="The longest stream, where attention sees all frames before its own.",
            show_default=False,
        ),
    ] = None

    constant: Annotated[
        list[str] | None,
        typer.Option(
            "--constant",
            metavar="NAME=VALUE",
            help="An input that always has one value: sr=16000, a list or a .npy file. May be repeated.",
            show_default=False,
        ),
    ] = None
    state: Annotated[
        list[str] | None,
        typer.Option(
            "--state",
            metavar="IN=OUT",
            help="An input that is a state, and the output that is its next value; all of them, or none. "
            "Found where none is given.",
            show_default=False,
        ),
    ] = None
    initial: Annotated[
        list[str] | None,
        typer.Option(
            "--initial",
            metavar="IN=VALUE",
            help="The first value of a state: a number, a list or a .npy file; zeros by default.",
            show_default=False,
        ),
    ] = None
    context: Annotated[
        list[str] | None,
        typer.Option(
            "--context",
            metavar="IN=FRAMES",
            help="Each chunk of this input begins with so many frames of the one before.",
            show_default=False,
        ),
    ] = None
    axis: Annotated[
        list[str] | None,
        typer.Option(
            "--axis",
            metavar="NAME=AXIS",
            help="The axis of frames in a chunk of this input or output, counted from 0.",
            show_default=False,
        ),
    ] = None
    delay: Annotated[
        list[str] | None,
        typer.Option(
            "--delay",
            metavar="OUT=FRAMES",
            help="Frames that this output gives before its first one.",
            show_default=False,
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="OUT",
            help="An output to keep, the others are left out; all by default. May be repeated.",
            show_default=False,
        ),
    ] = None
    ignore_value_info: Annotated[
        bool,
        typer.Option(
            "--ignore-value-info", help="Do not look at the shapes that the file states of inner wires."
        ),
    ] = False
    budget: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            metavar="LIMIT=NUMBER",
            help="What reading the file may take: nodes that its loops unfold to, elements of constants that are "
            "computed, seconds of that. May be repeated.",
            show_default=False,
        ),
    ] = None
    signature: Annotated[
        str | None,
        typer.Option(
            "--signature",
            metavar="NAME",
            help="Which function of a SavedModel or a TFLite file.",
            show_default=False,
        ),
    ] = None


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the dataclasses among its parameters; it has each of them as one argument.

    While the command runs, messages name options instead of the parameters of Python.
    """
    own = signature(command).parameters
    groups: dict[str, type] = {
        name: of.annotation
        for name, of in own.items()
        if isinstance(of.annotation, type) and is_dataclass(of.annotation)
    }

    @wraps(command)
    def wrapper(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        from pulse.wording import use_spelling

        with use_spelling(as_options):
            command(**given)

    listed = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for name in own
        for parameter in (signature(groups[name]).parameters.values() if name in groups else [own[name]])
    ]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    vars(wrapper)["__signature__"] = Signature(listed)
    return wrapper
