"""Graphs inside a node's attributes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush

from pulse.dim import SymbolScope
from pulse.facts import TypedFact
from pulse.infer.fact import InferenceFact
from pulse.infer.network import FileNetwork, InferenceGraph
from pulse.onnx.proto import AttributeProto, GraphProto, NodeProto
from pulse.support.budget import current_spending
from pulse.support.record import record
from pulse.typed import TypedNetwork

_WITH_BODIES = ("If", "Loop", "Scan", "SequenceMap")
"""The operators whose attributes have bodies; in the order of a file, only these are searched for them."""


@record(eq=False)
class BodyGraph:
    """A body that a node runs.

    proto      the graph in the file
    captures   names of values around the node that the body reads
    read       the body as a graph, from the facts of its inputs and captures
    """

    proto: GraphProto
    captures: tuple[str, ...]
    read: Callable[[GraphProto, Mapping[str, InferenceFact]], InferenceGraph]

    @property
    def inputs(self) -> list[str]:
        """The names of its inputs."""
        return [value.name for value in self.proto.input]

    def to_typed(self, facts: Mapping[str, TypedFact], scope: SymbolScope, title: str) -> TypedNetwork:
        """Return the body as a model; inputs and captures with known values are constants in it.

        Raises LoadError: the file's bodies have too many nodes.
        """
        current_spending().take_nodes(nodes_inside(self.proto), title)
        input_facts = {name: InferenceFact.of(fact) for name, fact in facts.items()}
        return FileNetwork(self.read(self.proto, input_facts), scope, title).analyse()


def graphs_of(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph and all bodies in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from graphs_of(attribute.g)


def nodes_inside(graph: GraphProto) -> int:
    """Return the nodes of a graph and of all bodies in it."""
    return sum(len(part.node) for part in graphs_of(graph))


def free_names(graph: GraphProto) -> tuple[str, ...]:
    """Return the names that a graph reads and does not define, bodies in it included."""
    defined = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    defined.update(name for node in graph.node for name in node.output)
    names = [name for node in graph.node for name in _names_read(node)]
    names += [value.name for value in graph.output]
    return tuple(dict.fromkeys(name for name in names if name not in defined))


def _names_read(node: NodeProto) -> list[str]:
    """Return the names that a node and its bodies read."""
    names = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            names += free_names(attribute.g)
    return names


def nodes_in_order(graph: GraphProto, known: Iterable[str]) -> Sequence[NodeProto]:
    """Return the nodes of a graph, each after those whose results it reads; nodes of a circle come last.

    ONNX asks files for this order, but onnxruntime reads any, and its quantiser writes bodies in another.

    known  the names that are defined before any node
    """
    nodes = list(graph.node)
    if _is_in_order(nodes, known):
        return nodes
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    reads = [{makers[name] for name in _names_read(node) if name in makers} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for index, sources in enumerate(reads):
        for maker in sources:
            readers[maker].append(index)
    waiting = [len(sources) for sources in reads]
    ready = [index for index, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        index = heappop(ready)
        order.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heappush(ready, reader)
    in_circles = (index for index, count in enumerate(waiting) if count)
    return [nodes[index] for index in (*order, *in_circles)]


def _is_in_order(nodes: Sequence[NodeProto], known: Iterable[str]) -> bool:
    defined = {"", *known}
    for node in nodes:
        names = _names_read(node) if node.op_type in _WITH_BODIES else node.input
        if not defined.issuperset(names):
            return False
        defined.update(node.output)
    return True
