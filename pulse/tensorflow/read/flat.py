"""A graph of nodes by name, and what of it is needed."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from pulse.errors import LoadError
from pulse.tensorflow.graph_node import GraphNode, NodeOutput


class FlatGraph:
    """Nodes by name, in the order of the file."""

    def __init__(self, nodes: Iterable[GraphNode], title: str) -> None:
        self.title = title
        self.nodes = {node.name: node for node in nodes}

    def __iter__(self) -> Iterator[GraphNode]:
        return iter(self.nodes.values())

    def node(self, name: str, reader: str) -> GraphNode:
        """Return a node. Raises LoadError: there is none of this name."""
        node = self.nodes.get(name)
        if node is None:
            raise LoadError(f"{self.title}: {reader} reads {name!r}, but no node has this name")
        return node

    def source_of(self, tensor: NodeOutput) -> NodeOutput:
        """Return the tensor of which a tensor is a copy (Identity), or itself."""
        for _ in range(len(self.nodes)):
            node = self.nodes.get(tensor.node)
            if node is None or node.op_type != "Identity" or not node.inputs:
                break
            tensor = node.inputs[0]
        return tensor

    def find_needed(
        self, names: Iterable[str], fed: Collection[NodeOutput] = (), controls: bool = True
    ) -> dict[str, GraphNode]:
        """Return the nodes that some nodes need, in the order of the file, except those that only fed tensors need.

        controls   also by control edges
        Raises     LoadError: a node reads one that there is not
        """
        needed: dict[str, GraphNode] = {}
        stack = [(name, "the request") for name in names]
        while stack:
            name, reader = stack.pop()
            if name in needed:
                continue
            node = needed[name] = self.node(name, reader)
            stack += [(tensor.node, name) for tensor in node.inputs if tensor not in fed]
            if controls:
                stack += [(control, name) for control in node.controls]
        return {name: needed[name] for name in self.nodes if name in needed}


def nodes_before(
    nodes: Mapping[str, GraphNode], node: GraphNode, until: Collection[str] = ()
) -> Iterator[GraphNode]:
    """Yield the nodes that have to run before a node; none of the operators in ``until``, nor what only these need."""
    stack, visited = [*node.predecessors], set[str]()
    while stack:
        name = stack.pop()
        before = nodes.get(name)
        if name not in visited and before is not None and before.op_type not in until:
            visited.add(name)
            stack += before.predecessors
            yield before


def sort_topologically(
    nodes: dict[str, GraphNode], after: dict[str, set[str]], title: str
) -> list[GraphNode]:
    """Return the nodes in topological order: each after the nodes that ``after`` lists for it, otherwise as given.

    Raises LoadError: there is a cycle
    """
    waiting = {name: {other for other in after.get(name, ()) if other in nodes} for name in nodes}
    indices = {name: index for index, name in enumerate(nodes)}
    result: list[GraphNode] = []
    state: dict[str, int] = {}
    for first in nodes:
        stack = [(first, iter(sorted(waiting[first], key=indices.__getitem__)))]
        if first in state:
            continue
        state[first] = 1
        while stack:
            name, rest = stack[-1]
            other = next(rest, None)
            if other is None:
                state[name] = 2
                result.append(nodes[name])
                stack.pop()
            elif other not in state:
                state[other] = 1
                stack.append((other, iter(sorted(waiting[other], key=indices.__getitem__))))
            elif state[other] == 1:
                raise LoadError(
                    f"{title}: {other} ({nodes[other].op_type}) needs its own result; export the model again"
                )
    return result
