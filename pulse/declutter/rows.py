"""Rows that are merged with time inside of another axis, as ``[K, T, C]`` to ``[K*T, C]``: time becomes the outer one.

A layer that is applied to the last axis only is often given rows: PyTorch writes ``Linear`` so, and the projections of
attention over frequency; a recurrent layer over frequency is given a batch of rows. If each row is computed by itself
and the rows are split again, their order is free. With time outermost, the rows of a frame are neighbours, and the
layer streams.
"""

from collections.abc import Iterator, Mapping

from pulse.declutter.rewrite import Rewrite, first_output
from pulse.dim import TDim
from pulse.facts import Shape, volume
from pulse.graph import OutletId
from pulse.ops.op import Pointwise
from pulse.ops.shape import Expand, Reshape, Transpose, single_quotient
from pulse.patch import Patch
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNode


@record
class AxisPart:
    """A part of an axis that a reshape splits, or one of those that it merges into an axis; its size is not 1."""

    size: TDim
    source: int
    target: int


@record
class RowParts:
    """The parts of an axis of rows: ``[before, moving, after]``, where only ``moving`` is symbolic."""

    before: TDim
    moving: TDim
    after: TDim

    @property
    def size(self) -> TDim:
        """The number of rows."""
        return volume([self.before, self.moving, self.after])


@record
class Merge:
    """A reshape that merges time inside of another axis into rows.

    axis    the axis of rows, in its output
    layout  their parts
    """

    axis: int
    layout: RowParts


def split_into_parts(source: Shape, target: Shape) -> list[AxisPart] | None:
    """Return the parts that a reshape splits ``source`` into, in order; None if one size does not divide another."""
    parts: list[AxisPart] = []
    left = [(axis, dim) for axis, dim in enumerate(source) if dim != 1]
    right = [(axis, dim) for axis, dim in enumerate(target) if dim != 1]
    while left and right:
        (source_axis, size), (target_axis, other) = left.pop(0), right.pop(0)
        if size == other:
            part = size
        elif (rest := single_quotient(other, size)) is not None:
            part = size
            right.insert(0, (target_axis, rest))
        elif (rest := single_quotient(size, other)) is not None:
            part = other
            left.insert(0, (source_axis, rest))
        else:
            return None
        parts.append(AxisPart(part, source_axis, target_axis))
    return None if left or right else parts


def _layout_of(parts: list[AxisPart]) -> RowParts | None:
    """Return the layout of an axis with these parts; None if not exactly one is symbolic, or if it is the outermost."""
    moving = [index for index, part in enumerate(parts) if not part.size.is_const]
    if len(moving) != 1 or moving[0] == 0:
        return None
    sizes = [part.size for part in parts]
    return RowParts(volume(sizes[: moving[0]]), sizes[moving[0]], volume(sizes[moving[0] + 1 :]))


def _find_merge(graph: TypedGraph, node: TypedNode) -> Merge | None:
    if not isinstance(node.op, Reshape):
        return None
    target = graph.fact(first_output(node)).shape
    parts = split_into_parts(graph.fact(node.inputs[0]).shape, target)
    for axis in range(len(target) if parts else 0):
        layout = _layout_of([part for part in parts or () if part.target == axis])
        if layout is not None:
            return Merge(axis, layout)
    return None


def _splits(parts: list[AxisPart], axis: int, layout: RowParts) -> bool:
    """Return whether a reshape splits rows into what they were merged of, and perhaps their own parts, as heads."""
    split = _layout_of([part for part in parts if part.source == axis])
    return split is not None and (split.before, split.moving) == (layout.before, layout.moving)


def _axis_of_whole_rows(parts: list[AxisPart], axis: int, layout: RowParts) -> int | None:
    """Return the axis of rows after a reshape that merges or splits what follows them, as heads; None for others."""
    first = next((part for part in parts if part.source == axis and part.size == layout.size), None)
    if first is None or first != next(part for part in parts if first.target == part.target):
        return None
    return first.target


