"""Open and compile the model of a command as its options say."""

from pathlib import Path
from typing import TYPE_CHECKING

from pulse.loading.loaded_model import LoadedModel
from pulse.program.program import Program
from streaming.builtin.program import find_packaged_program
from streaming.cli.chunk_options import parse_budget, parse_chunking, parse_constants, parse_inputs
from streaming.cli.module_options import parse_module_options
from streaming.cli.options import ModelOptions, ProgramOptions
from streaming.opening.opened_model import OpenedModel
from streaming.opening.source import load_source

if TYPE_CHECKING:
    from pulse.pulsify.driver import PulsifyOptions


def load_model(path: Path | None, options: ModelOptions) -> LoadedModel:
    """Load a model with its options, as every command does.

    Raises PulseError: an option is not valid, or the model cannot be read
    """
    return load_source(
        path,
        parse_module_options(path, options),
        outputs=options.keep,
        symbol=options.symbol,
        chunking=parse_chunking(options),
        ignore_value_info=options.ignore_value_info,
        inputs=parse_inputs(options) or None,
        constants=parse_constants(options) or None,
        budget=parse_budget(options) or None,
        signature=options.signature,
    )


def open_model(path: Path | None, options: ModelOptions, max_channels: int = 1) -> OpenedModel:
    """Load a model that streams, with its rate; ``max_channels`` as in ``OpenedModel.of``.

    Raises PulseError: as ``load_model``, or it does not stream, or has no valid rate
    """
    model = load_model(path, options)
    pulsify_options: PulsifyOptions = {"max_context": options.max_context}
    return OpenedModel.of(
        model, options.rate, options.pulse, pulsify_options, builtin=path is None, max_channels=max_channels
    )


def open_model_or_packaged(
    path: Path | None, options: ModelOptions, program_options: ProgramOptions, max_channels: int = 1
) -> OpenedModel:
    """Open a model as ``open_model`` does, but the built-in one from the wheel's program, if the options match."""
    forms = {program_options.weights, program_options.activations}
    has_stored_form = program_options.backend == "numba" and forms <= {None, "f32"}
    if path is None and options == ModelOptions() and has_stored_form:
        program = find_packaged_program()
        if program is not None:
            return OpenedModel.of(LoadedModel(program), builtin=True)
    return open_model(path, options, max_channels)


def compile_opened(opened: OpenedModel, options: ProgramOptions, live: bool = False) -> Program:
    """Compile a program, and what else a live run needs.

    Raises PulseError: the backend does not run it with these options
    """
    return opened.compile(options.backend, rounding=options, live=live).with_threads(options.threads)
