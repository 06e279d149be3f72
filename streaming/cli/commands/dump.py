"""pulse dump: a model as text or as a picture, at any stage."""

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from streaming.cli import options
from streaming.cli.options import ModelOptions, ProgramOptions, ReportOptions, option, takes_groups

if TYPE_CHECKING:
    from pulse.costs.cost_report import CostReport
    from pulse.graph import Graph
    from pulse.loading.loaded_model import LoadedModel
    from pulse.models import PulsedModel, TypedModel
    from pulse.program.native.kernel_program import KernelProgram
    from streaming.opening.opened_model import OpenedModel


class DumpStage(StrEnum):
    """The stages of a model, in order."""

    LOAD = "load"
    TYPED = "typed"
    DECLUTTERED = "decluttered"
    PULSED = "pulsed"
    PROGRAM = "program"
    COSTS = "costs"


@takes_groups
def dump(
    model: options.ModelPath = None,
    stage: str = option(
        "Stage to print: load, typed, decluttered, pulsed, program or costs.",
        metavar="STAGE",
        default="pulsed",
    ),
    dot: bool = option("Print Graphviz DOT instead of text.", "--dot", default=False),
    match: str | None = option(
        "Print the parts that match a query, such as Conv->BatchNorm?->Relu.", metavar="QUERY"
    ),
    *,
    model_options: ModelOptions,
    program_options: ProgramOptions,
    report_options: ReportOptions,
) -> None:
    """Print a model at one of its stages, or its cost.

    Examples:
      pulse dump model.onnx --stage load                        the nodes of the file
      pulse dump model.onnx --stage pulsed --pulse 160          with delays and windows
      pulse dump model.onnx --stage decluttered --dot | dot -Tsvg -o model.svg
      pulse dump model.onnx --stage program --threads 2         with the parts of long rows
      pulse dump model.onnx --stage costs --rate 100            parameters, multiply-adds, memory
      pulse dump model.onnx --stage load --match "Conv->Relu"   the parts that match a query
    """
    from pulse.errors import InputError
    from pulse.support.naming import require_name
    from pulse.support.wording import spell
    from streaming.cli.model_opening import load_model, open_model
    from streaming.terminal.output import write_text

    stage = DumpStage(require_name("stage", stage, tuple(DumpStage), InputError, spell("stage")))
    if report_options != ReportOptions() and stage is not DumpStage.COSTS:
        raise InputError("--json and --markdown go with --stage costs; the other stages are text")
    if match is not None and (dot or stage in (DumpStage.PROGRAM, DumpStage.COSTS)):
        raise InputError("--match searches nodes of a graph: omit --dot, and --stage program and costs")
    if stage in (DumpStage.LOAD, DumpStage.TYPED):
        loaded = load_model(model, model_options)
        if match is None:
            write_text(_read(stage, loaded, dot))
            return
        network = loaded.model if stage is DumpStage.LOAD else _typed_as_read(loaded)
        write_text(_matches(match, network.graph))
        return
    opened = open_model(model, model_options)
    if match is not None:
        network = opened.decluttered_model if stage is DumpStage.DECLUTTERED else opened.pulsify()
        write_text(_matches(match, network.graph))
        return
    if stage is not DumpStage.COSTS:
        write_text(_text(stage, opened, program_options, dot))
        return
    if dot:
        raise InputError("the costs are a table, not a graph; omit --dot")
    report_options.print(_costs(opened, program_options))


def _costs(opened: "OpenedModel", program_options: ProgramOptions) -> "CostReport":
    """Compute the cost of the model, with its pulses and its program if it has them."""
    from pulse.costs.counting import cost_report
    from pulse.errors import CompileError, PulsifyError
    from streaming.cli.model_opening import compile_opened

    try:
        program = compile_opened(opened, program_options)
        return cost_report(program, opened.rate_hz)
    except (PulsifyError, CompileError) as error:
        return replace(cost_report(opened.decluttered_model, opened.rate_hz), refused=str(error))


def _totals(model: "PulsedModel | TypedModel", rate_hz: float | None = None) -> str:
    from pulse.costs.counting import cost_report

    return cost_report(model, rate_hz).totals().text() + "\n"


def _matches(query: str, graph: "Graph[Any, Any]") -> str:
    """List the parts of a graph that match a query, one per line."""
    from pulse.text.matching import matches_text

    return matches_text(graph, query)


def _typed_as_read(loaded: "LoadedModel") -> "TypedModel":
    """Return the typed model of the file alone; for a model of chunks, one call."""
    from pulse.models import Model

    return loaded.source_model.analyse() if isinstance(loaded.source_model, Model) else loaded.analyse()


def _read(stage: DumpStage, loaded: "LoadedModel", dot: bool) -> str:
    """Show a model as read: its own nodes, or its typed ones; for a model of chunks, one call."""
    from pulse.text import dump as dumps

    if stage is DumpStage.LOAD:
        model = loaded.model
        return model.dot() if dot else "\n".join(model.lines()) + "\n"
    typed = _typed_as_read(loaded)
    text = (dumps.dot if dot else dumps.text)(typed.graph, f"{typed.title}, typed")
    return text if dot else _totals(typed) + text


def _text(stage: DumpStage, opened: "OpenedModel", program_options: ProgramOptions, dot: bool) -> str:
    """Show a model at one of the stages towards a program."""
    from pulse.errors import InputError
    from pulse.program.native.kernel_program import KernelProgram
    from pulse.support.printable import printable
    from pulse.text import dump as dumps
    from streaming.cli.model_opening import compile_opened

    show = dumps.dot if dot else dumps.text
    if stage is DumpStage.DECLUTTERED:
        drawn_graph = show(opened.decluttered_model.graph, f"{opened.title}, decluttered")
        return drawn_graph if dot else _totals(opened.decluttered_model, opened.rate_hz) + drawn_graph
    if stage is DumpStage.PULSED:
        pulsed = opened.pulsify()
        drawn_graph = show(pulsed.graph, f"{opened.title}, pulse {pulsed.pulse}")
        detected = "".join(f"{subject}: {text}\n" for subject, text in opened.model.detections())
        return drawn_graph if dot else _totals(pulsed, opened.rate_hz) + drawn_graph + detected
    if dot:
        raise InputError("a program is a list, not a graph; omit --dot")
    program = compile_opened(opened, program_options)
    if not isinstance(program, KernelProgram):
        raise InputError(
            f"the {program_options.backend} backend has no instructions to list; use --backend numba"
        )
    return "\n".join(map(printable, (*program.listing(), _lanes_text(program)))) + "\n"


def _lanes_text(program: "KernelProgram") -> str:
    """Describe whether lanes share one memory, which makes their steps cheaper."""
    reason = program.separate_lanes_reason
    if reason is None:
        return "lanes (spawn_many): groups of 16 share one memory"
    return f"lanes (spawn_many): each has its own memory: {reason}"
