"""The step of a pulsed model: all nodes in order, registers, inputs and outputs."""

import sys
from collections.abc import Collection, Sequence

from pulse.graph import OutletId
from pulse.program.lowering import Lowering
from pulse.program.step_builder import StepBuilder
from pulse.program.table.memory import Region, TensorView
from pulse.pulsify.network import PulsedGraph
from pulse.pulsify.registers import Register
from pulse.support.record import record


@record
class Step:
    """The memories and rows of a step, and its inputs and outputs; ``fetched``: other fetched wires."""

    builder: StepBuilder
    inputs: tuple[TensorView, ...]
    outputs: tuple[TensorView, ...]
    fetched: tuple[TensorView, ...]


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
    Raises     CompileError: some ops have no kernel
    """
    kept_wires = dict.fromkeys((*fetches, *(register.write for register in registers)))
    lowering = Lowering(graph, StepBuilder(), kept_wires=kept_wires.keys(), form=form, unchecked=unchecked)
    for register in registers:
        lowering.set_value(
            register.read, lowering.allocate_state(register.initial, range(register.initial.ndim))
        )
    order = lowering.find_groups(graph.order([*graph.outputs, *kept_wires, *checks]))
    order = _place_checks(graph, order, checks)
    lowering.lower([*(outlet.node for outlet in graph.inputs if outlet.node not in order), *order])
    results = _keep(lowering, dict.fromkeys((*graph.outputs, *kept_wires)))
    _write_registers(lowering, registers, results)
    return Step(
        lowering.builder,
        tuple(lowering.value(outlet) for outlet in graph.inputs),
        tuple(results[outlet] for outlet in graph.outputs),
        tuple(results[outlet] for outlet in fetches),
    )


def _place_checks(graph: PulsedGraph, order: Sequence[int], checks: Sequence[OutletId]) -> list[int]:
    """Reorder so that each check directly follows the wire it checks, which may then be overwritten."""
    checks_of: dict[int, list[int]] = {}
    ids = {outlet.node for outlet in checks}
    for node_id in ids:
        checks_of.setdefault(graph.nodes[node_id].inputs[0].node, []).append(node_id)
    other_nodes = (node_id for node_id in order if node_id not in ids)
    return [node_id for other in other_nodes for node_id in (other, *sorted(checks_of.get(other, [])))]


def _keep(lowering: Lowering, outlets: Collection[OutletId]) -> dict[OutletId, TensorView]:
    """Keep inputs alive from the start and outputs to the end, apart from buffers that shift after each pulse."""
    for outlet in lowering.graph.inputs:
        lowering.value(outlet).buffer.touch(-1)
    results: dict[OutletId, TensorView] = {}
    for outlet in outlets:
        lowering.begin(lowering.graph.label(outlet), "output")
        value = lowering.value(outlet)
        if value.buffer.region is Region.STATE:
            copy = lowering.allocate_temporary(value.shape, value.dtype, value.order)
            lowering.copy(value, copy)
            value = copy
        value.buffer.touch(sys.maxsize)  # the caller reads it after the last instruction
        results[outlet] = value
    return results


def _write_registers(
    lowering: Lowering, registers: Sequence[Register], results: dict[OutletId, TensorView]
) -> None:
    """Write the next values of the registers after all reads of the step."""
    for register in registers:
        if register.write != register.read:
            lowering.begin(register.name, "register")
            lowering.copy(results[register.write], lowering.value(register.read))
