"""Patches, the only way to change a typed graph. ``Graph.compact_copy`` removes nodes that are no longer used."""

from collections.abc import Sequence

from pulse.errors import PulseError
from pulse.facts import Array
from pulse.graph import Graph, OutletId
from pulse.ops.op import Op
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire


class Patch:
    """New nodes for a graph, and the wires that they replace.

    ``tap`` reads a wire of the graph, ``wire`` adds nodes, ``shunt`` replaces a wire, ``apply`` inserts all of it.
    """

    def __init__(self, target: TypedGraph) -> None:
        self.target = target
        self.graph: TypedGraph = Graph()
        self._taps: dict[OutletId, OutletId] = {}
        self._shunts: list[tuple[OutletId, OutletId]] = []

    def tap(self, outlet: OutletId) -> OutletId:
        """Add a wire of the target to the patch, once, for its nodes to read."""
        for inside, outside in self._taps.items():
            if outside == outlet:
                return inside
        inside = self.graph.add(self.target.label(outlet), _TAP, (), [self.target.fact(outlet)])[0]
        self._taps[inside] = outlet
        return inside

    def wire(self, name: str, op: Op, inputs: Sequence[OutletId]) -> list[OutletId]:
        """Add a node to the patch. Raises FactError: the inputs do not fit."""
        return wire(self.graph, name, op, inputs)

    def add_constant(self, name: str, value: Array) -> OutletId:
        """Add a constant to the patch."""
        return add_constant(self.graph, name, value)

    def shunt(self, old: OutletId, new: OutletId) -> None:
        """Let ``new`` (of the patch) replace ``old`` (of the target).

        Raises PulseError: the facts differ.
        """
        before, after = self.target.fact(old), self.graph.fact(new)
        if not before.agrees(after):
            raise PulseError(f"a patch puts {after} in place of {self.target.label(old)}: {before}")
        self._shunts.append((old, new))

    def apply(self) -> list[int]:
        """Apply the patch; readers and outputs of the shunted wires read the new ones.

        Nodes that are no longer read are removed. A new node gets the name with which it was wired, if that is free
        then, and joins the views of the wires that it replaces. Returns the ids of the new nodes.
        """
        target, before = self.target, len(self.target.nodes)
        mapping: dict[OutletId, OutletId] = dict(self._taps)
        names: dict[int, str] = {}
        for node in self.graph.nodes:
            if OutletId(node.id) in self._taps:
                continue
            facts = [outlet.fact for outlet in node.outputs]
            outlets = target.add(node.name, node.op, [mapping[outlet] for outlet in node.inputs], facts)
            mapping.update(zip(node.wires, outlets))
            names[outlets[0].node] = node.name
        for view in target.views.values():
            if any(old.node in view.nodes for old, _ in self._shunts):
                view.nodes.update(names)
        for old, new in self._shunts:
            target.redirect(old, mapping[new], before)
        for old, _ in self._shunts:
            target.retire(old.node)
        for node_id, name in names.items():
            target.rename(node_id, name)
        return list(names)


class _Tap(Op):
    """A placeholder for a wire of the target."""


_TAP = _Tap()


def replace_op(target: TypedGraph, old: OutletId, name: str, op: Op, inputs: Sequence[OutletId]) -> Patch:
    """Return the patch that puts one op with one output in place of a wire."""
    patch = Patch(target)
    patch.shunt(old, patch.wire(name, op, [patch.tap(outlet) for outlet in inputs])[0])
    return patch


def bypass_wire(target: TypedGraph, old: OutletId, new: OutletId) -> Patch:
    """Return the patch that connects the readers of ``old`` to ``new``, another wire of the target."""
    patch = Patch(target)
    patch.shunt(old, patch.tap(new))
    return patch
