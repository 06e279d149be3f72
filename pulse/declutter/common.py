"""Nodes that compute the same."""

from collections.abc import Hashable
from hashlib import blake2b
from weakref import WeakKeyDictionary

from pulse.declutter.rule import Rule, TypedNode
from pulse.facts import Array, is_symbolic
from pulse.graph import OutletId
from pulse.ops.source import Const, Source
from pulse.patch import Patch
from pulse.typed import TypedGraph


class _ConstantIndex:
    """The constants of a graph by their content. Nodes are only ever appended, so it reads each once."""

    def __init__(self) -> None:
        self._seen = 0
        self._first: dict[Hashable, list[int]] = {}
        self._keys: dict[int, Hashable] = {}

    def twins(self, graph: TypedGraph, node: TypedNode) -> list[int]:
        """The constants with the content of ``node``, in the order of the nodes."""
        for other in graph.nodes[self._seen :]:
            if isinstance(other.op, Const):
                key = _content(other.op.value)
                self._keys[other.id] = key
                self._first.setdefault(key, []).append(other.id)
        self._seen = len(graph.nodes)
        return self._first[self._keys[node.id]]


def _content(value: Array) -> Hashable:
    if is_symbolic(value):
        return "dims", value.shape, tuple(value.ravel().tolist())
    return value.dtype.str, value.shape, blake2b(value.tobytes()).digest()


_INDEX: WeakKeyDictionary[TypedGraph, _ConstantIndex] = WeakKeyDictionary()


def _twins(graph: TypedGraph, node: TypedNode) -> list[int]:
    """Nodes, perhaps, with the op and the inputs of ``node``."""
    if isinstance(node.op, Const):
        return _INDEX.setdefault(graph, _ConstantIndex()).twins(graph, node)
    if isinstance(node.op, Source) or not node.inputs:
        return []
    readers = {inlet.node for inlet in graph.outlet(node.inputs[0]).successors if inlet.slot == 0}
    return [
        reader
        for reader in sorted(readers)
        if graph.nodes[reader].inputs == node.inputs and graph.nodes[reader].op == node.op
    ]


def _merged(graph: TypedGraph, node: TypedNode) -> Patch | None:
    for twin in _twins(graph, node):
        if twin >= node.id:
            return None
        if not graph.nodes[twin].outputs:
            continue
        patch = Patch(graph)
        for slot in range(len(node.outputs)):
            patch.shunt(OutletId(node.id, slot), patch.tap(OutletId(twin, slot)))
        return patch
    return None


COMMON = (
    Rule("common", "an op is a function of its inputs: equal ops of equal inputs give the same", _merged),
)
