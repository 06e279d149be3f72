"""Graphs inside a node's attributes."""

from collections.abc import Callable, Mapping

from pulse.dim import SymbolScope
from pulse.facts import TypedFact
from pulse.infer.fact import InferenceFact
from pulse.infer.network import FileNetwork, ModelGraph
from pulse.onnx.proto import AttributeProto, GraphProto
from pulse.support.budget import current_spending
from pulse.support.record import record
from pulse.typed import TypedNetwork


@record(eq=False)
class BodyGraph:
    """A body that a node runs.

    proto      the graph in the file
    captures   names of values around the node that the body reads
    read       the body as a graph, from the facts of its inputs and captures
    """

    proto: GraphProto
    captures: tuple[str, ...]
    read: Callable[[GraphProto, Mapping[str, InferenceFact]], ModelGraph]

    @property
    def inputs(self) -> list[str]:
        """The names of its inputs."""
        return [value.name for value in self.proto.input]

    def to_typed(self, facts: Mapping[str, TypedFact], scope: SymbolScope, title: str) -> TypedNetwork:
        """Return the body as a model; inputs and captures with known values are constants in it.

        Raises LoadError: the file's bodies have too many nodes.
        """
        current_spending().take_nodes(nodes_inside(self.proto), title)
        input_facts = {
            name: InferenceFact(fact.dtype, fact.shape, fact.value) for name, fact in facts.items()
        }
        return FileNetwork(self.read(self.proto, input_facts), scope, title).analyse()


def nodes_inside(graph: GraphProto) -> int:
    """Return the nodes of a graph and of all bodies in it."""
    inner = (attribute.g for node in graph.node for attribute in node.attribute)
    return len(graph.node) + sum(nodes_inside(body) for body in inner if body.node)


def free_names(graph: GraphProto) -> tuple[str, ...]:
    """Return the names that a graph reads and does not define, bodies in it included."""
    names: dict[str, None] = {}
    defined = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    for node in graph.node:
        reads = [name for name in node.input if name]
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                reads += free_names(attribute.g)
        names.update(dict.fromkeys(name for name in reads if name not in defined))
        defined |= set(node.output)
    names.update(dict.fromkeys(value.name for value in graph.output if value.name not in defined))
    return tuple(names)
