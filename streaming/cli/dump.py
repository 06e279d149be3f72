"""pulse dump: a model as text or as a picture, at any stage."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.cli import options

if TYPE_CHECKING:
    from pulse.pulsify.model import PulsedModel
    from pulse.typed import TypedModel
    from streaming.cli.model import Opened


class Stage(StrEnum):
    """The stages of a model, in their order."""

    LOAD = "load"
    TYPED = "typed"
    DECLUTTERED = "decluttered"
    PULSED = "pulsed"
    PROGRAM = "program"
    ACCOUNT = "account"


@options.takes_chunks
def dump(
    model: options.ModelPath = None,
    stage: Annotated[Stage, typer.Option("--stage", help="How far to go.")] = Stage.PULSED,
    dot: Annotated[bool, typer.Option("--dot", help="The language of Graphviz instead of text.")] = False,
    pulse: options.Pulse = None,
    symbol: options.SymbolName = None,
    rate: options.Rate = None,
    inputs: options.Inputs = None,
    max_context: options.MaxContext = None,
    backend: options.Backend = "numba",
    weights: options.Weights = "f32",
    json: options.AsJson = False,
    chunks: options.ChunkOptions = options.NO_CHUNKS,
) -> None:
    """Print a model at one of its stages, or what it costs.

    [bold]Examples[/bold]

      [cyan]pulse dump model.onnx --stage load[/cyan]                 the file's own nodes

      [cyan]pulse dump model.onnx --stage pulsed --pulse 160[/cyan]   with delays and windows

      [cyan]pulse dump model.onnx --stage decluttered --dot | dot -Tsvg -o model.svg[/cyan]

      [cyan]pulse dump model.onnx --stage account --rate 100[/cyan]   parameters, multiply-adds, memory
    """
    from pulse.errors import InputError
    from streaming.terminal import write_text

    if json and stage is not Stage.ACCOUNT:
        raise InputError("--json goes with --stage account; the other stages are text")
    if stage is Stage.ACCOUNT:
        opened = _opened(model, pulse, symbol, rate, inputs, max_context, chunks)
        write_text(_account(opened, pulse, backend, weights, dot, json))
        return
    write_text(_text(stage, dot, model, pulse, symbol, rate, inputs, max_context, backend, weights, chunks))


def _opened(
    model: options.ModelPath,
    pulse: options.Pulse,
    symbol: options.SymbolName,
    rate: options.Rate,
    inputs: options.Inputs,
    max_context: options.MaxContext,
    chunks: options.ChunkOptions,
) -> "Opened":
    from streaming.cli.model import open_model

    return open_model(model, symbol, inputs, rate, max_context, chunks, pulse)


def _account(
    opened: "Opened", pulse: options.Pulse, backend: str, weights: str, dot: bool, as_json: bool
) -> str:
    """What the model costs, with its pulses and its program where it has them."""
    from pulse.costs.counting import account
    from pulse.errors import CompileError, InputError, PulsifyError
    from streaming.cli.model import compile_model
    from streaming.terminal import json_text

    if dot:
        raise InputError("an account is a table, not a graph; leave out --dot")
    refused = ""
    try:
        made = account(compile_model(opened.pulsed(pulse), backend, weights), opened.rate_hz)
    except (PulsifyError, CompileError) as error:
        made, refused = account(opened.typed, opened.rate_hz), str(error)
    if as_json:
        return json_text({**made.as_dict(), "refused": refused or None}) + "\n"
    return "\n".join([*made.lines(), *(["", f"not streamed: {refused}"] if refused else [])]) + "\n"


def _totals(model: "PulsedModel | TypedModel", rate_hz: float | None = None) -> str:
    from pulse.costs.counting import account

    return "".join(f"{line}\n" for line in account(model, rate_hz).header())


def _text(
    stage: Stage,
    dot: bool,
    model: options.ModelPath,
    pulse: options.Pulse,
    symbol: options.SymbolName,
    rate: options.Rate,
    inputs: options.Inputs,
    max_context: options.MaxContext,
    backend: options.Backend,
    weights: options.Weights,
    chunks: options.ChunkOptions,
) -> str:
    import pulse as pulse_package
    from pulse import dump as dumps
    from pulse.errors import InputError
    from pulse.printable import printable
    from pulse.recipes.opening import is_recipe
    from streaming.builtin import model_path
    from streaming.cli.chunk_options import budget, constants
    from streaming.cli.model import compile_model, parse_inputs

    show = dumps.dot if dot else dumps.text
    if stage is Stage.TYPED and model is not None and is_recipe(model):
        typed = _opened(model, pulse, symbol, rate, inputs, max_context, chunks).model.original
        shown = show(typed.graph, f"{typed.title}, typed")
        return shown if dot else _totals(typed) + shown
    if stage in (Stage.LOAD, Stage.TYPED):
        loaded = pulse_package.load(
            model or model_path(),
            parse_inputs(inputs),
            constants(chunks),
            chunks.ignore_value_info,
            budget(chunks),
        )
        if stage is Stage.TYPED:
            typed = loaded.analyse()
            shown = show(typed.graph, f"{typed.title}, typed")
            return shown if dot else _totals(typed) + shown
        return loaded.dot() if dot else "\n".join(loaded.lines()) + "\n"
    opened = _opened(model, pulse, symbol, rate, inputs, max_context, chunks)
    if stage is Stage.DECLUTTERED:
        shown = show(opened.typed.graph, f"{opened.title}, decluttered")
        return shown if dot else _totals(opened.typed, opened.rate_hz) + shown
    pulsed = opened.pulsed(pulse)
    if stage is Stage.PULSED:
        shown = show(pulsed.graph, f"{opened.title}, pulse {pulsed.pulse}")
        return (
            shown
            if dot
            else _totals(pulsed, opened.rate_hz)
            + shown
            + "".join(f"{what}: {text}\n" for what, text in opened.chunk_pairs(pulsed))
        )
    if dot:
        raise InputError("a program is a list, not a graph; leave out --dot")
    program = compile_model(pulsed, backend, weights)
    listing = getattr(program, "listing", None)
    if listing is None:
        raise InputError(f"the {backend} backend has no instructions to list; use --backend numba")
    return "\n".join(map(printable, listing())) + "\n"
