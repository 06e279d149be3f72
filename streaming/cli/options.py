"""Options shared by several commands."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pulse.errors import InputError
from pulse.rounding import FORMS, Rounding
from pulse.support.record import record
from streaming.cli.spelling import options_of

if TYPE_CHECKING:
    from pulse.support.report import Report

_model_option = partial(typer.Option, rich_help_panel="Model")
_chunk_option = partial(typer.Option, rich_help_panel="Models of chunks")
_module_option = partial(typer.Option, rich_help_panel="PyTorch modules")

ModelPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="MODEL",
        help="A model file, a recipe (.toml), a program (.pulse), or a PyTorch module as package.module:name or "
        "file.py:name. Default: the built-in denoiser.",
    ),
]
BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="numba|numpy|onnxruntime",
        help="numba runs compiled kernels; numpy is the slow reference; onnxruntime runs its own, if it is installed.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        metavar="|".join(FORMS),
        help="Storage of large weights: f32 (default), or rounded to bf16 or int8 (a half or a quarter of the memory).",
    ),
]
Activations = Annotated[
    str | None,
    typer.Option(
        "--activations",
        metavar="|".join(FORMS),
        help="f32 (default), or the same as --weights: what is multiplied by the weights is rounded too, for int8 each "
        "row with its own scale.",
    ),
]
Specialise = Annotated[
    bool,
    typer.Option(
        "--specialise",
        help="Compile machine code for the shapes of this program during the run, in a process of low priority, and "
        "use it once it is ready if it makes a step at least 1.1 times as fast.",
    ),
]
Threads = Annotated[
    int,
    typer.Option(
        "--threads",
        metavar="N",
        help="Number of threads that share the long steps of a model; the result does not change.",
    ),
]


@record
class RoundingOptions(Rounding):
    """The options of rounding weights and activations."""

    weights: Weights = None
    activations: Activations = None


@record
class ProgramOptions(RoundingOptions):
    """The options of compiling a program."""

    backend: BackendName = "numba"
    threads: Threads = 1


@record
class ReportOptions:
    """The options of printing a report."""

    json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the report as Markdown.")] = False

    def print(self, report: "Report") -> None:
        """Print a report on stdout. Raises InputError: both forms are requested."""
        from streaming.cli.console import print_report

        print_report(report, self.json, self.markdown)


@record
class ModelOptions:
    """Options that describe a model, as typed by the user; the last three are of a PyTorch module."""

    pulse: Annotated[
        int | None,
        typer.Option(
            "--pulse",
            "-p",
            metavar="FRAMES",
            help="Frames per step. Default: about 10 ms of audio, or the smallest possible.",
        ),
    ] = None
    symbol: Annotated[
        str | None,
        _model_option(metavar="NAME", help="The symbol of the time axis, if the shapes have several."),
    ] = None
    rate: Annotated[
        int | None,
        typer.Option(metavar="HZ", min=1, help="Sample rate (or frame rate) of the model in Hz."),
    ] = None
    inputs: Annotated[
        list[str] | None,
        _model_option(
            "--input",
            metavar="NAME=SHAPE",
            help='Shape of an input, such as "x=1,80,T,f32". May be repeated.',
        ),
    ] = None
    max_context: Annotated[
        int | None,
        _model_option(
            metavar="FRAMES", min=1, help="Longest stream in frames, for attention to all past frames."
        ),
    ] = None

    constant: Annotated[
        list[str] | None,
        _model_option(
            metavar="NAME=VALUE",
            help="Constant value of an input: sr=16000, a list or a .npy file. May be repeated.",
        ),
    ] = None
    state: Annotated[
        list[str] | None,
        _chunk_option(
            metavar="IN=OUT",
            help="A state: its input, and the output that is its next value. Give all states or none; "
            "without this option they are detected. May be repeated.",
        ),
    ] = None
    initial: Annotated[
        list[str] | None,
        _chunk_option(
            metavar="IN=VALUE",
            help="First value of a state: a number, a list or a .npy file. Default: zeros. May be repeated.",
        ),
    ] = None
    context: Annotated[
        list[str] | None,
        _chunk_option(
            metavar="IN=FRAMES",
            help="Number of past frames with which each chunk of an input begins. May be repeated.",
        ),
    ] = None
    axis: Annotated[
        list[str] | None,
        _chunk_option(
            metavar="NAME=AXIS", help="Time axis of an input or output, counted from 0. May be repeated."
        ),
    ] = None
    delay: Annotated[
        list[str] | None,
        _chunk_option(
            metavar="OUT=FRAMES",
            help="Leading frames of an output that are not part of the result. May be repeated.",
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        _model_option(metavar="OUT", help="Output to keep. Default: all. May be repeated."),
    ] = None
    ignore_value_info: Annotated[
        bool,
        _model_option("--ignore-value-info", help="Ignore the shapes that the file states for inner wires."),
    ] = False
    budget: Annotated[
        list[str] | None,
        _model_option(
            metavar="LIMIT=NUMBER",
            help="Limit on reading the file: nodes=N (after loops are unfolded), elements=N (of computed constants) "
            "or seconds=N (to compute them, estimated). May be repeated.",
        ),
    ] = None
    signature: Annotated[
        str | None,
        _model_option(metavar="NAME", help="Signature of a SavedModel or a TFLite file."),
    ] = None
    example: Annotated[
        list[str] | None,
        _module_option(
            metavar="[NAME=]SHAPE",
            help='Input of a PyTorch module: noise of a shape such as "1,1,4800", or a .npy file. Repeat it for each '
            "input, in their order or by name.",
        ),
    ] = None
    dynamic: Annotated[
        list[str] | None,
        _module_option(
            metavar="NAME=AXIS[:SYMBOL]",
            help='Variable axis of an input of a PyTorch module, such as "x=2"; none for no such axis. Default: '
            "found by trial. May be repeated.",
        ),
    ] = None
    method: Annotated[
        str | None,
        _module_option(metavar="NAME", help="Method of a PyTorch module to call instead of forward."),
    ] = None


@contextmanager
def extra_for(subject: str, extra: str) -> Generator[None]:
    """Import packages of an extra. Raises InputError: one is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("pulse", "streaming"):
            raise
        raise InputError(f"{subject} needs {error.name}; pip install 'pulse-stream[{extra}]'") from None


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the options of the dataclasses among its parameters, each of which it receives as one argument.

    While the command runs, messages name options instead of the parameters of Python: its own, or with the command
    that has them.
    """
    command_parameters = signature(command).parameters
    groups: dict[str, type] = {
        name: parameter.annotation
        for name, parameter in command_parameters.items()
        if isinstance(parameter.annotation, type) and is_dataclass(parameter.annotation)
    }

    @wraps(command)
    def wrapper(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        from pulse.support.wording import use_spelling

        with use_spelling(options_of(wrapper)):
            command(**values)

    parameters = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for name in command_parameters
        for parameter in (
            signature(groups[name]).parameters.values() if name in groups else [command_parameters[name]]
        )
    ]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(wrapper)["__signature__"] = Signature(parameters)
    return wrapper
