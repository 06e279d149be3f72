"""Open and compile the model of a command, and choose its pulse."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import warn

import numpy as np

from pulse.dim import TDim
from pulse.errors import InputError, PulseWarning
from pulse.facts import is_sound_shape
from pulse.jit.registry import KERNELS
from pulse.loading.loaded_model import LoadedModel
from pulse.metadata import RATE_KEY, stated_rate_hz
from pulse.program.file.container import is_program_file
from pulse.program.file.stored_program import read_program
from pulse.program.machine.array_step import STEPPING
from pulse.program.program import Program
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.builtin.program import carried_program
from streaming.cli.chunk_options import parse_budget, parse_chunking, parse_constants, parse_pairs
from streaming.cli.module_import import read_module_name
from streaming.cli.options import ModelOptions, ProgramOptions
from streaming.cli.torch_module import load_module, refuse_module_options
from streaming.reports.opened_model import OpenedModel

if TYPE_CHECKING:
    from pulse.program.backends.registry import Prepare

DEFAULT_RATE_HZ = 16_000
"""The rate of a model that states none and gets no ``--rate``; reports call it assumed."""


def load_model(path: Path | None, options: ModelOptions) -> LoadedModel:
    """Load a model with its options, as every command does. Raises PulseError.

    A program is loaded without importing readers of models. A PyTorch module is imported by its name.
    """
    inputs = parse_inputs(options.inputs)
    constant = parse_constants(options)
    chunks = parse_chunking(options)
    limits = parse_budget(options)
    module = None if path is None else read_module_name(path)
    if module is not None:
        reading = {"inputs": inputs, "constants": constant, "budget": limits, "signature": options.signature}
        return load_module(module, options, chunks, {name: value or None for name, value in reading.items()})
    refuse_module_options(options, path)
    if path is not None and is_program_file(path):
        options_of_reading = inputs, constant, limits, options.signature
        return LoadedModel.of_program(
            read_program(path), options.keep, options.symbol, chunks, *options_of_reading
        )
    from pulse.api import load

    return load(
        source=path or model_path(),
        inputs=inputs,
        constants=constant,
        outputs=options.keep,
        symbol=options.symbol,
        chunking=chunks,
        ignore_value_info=options.ignore_value_info,
        budget=limits,
        signature=options.signature,
    )


def open_model(path: Path | None, options: ModelOptions) -> OpenedModel:
    """Load a model that streams, with its rate. Raises PulseError."""
    model = load_model(path, options)
    if not model.defines_pulse:
        model.typed_model.find_symbol(options.symbol)
    rate, origin = _rate(model, options.rate, builtin=path is None)
    return OpenedModel(model, rate, origin, options.pulse, {"max_context": options.max_context})


def open_or_carried(path: Path | None, options: ModelOptions, program_options: ProgramOptions) -> OpenedModel:
    """Open a model as ``open_model`` does, but the built-in one from the wheel's program, if the options match."""
    forms = {program_options.weights, program_options.activations}
    has_stored_form = program_options.backend == "numba" and forms <= {None, "f32"}
    if path is None and options == ModelOptions() and has_stored_form:
        program = carried_program()
        if program is not None:
            return OpenedModel(LoadedModel(program), SAMPLE_RATE_HZ, "builtin")
    return open_model(path, options)


def parse_inputs(texts: Sequence[str] | None) -> dict[str, str]:
    """Return ``["x=1,80,T,f32"]`` as a mapping. Raises InputError."""
    return parse_pairs("--input", texts, "a shape", "x=1,80,T,f32")


def _rate(model: LoadedModel, rate_hz: int | None, builtin: bool) -> tuple[int | None, str | None]:
    """Return the rate and its source; warn if ``rate_hz`` contradicts the model."""
    model_rate_hz, origin = (
        (SAMPLE_RATE_HZ, "builtin") if builtin else (_stated_rate(model, rate_hz), "model")
    )
    if rate_hz is None:
        if model_rate_hz is not None:
            return model_rate_hz, origin
        return (DEFAULT_RATE_HZ, "default") if takes_sound(model) else (None, None)
    if model_rate_hz is not None and model_rate_hz != rate_hz:
        who = "the built-in model" if builtin else f"{model.title}: by its metadata the model"
        warn(
            f"{who} is made for {model_rate_hz} Hz; --rate {rate_hz} would shift all frequencies: omit it",
            PulseWarning,
            stacklevel=3,
        )
    return rate_hz, "option"


def _stated_rate(model: LoadedModel, rate_hz: int | None) -> int | None:
    """Return the rate in the metadata; None if there is none. Raises InputError."""
    stated_hz, text = stated_rate_hz(model.metadata), model.metadata.get(RATE_KEY)
    if stated_hz is None and text is not None and rate_hz is None:
        raise InputError(
            f"{model.title}: its metadata has sample_rate {text!r}, which is not an integer; give --rate"
        )
    return stated_hz


def takes_sound(model: LoadedModel) -> bool:
    """Return whether all streaming inputs are f32 with one value per frame of the symbol; states do not count."""
    if model.defines_pulse:
        program = model.pulsify() if model.program is None else model.program
        ports = [port for port in program.inputs if port.streams]
        return bool(ports) and all(port.is_sound for port in ports)
    typed, symbol = model.typed_model, model.symbol
    stream = TDim.of(typed.find_symbol(symbol))
    facts = [fact for fact in typed.inputs.values() if any(dim.symbols for dim in fact.shape)]
    return bool(facts) and all(
        fact.dtype == np.float32 and stream in fact.shape and is_sound_shape(fact.shape) for fact in facts
    )


def compile_opened(opened: OpenedModel, options: ProgramOptions, live: bool = False) -> Program:
    """Compile a program, and what else a live run needs, with a progress bar the first time. Raises PulseError."""
    program = opened.compile(options.backend, options, kernel_preparation(live))
    return program.with_threads(options.threads)


def kernel_preparation(live: bool = False) -> "Prepare":
    """Return the preparation of kernels that commands use."""

    def prepare(kernels: Sequence[str]) -> None:
        if not live and all(entry.is_cached for entry in (*STEPPING, *(KERNELS[name] for name in kernels))):
            return
        from streaming.compilation.warming import LIVE, compile_in_parallel

        compile_in_parallel(*LIVE if live else ())(kernels)

    return prepare
