"""pulse dump: a model as text or as a picture, at any stage."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from streaming.cli import options


class Stage(StrEnum):
    """The stages of a model, in their order."""

    LOAD = "load"
    TYPED = "typed"
    DECLUTTERED = "decluttered"
    PULSED = "pulsed"
    PROGRAM = "program"


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
) -> None:
    """Print a model at one of its stages.

    [bold]Examples[/bold]

      [cyan]pulse dump model.onnx --stage load[/cyan]                 the file's own nodes

      [cyan]pulse dump model.onnx --stage pulsed --pulse 160[/cyan]   with delays and windows

      [cyan]pulse dump model.onnx --stage decluttered --dot | dot -Tsvg -o model.svg[/cyan]
    """
    sys.stdout.write(_text(stage, dot, model, pulse, symbol, rate, inputs, max_context, backend))


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
) -> str:
    import pulse as pulse_package
    from pulse import dump as dumps
    from pulse.errors import InputError
    from streaming.builtin import model_path
    from streaming.cli.model import compile_model, open_model, parse_inputs

    show = dumps.dot if dot else dumps.text
    if stage in (Stage.LOAD, Stage.TYPED):
        loaded = pulse_package.load(model or model_path(), parse_inputs(inputs or ()))
        if stage is Stage.TYPED:
            typed = loaded.analyse()
            return show(typed.graph, f"{typed.title}, typed")
        return dumps.dot(loaded.graph, loaded.title) if dot else "\n".join(loaded.lines()) + "\n"
    opened = open_model(model, symbol, inputs, rate, max_context)
    if stage is Stage.DECLUTTERED:
        return show(opened.typed.graph, f"{opened.title}, decluttered")
    pulsed = opened.pulsed(pulse)
    if stage is Stage.PULSED:
        return show(pulsed.graph, f"{opened.title}, pulse {pulsed.pulse}")
    if dot:
        raise InputError("a program is a list, not a graph; leave out --dot")
    program = compile_model(pulsed, backend)
    listing = getattr(program, "listing", None)
    if listing is None:
        raise InputError(f"the {backend} backend has no instructions to list; use --backend numba")
    return "\n".join(listing()) + "\n"
