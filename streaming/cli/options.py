"""Options shared by several commands."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import Field, field, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from pulse.errors import InputError
from pulse.rounding import FORMS, Rounding
from pulse.support.record import record
from streaming.cli.spelling import options_of

if TYPE_CHECKING:
    from pulse.support.report import Report


def option(help: str, *names: str, default: Any = None, panel: str | None = None, **settings: Any) -> Any:
    """Declare an option, as the default of a dataclass's field or of a command's parameter.

    names     if the parameter's name does not give it
    panel     the part of the help
    settings  of the option of typer
    """
    return field(
        default=default,
        metadata={"option": typer.Option(*names, help=help, rich_help_panel=panel, **settings)},
    )


_model_option = partial(option, panel="Model")
_chunk_option = partial(option, panel="Models of chunks")
_module_option = partial(option, panel="PyTorch modules")

ModelPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="MODEL",
        help="A model file, a recipe (.toml), a program (.pulse), or a PyTorch module as package.module:name or "
        "file.py:name. Default: the built-in denoiser.",
    ),
]
BACKEND = option(
    "numba runs compiled kernels; numpy is the slow reference; onnxruntime runs its own, if it is installed.",
    "--backend",
    metavar="numba|numpy|onnxruntime",
    default="numba",
)


@record
class RoundingOptions(Rounding):
    """The options of rounding weights and activations."""

    weights: str | None = option(
        "Storage of large weights: f32 (default), or rounded to bf16 or int8 (a half or a quarter of the memory).",
        metavar="|".join(FORMS),
    )
    activations: str | None = option(
        "f32 (default), or the same as --weights: what is multiplied by the weights is rounded too, for int8 each "
        "row with its own scale.",
        metavar="|".join(FORMS),
    )


@record
class ProgramOptions(RoundingOptions):
    """The options of compiling a program."""

    backend: str = BACKEND
    threads: int = option(
        "Number of threads that share the long steps of a model; the result does not change.",
        metavar="N",
        default=1,
    )


@record
class ReportOptions:
    """The options of printing a report."""

    json: bool = option("Print the report as JSON.", "--json", default=False)
    markdown: bool = option("Print the report as Markdown.", "--markdown", default=False)

    def print(self, report: "Report") -> None:
        """Print a report on stdout. Raises InputError: both forms are requested."""
        from streaming.cli.console import print_report

        print_report(report, self.json, self.markdown)


@record
class ModelOptions:
    """Options that describe a model, as typed by the user; the last three are of a PyTorch module."""

    pulse: int | None = option(
        "Frames per step. Default: about 10 ms of audio, or the smallest possible.",
        "--pulse",
        "-p",
        metavar="FRAMES",
    )
    symbol: str | None = _model_option(
        "The symbol of the time axis, if the shapes have several.", metavar="NAME"
    )
    rate: int | None = option("Sample rate (or frame rate) of the model in Hz.", metavar="HZ", min=1)
    inputs: list[str] | None = _model_option(
        'Shape of an input, such as "x=1,80,T,f32". May be repeated.', "--input", metavar="NAME=SHAPE"
    )
    max_context: int | None = _model_option(
        "Longest stream in frames, for attention to all past frames.", metavar="FRAMES", min=1
    )

    constant: list[str] | None = _model_option(
        "Constant value of an input: sr=16000, a list or a .npy file. May be repeated.", metavar="NAME=VALUE"
    )
    state: list[str] | None = _chunk_option(
        "A state: its input, and the output that is its next value. Give all states or none; "
        "without this option they are detected. May be repeated.",
        metavar="IN=OUT",
    )
    initial: list[str] | None = _chunk_option(
        "First value of a state: a number, a list or a .npy file. Default: zeros. May be repeated.",
        metavar="IN=VALUE",
    )
    context: list[str] | None = _chunk_option(
        "Number of past frames with which each chunk of an input begins. May be repeated.",
        metavar="IN=FRAMES",
    )
    axis: list[str] | None = _chunk_option(
        "Time axis of an input or output, counted from 0. May be repeated.", metavar="NAME=AXIS"
    )
    delay: list[str] | None = _chunk_option(
        "Leading frames of an output that are not part of the result. May be repeated.", metavar="OUT=FRAMES"
    )
    keep: list[str] | None = _model_option("Output to keep. Default: all. May be repeated.", metavar="OUT")
    ignore_value_info: bool = _model_option(
        "Ignore the shapes that the file states for inner wires.", "--ignore-value-info", default=False
    )
    budget: list[str] | None = _model_option(
        "Limit on reading the file: nodes=N (after loops are unfolded), elements=N (of computed constants) "
        "or seconds=N (to compute them, estimated). May be repeated.",
        metavar="LIMIT=NUMBER",
    )
    signature: str | None = _model_option("Signature of a SavedModel or a TFLite file.", metavar="NAME")
    example: list[str] | None = _module_option(
        'Input of a PyTorch module: noise of a shape such as "1,1,4800", or a .npy file. Repeat it for each '
        "input, in their order or by name.",
        metavar="[NAME=]SHAPE",
    )
    dynamic: list[str] | None = _module_option(
        'Variable axis of an input of a PyTorch module, such as "x=2"; none for no such axis. Default: '
        "found by trial. May be repeated.",
        metavar="NAME=AXIS[:SYMBOL]",
    )
    method: str | None = _module_option(
        "Method of a PyTorch module to call instead of forward.", metavar="NAME"
    )


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
        _parameter(*parts)
        for name, taken in command_parameters.items()
        for parts in (
            [(field.name, field.type, field) for field in fields(groups[name])]
            if name in groups
            else [(name, taken.annotation, taken.default)]
        )
    ]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(wrapper)["__signature__"] = Signature(parameters)
    return wrapper


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    """Return a parameter as typer reads it; the default may be an ``option``."""
    if isinstance(default, Field):
        declared = cast("Field[Any]", default)
        annotation, default = Annotated[annotation, declared.metadata["option"]], declared.default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
