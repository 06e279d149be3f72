"""Common subexpression elimination: equal ops of equal inputs become one node."""

from collections.abc import Hashable
from weakref import WeakKeyDictionary

from pulse.declutter.rewrite import Rewrite
from pulse.facts import Array, is_symbolic
from pulse.ops.op import Op
from pulse.ops.source import Const, Source
from pulse.patch import Patch
from pulse.support.equal_arrays import EqualArrays
from pulse.typed import TypedGraph, TypedNode


class _ConstantIndex:
    """The constants of a graph by their content. Nodes are only ever appended, so it reads each once."""

    def __init__(self) -> None:
        self._node_count = 0
        self._tensors = EqualArrays[int]()
        self._dims: dict[Hashable, list[int]] = {}

    def find_duplicates(self, graph: TypedGraph, node: TypedNode, value: Array) -> list[int]:
        """Index new constants, and return those with the content of ``node``, in the order of the nodes."""
        for other in graph.nodes[self._node_count :]:
            if isinstance(other.op, Const):
                self._add(other.id, other.op.value)
        self._node_count = len(graph.nodes)
        return self._dims[_dims(value)] if is_symbolic(value) else list(self._tensors.find(value))

    def _add(self, node_id: int, value: Array) -> None:
        if is_symbolic(value):
            self._dims.setdefault(_dims(value), []).append(node_id)
        else:
            self._tensors.add(value, node_id)


def _dims(value: Array) -> Hashable:
    return value.shape, tuple(value.ravel().tolist())


class _NodeIndex:
    """The nodes of a graph that a sweep has visited, by their op and inputs."""

    def __init__(self) -> None:
        self._by_computation: dict[Hashable, list[int]] = {}

    def find_duplicates(self, graph: TypedGraph, node: TypedNode) -> list[int]:
        """Return earlier nodes with the op and the inputs of ``node``; add it to the index if there are none.

        The nodes before ``node`` no longer change in this sweep; the next sweep finds changes by later rewrites.
        """
        candidates = self._by_computation.setdefault(_computation(node), [])
        duplicates = [
            other
            for other in candidates
            if other != node.id
            and graph.nodes[other].inputs == node.inputs
            and graph.nodes[other].op == node.op
        ]
        if not duplicates:
            candidates.append(node.id)
        return duplicates


def _computation(node: TypedNode) -> Hashable:
    """Return the key that equal ops of equal inputs share."""
    try:
        return type(node.op), tuple(node.inputs), hash(node.op)
    except TypeError:  # an op that holds lists or arrays
        return type(node.op), tuple(node.inputs)


_CONSTANTS: WeakKeyDictionary[TypedGraph, _ConstantIndex] = WeakKeyDictionary()
_NODES: WeakKeyDictionary[TypedGraph, _NodeIndex] = WeakKeyDictionary()


def _find_duplicates(graph: TypedGraph, node: TypedNode) -> list[int]:
    """Return nodes, perhaps retired, with the op and the inputs of ``node``, or the content of a constant."""
    if isinstance(node.op, Const):
        duplicates = _CONSTANTS.setdefault(graph, _ConstantIndex()).find_duplicates(
            graph, node, node.op.value
        )
        return [duplicate for duplicate in duplicates if duplicate < node.id]
    if isinstance(node.op, Source) or not node.inputs:
        return []
    return _NODES.setdefault(graph, _NodeIndex()).find_duplicates(graph, node)


def _merge_duplicates(graph: TypedGraph, node: TypedNode, _: Op) -> Patch | None:
    for duplicate in _find_duplicates(graph, node):
        if not graph.nodes[duplicate].outputs:
            continue
        patch = Patch(graph)
        for old, new in zip(node.wires, graph.nodes[duplicate].wires):
            patch.shunt(old, patch.tap(new))
        return patch
    return None


COMMON = (
    Rewrite(
        "common",
        "an op is a function of its inputs: equal ops of equal inputs have equal results",
        _merge_duplicates,
    ),
)
