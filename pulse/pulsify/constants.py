"""Copy typed nodes of constant shape into a pulsed graph."""

from collections.abc import Mapping

from pulse.errors import PulsifyError
from pulse.facts import PulsedFact, TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.pulsify.network import PulsedGraph
from pulse.typed import TypedGraph


def transfer_constants(
    source: TypedGraph,
    target: PulsedGraph,
    wires: Mapping[OutletId, OutletId] | None = None,
    prefix: str = "",
) -> dict[OutletId, OutletId]:
    """Add a graph's inputs and the ancestors of its outputs to a pulsed graph; return source outlet -> its wire there.

    wires   source outlets that wires of the target replace; their other ancestors are left out
    prefix  prepended to the names of the new nodes
    Raises  PulsifyError: a shape or a value depends on a symbol
    """
    mapping = dict(wires or {})
    order = [*(outlet.node for outlet in source.inputs), *source.order()]
    for node_id in dict.fromkeys(order):
        if OutletId(node_id) in mapping:
            continue
        node = source.nodes[node_id]
        facts = [_constant(node.name, outlet.fact) for outlet in node.outputs]
        inputs = [mapping[outlet] for outlet in node.inputs]
        mapping.update(zip(node.wires, target.add(f"{prefix}{node.name}", node.op, inputs, facts)))
    return mapping


def _constant(name: str, fact: TypedFact) -> PulsedFact:
    symbolic = fact.value is not None and is_symbolic(fact.value)
    if symbolic or not all(dim.is_const for dim in fact.shape):
        raise PulsifyError(f"{name} is {fact}, not of constant shape; give every dim of the inputs a number")
    return PulsedFact(fact.dtype, fact.shape, fact.value)
