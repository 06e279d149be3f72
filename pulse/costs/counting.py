"""The computation of a model's cost report."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from pulse.costs.cost_report import CostReport, NodeCost, ProgramCost, PulseCost
from pulse.errors import InputError
from pulse.facts import Array, is_symbolic
from pulse.loading.load import load
from pulse.metadata import stated_rate_hz
from pulse.ops.source import Const, Source
from pulse.ops.time import Delay
from pulse.ops.work import Work, graph_work
from pulse.program.program import Program
from pulse.pulsify.network import PulsedNetwork
from pulse.typed import TypedGraph, TypedNetwork

if TYPE_CHECKING:
    from pulse.loading.load import Loadable


def cost_report(model: "Loadable", rate_hz: float | None = None) -> CostReport:
    """Return the cost of a model, which is decluttered if it is loaded.

    The cost of a pulsed model includes its pulses, that of a program its memory.

    model    whatever ``pulse.load`` takes or returns
    rate_hz  frames of the symbol per second; ``sample_rate`` of the file's metadata if none is given
    Raises   PulseError: the model cannot be read
    """
    if isinstance(model, Program):
        return replace(cost_report(model.network, rate_hz), program_cost=_count_program(model))
    if isinstance(model, PulsedNetwork):
        return replace(cost_report(model.typed, rate_hz), symbol=model.symbol, pulse_cost=_count_pulse(model))
    if isinstance(model, TypedNetwork):
        return _typed_report(model, rate_hz)
    return _typed_report(load(model).decluttered_model, rate_hz)


def _typed_report(model: TypedNetwork, rate_hz: float | None) -> CostReport:
    counted: set[int] = set()
    rows: list[NodeCost] = []
    total, parameters = Work(), 0
    uncounted: dict[str, None] = {}
    for node_id in model.graph.order():
        node = model.graph.nodes[node_id]
        if isinstance(node.op, Source | Const):
            continue
        work = node.op.work(model.graph.input_facts(node), [outlet.fact for outlet in node.outputs])
        if work is None:
            uncounted.setdefault(node.op.name)
        else:
            total += work
        node_parameters = sum(
            value.size
            for value in _drop_counted(_constants_read(model.graph, node_id), counted)
            if value.dtype.kind == "f"
        )
        shapes = "; ".join(str(outlet.fact) for outlet in node.outputs)
        rows.append(NodeCost(node.name, node.op.name, shapes, node_parameters, work))
        parameters += node_parameters
    constants = list(_drop_counted(_stored_constants(model.graph), set()))
    return CostReport(
        title=model.title,
        symbol=model.symbols[0] if len(model.symbols) == 1 else None,
        rate_hz=_rate(model) if rate_hz is None else rate_hz,
        rows=tuple(rows),
        parameters=parameters,
        weight_bytes=sum(value.nbytes for value in constants),
        work=total,
        uncounted=tuple(uncounted),
    )


def _rate(model: TypedNetwork) -> float | None:
    stated_hz = stated_rate_hz(model.metadata)
    return None if stated_hz is None else float(stated_hz)


def _constants_read(graph: TypedGraph, node_id: int) -> Iterator[Array]:
    """Yield the constants that a node reads, and those in its body."""
    node = graph.nodes[node_id]
    for outlet in node.inputs:
        op = graph.node(outlet).op
        if isinstance(op, Const) and not is_symbolic(op.value):
            yield op.value
    for body in node.op.bodies:
        yield from _stored_constants(body)


def _stored_constants(graph: TypedGraph) -> Iterator[Array]:
    """Yield the constants that the outputs of a graph need, bodies included."""
    for node_id in graph.order():
        op = graph.nodes[node_id].op
        if isinstance(op, Const) and not is_symbolic(op.value):
            yield op.value
        for body in op.bodies:
            yield from _stored_constants(body)


def _drop_counted(values: Iterator[Array], counted: set[int]) -> Iterator[Array]:
    for value in values:
        if id(value) not in counted:
            counted.add(id(value))
            yield value


def _count_pulse(model: PulsedNetwork) -> PulseCost:
    buffers = model.buffers()
    delays = sum(size for _, op, size in buffers if isinstance(op, Delay))
    return PulseCost(model.pulse, graph_work(model.graph), delays, sum(size for _, _, size in buffers))


def _count_program(program: Program) -> ProgramCost:
    from pulse.program.native.native_program import NativeProgram

    if not isinstance(program, NativeProgram):
        raise InputError(f"the {program.backend} backend has no instructions to count; use numba")
    return ProgramCost(
        len(program.instructions), program.weights.size, program.state_bytes, program.arena_bytes
    )