class _Rows:
    """The wires that hold rows of one layout, from merges to the nodes that split the rows again.

    merges  the nodes that merge
    axes    the axis of rows of each wire; what follows them in it, such as the heads of attention, is a part of them
    nodes   the nodes between, which compute each row by itself, in order
    splits  the nodes that split
    """

    def __init__(self, graph: TypedGraph, layout: RowParts) -> None:
        self.graph = graph
        self.layout = layout
        self.merges: dict[int, TypedNode] = {}
        self.axes: dict[OutletId, int] = {}
        self.nodes: list[TypedNode] = []
        self.splits: list[TypedNode] = []

    def follow(self, node: TypedNode, axis: int) -> bool:
        """Follow the rows of a merge to their ends; return whether all of them are split again."""
        self.merges[node.id] = node
        self.axes[first_output(node)] = axis
        while True:
            count = len(self.merges)
            self.nodes.clear()
            self.splits.clear()
            if any(self.graph.is_output(first_output(merge)) for merge in self.merges.values()):
                return False
            if not all(map(self._add, self._readers())):
                return False
            if len(self.merges) == count:
                return bool(self.splits)

    def _readers(self) -> Iterator[TypedNode]:
        """Yield the nodes that read rows, in order, while these become known."""
        for node_id in self.graph.order(self.graph.outputs):
            node = self.graph.nodes[node_id]
            if node_id not in self.merges and any(outlet in self.axes for outlet in node.inputs):
                yield node

    def _add(self, node: TypedNode) -> bool:
        """Add a node that reads rows; return False if it needs their order."""
        if isinstance(node.op, Reshape):
            (first,), outlet = node.inputs, first_output(node)
            parts = split_into_parts(self.graph.fact(first).shape, self.graph.fact(outlet).shape) or []
            if _splits(parts, self.axes[first], self.layout):
                self.splits.append(node)
                return True
            axis = _axis_of_whole_rows(parts, self.axes[first], self.layout)
            if axis is not None and not self.graph.is_output(outlet):
                self.axes[outlet] = axis
                self.nodes.append(node)
                return True
        alike: dict[OutletId, int] = {}
        for outlet in node.inputs:
            if outlet not in self.axes and not self._is_independent(outlet):
                equal_axis = self._axis_of_equal_rows(outlet)
                if equal_axis is not None:
                    alike[outlet] = equal_axis
                    continue
                merge = _find_merge(self.graph, self.graph.node(outlet))
                if merge is None or merge.layout != self.layout:
                    return False
                self.merges[outlet.node] = self.graph.node(outlet)
                self.axes[outlet] = merge.axis
        axes = [self.axes.get(outlet, alike.get(outlet)) for outlet in node.inputs]
        relation = node.op.relation(self.graph.input_facts(node), axes)
        if not isinstance(relation, Pointwise) or any(map(self.graph.is_output, node.wires)):
            return False
        self.axes.update(zip(node.wires, relation.axes, strict=True))
        self.nodes.append(node)
        return True

    def _is_independent(self, outlet: OutletId) -> bool:
        """Return whether a wire has no axis that grows with the rows."""
        symbols = self.layout.moving.symbols
        return not any(dim.symbols & symbols for dim in self.graph.fact(outlet).shape)

    def _axis_of_equal_rows(self, outlet: OutletId) -> int | None:
        """Return the axis of rows of a wire whose rows are equal, as the state before a layer is; None for others."""
        node, fact = self.graph.node(outlet), self.graph.fact(outlet)
        axes = [axis for axis, dim in enumerate(fact.shape) if dim.symbols & self.layout.moving.symbols]
        if len(axes) != 1 or fact.shape[axes[0]] != self.layout.size:
            return None
        if isinstance(node.op, Expand):
            shape = self.graph.fact(node.inputs[0]).shape
            place = axes[0] - len(fact.shape) + len(shape)
            return axes[0] if place < 0 or shape[place] == 1 else None
        inputs = [
            None if self._is_independent(wire) else self._axis_of_equal_rows(wire) for wire in node.inputs
        ]
        if not any(axis is not None for axis in inputs) or any(
            axis is None and not self._is_independent(wire)
            for axis, wire in zip(inputs, node.inputs, strict=True)
        ):
            return None
        relation = node.op.relation(self.graph.input_facts(node), inputs)
        return axes[0] if isinstance(relation, Pointwise) and relation.axes[outlet.slot] == axes[0] else None

    def patch(self) -> Patch:
        """Return the patch that orders the rows with time outermost."""
        patch = Patch(self.graph)
        ordered: dict[OutletId, OutletId] = {}

        def wire_of(outlet: OutletId) -> OutletId:
            return ordered[outlet] if outlet in ordered else patch.tap(outlet)

        for node in self.merges.values():
            ordered[first_output(node)] = self._merge(patch, node)
        for node in self.nodes:
            wires = patch.wire(f"{node.name}.rows", node.op, [wire_of(outlet) for outlet in node.inputs])
            ordered.update(zip(node.wires, wires, strict=True))
        for node in self.splits:
            patch.shunt(first_output(node), self._split(patch, node, ordered))
        return patch

    def _merge(self, patch: Patch, node: TypedNode) -> OutletId:
        parts, target = self._parts_of(node)
        axis = self.axes[first_output(node)]
        merged = [index for index, part in enumerate(parts) if part.target == axis]
        wire = patch.tap(node.inputs[0])
        sizes = tuple(part.size for part in parts)
        wire = patch.wire(f"{node.name}.parts", Reshape(sizes), [wire])[0]
        wire = patch.wire(f"{node.name}.moved", Transpose(_outermost_first(parts, merged)), [wire])[0]
        return patch.wire(f"{node.name}.rows", Reshape(target), [wire])[0]

    def _split(self, patch: Patch, node: TypedNode, ordered: Mapping[OutletId, OutletId]) -> OutletId:
        parts, target = self._parts_of(node)
        axis = self.axes[node.inputs[0]]
        perm = _outermost_first(parts, [index for index, part in enumerate(parts) if part.source == axis])
        sizes = tuple(parts[index].size for index in perm)
        wire = patch.wire(f"{node.name}.parts", Reshape(sizes), [ordered[node.inputs[0]]])[0]
        back = tuple(perm.index(index) for index in range(len(perm)))
        wire = patch.wire(f"{node.name}.moved", Transpose(back), [wire])[0]
        return patch.wire(node.name, Reshape(target), [wire])[0]

    def _parts_of(self, node: TypedNode) -> tuple[list[AxisPart], Shape]:
        target = self.graph.fact(first_output(node)).shape
        parts = split_into_parts(self.graph.fact(node.inputs[0]).shape, target)
        assert parts is not None
        return parts, target


def _outermost_first(parts: list[AxisPart], merged: list[int]) -> tuple[int, ...]:
    """Return the order of parts in which the symbolic one of an axis is the first of that axis."""
    (moving,) = (index for index in merged if not parts[index].size.is_const)
    perm = [index for index in range(len(parts)) if index != moving]
    perm.insert(merged[0], moving)
    return tuple(perm)


def _move_time_outwards(graph: TypedGraph, node: TypedNode, _: Reshape) -> Patch | None:
    merge = _find_merge(graph, node)
    if merge is None:
        return None
    rows = _Rows(graph, merge.layout)
    return rows.patch() if rows.follow(node, merge.axis) else None


ROWS = (
    Rewrite(
        "rows_of_a_frame_together",
        "rows that are computed one by one and split again may have any order between",
        _move_time_outwards,
        (Reshape,),
    ),
)
