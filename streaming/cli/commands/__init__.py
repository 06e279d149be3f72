"""The group of all commands. A command is imported, and its options declared, on demand."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from streaming.cli.console import (
    BAD_USE,
    CHECK_FAILED,
    INTERRUPTED_EXIT_CODE,
    errors_as_json,
    fail,
    plain_warnings,
)
from streaming.cli.help import lay_out
from streaming.cli.signals import watch_interrupts
from streaming.cli.standard_output import lend_stdout

COMMANDS = (
    "run",
    "convert",
    "check",
    "bench",
    "compile",
    "build",
    "serve",
    "fleet",
    "dump",
    "recipe",
    "warm",
    "report",
    "devices",
)
"""The commands in the order of the help; each is a function in a module of its name here."""
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""The error for a wrong option."""


class Command(TyperCommand):
    """A command with its options. Texts, paths and defaults bypass typer's converters, whose import takes 0.1 s."""

    def __init__(self, *others: Any, **keywords: Any) -> None:
        super().__init__(*others, **keywords)
        for param in self.params:
            _leave_default(_hide_type(param))

    def get_help_option(self, ctx: Any) -> Any:
        return _adapt_help(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with lay_out(self):
            super().format_help(ctx, formatter)


def _hide_type(param: Any) -> Any:
    """Hide Python types in the help: an option has a metavar, flags and arguments are self-explanatory."""
    if param is None:
        return None
    if param.param_type_name == "argument":
        param.display_type_rich = _empty_type
    elif getattr(param, "is_flag", False):
        param.metavar = ""
    return param


def _empty_type(ctx: Any) -> None:
    """Omit the type of an argument in the help."""


def _leave_default(param: Any) -> Any:
    """Make a parameter keep its default, text or path unchanged; a repeatable one without values is empty."""
    if param is None or param.required or param.nargs != 1:
        return param
    process, is_multiple = param.process_value, getattr(param, "multiple", False)
    annotation = getattr(getattr(param, "type_descriptor", None), "annotation", None)

    def convert(ctx: Any, value: Any) -> Any:
        if is_multiple and not value:
            result: Any = ()
        elif is_multiple and annotation == list[str]:
            result = list(value)
        elif not is_multiple and value is param.default:
            result = value
        elif isinstance(value, str) and annotation in (str, Path):
            result = annotation(value)
        else:
            return process(ctx, value)
        return result if param.callback is None else param.callback(ctx, param, result)

    param.process_value = convert
    return param


def _adapt_help(param: Any) -> Any:
    """Adapt the help option, which is the same at each call, once."""
    is_adapted = param is None or "process_value" in vars(param)
    return param if is_adapted else _leave_default(_hide_type(param))


@cache
def _command(name: str) -> TyperCommand:
    """Create the command of that name with its options."""
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, cls=Command)(getattr(import_module(f"{__name__}.{name}"), name))
    command: Any = typer.main.get_command(alone)
    return command


class _AllCommands(Mapping[str, TyperCommand]):
    """Name -> command."""

    def __getitem__(self, name: str) -> TyperCommand:
        if name not in COMMANDS:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Commands(TyperGroup):
    """Reports errors that a user can cause: one line on stderr, JSON on stdout if requested, and an exit code."""

    def __init__(self, *others: Any, **keywords: Any) -> None:
        super().__init__(*others, **keywords)
        self.commands: Any = _AllCommands()
        for param in self.params:
            _hide_type(param)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_help_option(self, ctx: Any) -> Any:
        return _adapt_help(super().get_help_option(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        with lay_out(self):
            super().format_help(ctx, formatter)

    def main(self, args: Sequence[str] | None = None, *others: Any, **keywords: Any) -> Any:
        try:
            return self._main(args, *others, **keywords)
        except OSError as error:  # from output printed before a command is invoked
            fail(error, f"standard output: {error.strerror}")
            sys.exit(BAD_USE)

    def _main(self, args: Sequence[str] | None, *others: Any, **keywords: Any) -> Any:
        if "--json" not in (sys.argv[1:] if args is None else args):
            return super().main(args, *others, **keywords)
        keywords["standalone_mode"] = False
        with errors_as_json():
            try:
                sys.exit(super().main(args, *others, **keywords))
            except USAGE_ERROR as error:
                fail(error, error.format_message())
                sys.exit(BAD_USE)

    def invoke(self, ctx: Any) -> Any:
        with watch_interrupts() as interrupts, plain_warnings(), lend_stdout():
            return self._invoke(ctx, interrupts)

    def _invoke(self, ctx: Any, interrupts: list[int]) -> Any:
        try:
            result = super().invoke(ctx)
            _flush_stdout()
            return result
        except KeyboardInterrupt:
            self._exit_interrupted()
        except (OSError, MemoryError) as error:
            if interrupts:
                self._exit_interrupted()
            name = getattr(error, "filename", None)
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            fail(error, f"{name}: {reason}" if name else reason)
            raise typer.Exit(BAD_USE) from None
        except Exception as error:
            from pulse.errors import DivergenceError, PulseError

            if interrupts:
                self._exit_interrupted()
            if not isinstance(error, PulseError):
                raise
            fail(error, str(error))
            raise typer.Exit(CHECK_FAILED if isinstance(error, DivergenceError) else BAD_USE) from None

    def _exit_interrupted(self) -> NoReturn:
        fail(KeyboardInterrupt(), "interrupted; only complete results are written")
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None


def _flush_stdout() -> None:
    """Write what is left. Raises InputError: standard output cannot be written."""
    from pulse.errors import InputError, file_errors

    with file_errors("standard output", "written", InputError):
        sys.stdout.flush()


app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


def _print_version(requested: bool) -> None:
    if requested:
        from pulse.version import __version__

        typer.echo(f"pulse {__version__}")
        raise typer.Exit


@app.callback()
def pulse(
    version: Annotated[
        bool,
        typer.Option("--version", "-v", callback=_print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Runs offline neural audio models on live audio, pulse by pulse, with exact results.

    Try it: pulse run denoises a built-in recording into denoised.wav.

    With your own model:
      pulse run model.onnx --live                   microphone -> your model -> loudspeaker
      pulse run model.onnx in.wav out.wav           process a file, and measure each pulse
      pulse convert model.onnx --pulse 160          its pulsed form: delay, buffers, nodes; -o saves it
      pulse check model.onnx --pulse 160            proof that the stream equals the offline model
      pulse bench model.onnx --pulse 160            times of a step and its parts
      pulse recipe model.onnx -o recipe.toml        for spectra or features: propose a recipe
      pulse run recipe.toml in.wav out.wav          run a model by its recipe
      ffmpeg … | pulse run model.onnx - - | aplay   audio through pipes, without waiting for the end
      pulse compile model.onnx -o model.pulse       a program file, which starts at once
      pulse build model.onnx -o out                 a library for C and C++, a plug-in, a web page
      pulse dump model.onnx                         its nodes at any stage

    Servers, and this machine:
      pulse serve                                   a streaming server and its web page
      pulse fleet deploy fleet.toml                 servers on several machines, with Ray
      pulse devices                                 audio devices for --live
      pulse report out.jsonl                        report on a live run, from its --stats file
      pulse warm                                    compile all kernels now, once on this machine

    Exit codes: 0 success, 1 a check failed, 2 usage or input error, 3 nothing was proved. With --json, errors are JSON.
    """
