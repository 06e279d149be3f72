"""The step of a pulsed model: all nodes in order, registers, inputs and outputs."""

import sys
from collections.abc import Collection, Sequence

from pulse.graph import OutletId
from pulse.program.lower.recurrent_siblings import side_by_side
from pulse.program.lowering import Lowering
from pulse.program.step_builder import StepBuilder
from pulse.program.table.memory import Region, Value
from pulse.pulsify.network import PulsedGraph
from pulse.pulsify.registers import Register
from pulse.support.record import record


@record
class Step:
    """The memories and rows of a step, and its inputs and outputs; ``fetched``: other fetched wires."""

    builder: StepBuilder
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    fetched: tuple[Value, ...]


def lower_step(
    graph: PulsedGraph,
    *,
    registers: Sequence[Register] = (),
    fetches: Sequence[OutletId] = (),
    form: str = "f32",
    checks: Sequence[OutletId] = (),
    unchecked: Collection[int] = (),
) -> Step:
    """Lower every node.

    form       the form of stored weights; see ``pulse.program.weights``
    checks     counters of faults, computed in addition to the outputs
    unchecked  nodes whose bodies are not checked for faults
    Raises     CompileError listing every op without a kernel
    """
    kept_wires = dict.fromkeys((*fetches, *(register.write for register in registers)))
    order, siblings = side_by_side(graph, graph.order([*graph.outputs, *kept_wires, *checks]))
    cx = Lowering(
        graph, StepBuilder(), kept=kept_wires.keys(), form=form, siblings=siblings, unchecked=unchecked
    )
    for register in registers:
        cx.set_value(register.read, cx.allocate_state(register.initial, range(register.initial.ndim)))
    order = _checks_near(graph, order, checks)
    cx.lower([*(outlet.node for outlet in graph.inputs if outlet.node not in order), *order])
    results = _keep(cx, dict.fromkeys((*graph.outputs, *kept_wires)))
    _write_registers(cx, registers, results)
    return Step(
        cx.builder,
        tuple(cx.values[outlet] for outlet in graph.inputs),
        tuple(results[outlet] for outlet in graph.outputs),
        tuple(results[outlet] for outlet in fetches),
    )


def _checks_near(graph: PulsedGraph, order: Sequence[int], checks: Sequence[OutletId]) -> list[int]:
    """Reorder so that each check directly follows the wire it checks, which may then be overwritten."""
    behind: dict[int, list[int]] = {}
    ids = {outlet.node for outlet in checks}
    for node_id in ids:
        behind.setdefault(graph.nodes[node_id].inputs[0].node, []).append(node_id)
    rest = (node_id for node_id in order if node_id not in ids)
    return [each for node_id in rest for each in (node_id, *sorted(behind.get(node_id, [])))]


def _keep(cx: Lowering, outlets: Collection[OutletId]) -> dict[OutletId, Value]:
    """Keep inputs alive from the start and outputs to the end, apart from buffers that shift after each pulse."""
    for outlet in cx.graph.inputs:
        cx.values[outlet].buffer.touch(-1)
    results: dict[OutletId, Value] = {}
    for outlet in outlets:
        cx.node, cx.op = cx.graph.label(outlet), "output"
        value = cx.value(outlet)
        if value.buffer.region is Region.STATE:
            copy = cx.temporary(value.shape, value.dtype, value.order)
            cx.copy(value, copy)
            value = copy
        value.buffer.touch(sys.maxsize)  # the caller reads it after the last instruction
        results[outlet] = value
    return results


def _write_registers(cx: Lowering, registers: Sequence[Register], results: dict[OutletId, Value]) -> None:
    """Write the next values of the registers after all reads of the step."""
    for register in registers:
        if register.write != register.read:
            cx.node, cx.op = register.name, "register"
            cx.copy(results[register.write], cx.values[register.read])
