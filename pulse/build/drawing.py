"""Drawings: a canvas, the handles of its nodes, and parts of it. Drawings that are connected become one."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias
from weakref import WeakSet

from pulse.build.canvas import Canvas, OpenInput, is_open, is_operator
from pulse.dim import SymbolScope
from pulse.errors import InputError
from pulse.graph import OutletId, View
from pulse.infer.network import Constant, FileNetwork, InferenceGraph
from pulse.support.wording import count_of

DrawnOperators: TypeAlias = Callable[
    [Canvas, Iterable[int], Sequence[OutletId], Sequence[OutletId]],
    tuple[list[int], dict[OutletId, OutletId]],
]
"""(part, its inputs, its outputs) -> the added nodes; and output -> its new wire."""


class Handle:
    """A handle of a node, which stays valid when the node moves to another drawing."""

    def __init__(self, drawing: "Drawing", node_id: int) -> None:
        self.drawing, self.id = drawing, node_id
        drawing.handles[node_id] = self


class Drawing(Canvas):
    """A canvas with the handles of its nodes by their ids, and the parts of it that are in use."""

    def __init__(self, graph: InferenceGraph | None = None, scope: SymbolScope | None = None) -> None:
        super().__init__(graph, scope)
        self.handles: dict[int, Handle] = {}
        self.parts: WeakSet[Part] = WeakSet()
        self.views: list[Part] = []
        """The parts that become views of models, in the order in which they were named."""

    def named_views(self) -> dict[str, View]:
        """Return the views of models, by name. Raises InputError: two with one name."""
        views: dict[str, View] = {}
        for index, part in enumerate(self.views):
            name = part.name or f"view {index}"
            if name in views:
                raise InputError(f"two views are called {name}; give each its own name")
            views[name] = View(set(part.nodes), part.backend, part.kernel)
        return views

    def keep(self, part: "Part") -> None:
        """Make a part a view of models."""
        if part not in self.views:
            self.views.append(part)

    def join(self, other: "Drawing") -> None:
        """Take over all that is on another one. Raises InputError: both were read from files with named lengths."""
        if other is self:
            return
        scopes = [drawing.scope for drawing in (self, other) if drawing.scope is not None]
        if len(scopes) > 1:
            raise InputError(
                "nodes of two loaded models cannot be connected here; join the models with pulse.chain"
            )
        offset = self.graph.absorb(other.graph)
        self.scope = next(iter(scopes), None)
        for handle in other.handles.values():
            handle.drawing, handle.id = self, handle.id + offset
            self.handles[handle.id] = handle
        for part in other.parts:
            part.move(self, offset)
            self.parts.add(part)
        self.views += other.views
        other.handles, other.views = {}, []

    def feed(self, open_input: OutletId, source: OutletId) -> None:
        """Connect all readers of an open input to another wire. Raises InputError: that would close a cycle."""
        graph = self.graph
        if open_input == source:
            return
        readers = {inlet.node for inlet in graph.outlet(open_input).successors}
        if readers & set(graph.order([source])):
            name = graph.node(open_input).name
            raise InputError(f"{name}: reading {graph.label(source)} would close a cycle")
        graph.redirect(open_input, source)
        for part in self.parts:
            part.follow(open_input, source)
        graph.retire(open_input.node)


class Part:
    """Some operators of a drawing, with their inputs and outputs: the content of a view.

    nodes    their ids, in the order in which they were made
    inputs   the order of the wires that are read from outside; None: the nodes' order
    outputs  the wires that are its results; None: those that are read outside, and all of nodes that none
             of the part reads
    name     its name in models; empty for none
    titles   the names of the outputs of its model, if not their nodes' names
    """

    def __init__(
        self,
        drawing: Drawing,
        nodes: Iterable[int],
        inputs: Sequence[OutletId] | None = None,
        outputs: Sequence[OutletId] | None = None,
        name: str = "",
    ) -> None:
        self.drawing, self._inputs, self._outputs = drawing, inputs, outputs
        graph = drawing.graph
        self.nodes = sorted(node_id for node_id in nodes if is_operator(graph.nodes[node_id].op))
        self.titles: list[str] | None = None
        self.name, self.backend, self.kernel = name, "", ""
        if name:
            drawing.keep(self)
        drawing.parts.add(self)

    @property
    def graph(self) -> InferenceGraph:
        """The graph that its nodes are in."""
        return self.drawing.graph

    def move(self, drawing: Drawing, offset: int) -> None:
        """Move the part to another drawing, where its nodes have other ids."""
        self.drawing = drawing
        self.nodes = [node_id + offset for node_id in self.nodes]
        self._inputs, self._outputs = (
            None if wires is None else [OutletId(wire.node + offset, wire.slot) for wire in wires]
            for wires in (self._inputs, self._outputs)
        )

    def follow(self, old: OutletId, new: OutletId) -> None:
        """Replace a wire that no longer exists."""
        self._inputs, self._outputs = (
            None if wires is None else [new if wire == old else wire for wire in wires]
            for wires in (self._inputs, self._outputs)
        )

    # borders

    def inputs(self) -> list[OutletId]:
        """Return the wires from outside that it reads, each once, except constants."""
        ends, inside = self.drawing.open_inputs(self.nodes), set(self.nodes)
        ends += [end for end in self.outputs() if end.node not in inside and end not in ends]
        first = [wire for wire in self._inputs or () if wire in ends]
        return [*first, *(wire for wire in ends if wire not in first)]

    def open_inputs(self) -> list[OutletId]:
        """Return the inputs that no node feeds yet."""
        return [wire for wire in self.inputs() if is_open(self.drawing.op(wire))]

    def input_names(self) -> list[str]:
        """Return the names of the model's inputs, in the order of ``inputs``."""
        wires = self.inputs()
        names = {outlet: name for name, outlet in self.drawing.input_names(wires).items()}
        return [names[outlet] for outlet in wires]

    def outputs(self) -> list[OutletId]:
        """Return the wires that are its results."""
        return self.drawing.results(self.nodes) if self._outputs is None else list(self._outputs)

    def network(self, shapes: Mapping[str, str], titles: Sequence[str] | None, title: str) -> FileNetwork:
        """Return the part as a separate network.

        shapes  input name -> its shape
        titles  titles of the outputs
        Raises  InputError: no such input, no such shape, another number of titles
        """
        ends = self.outputs()
        network = self.drawing.network(
            self.nodes, self.inputs(), ends, shapes, self.drawing.named_views(), title
        )
        names = self.titles if titles is None else list(titles)
        if names is not None:
            if len(names) != len(ends) or len(set(names)) != len(names):
                raise InputError(f"{title}: {len(ends)} outputs need as many different names, not {names}")
            network.graph.set_outputs(network.graph.outputs, names)
        return network

    # changes

    def convert(self, conversion: DrawnOperators) -> None:
        """Add the nodes of a conversion to this part, and to all that have the whole of it."""
        holders = [part for part in self.drawing.parts if set(self.nodes) <= set(part.nodes)]
        new_nodes, new_wires = conversion(self.drawing, self.nodes, self.inputs(), self.outputs())
        for part in holders:
            part.nodes += new_nodes
            for old, new in new_wires.items():
                part.follow(old, new)

    def clone(self, shares_parameters: bool) -> "Part":
        """Return a copy of the operators on a new drawing."""
        graph, drawing = self.graph, Drawing(scope=self.drawing.scope)
        inside = set(self.nodes)
        copies: dict[OutletId, OutletId] = {}
        for wire in self.inputs():
            op, label = graph.node(wire).op, graph.label(wire)
            copies[wire] = drawing.add(label, op if is_open(op) else OpenInput(preferred_name=label))
        for node_id in graph.order([OutletId(node_id) for node_id in self.nodes]):
            node, outlet = graph.nodes[node_id], OutletId(node_id)
            if isinstance(node.op, Constant):
                value = node.op.value if shares_parameters else node.op.value.copy()
                copies[outlet] = drawing.add_constant(node.name, value)
            elif node_id in inside:
                first = drawing.add(
                    node.name, node.op, [copies[source] for source in node.inputs], len(node.outputs)
                )
                copies.update(zip(node.wires, drawing.graph.nodes[first.node].wires))
        inputs, outputs = ([copies[wire] for wire in wires] for wires in (self.inputs(), self.outputs()))
        nodes = [copies[OutletId(node_id)].node for node_id in self.nodes]
        return Part(drawing, nodes, inputs, outputs)

    def replace(self, new: "Part") -> None:
        """Replace this part by another one. Raises InputError: another number of inputs or outputs."""
        sizes = (len(self.inputs()), len(self.outputs()))
        new_sizes = (len(new.open_inputs()), len(new.outputs()))
        if new_sizes != sizes:
            raise InputError(
                f"a part with {count_of(sizes[0], 'input')} and {count_of(sizes[1], 'output')} cannot be replaced by "
                "one with "
                f"{new_sizes[0]} and {new_sizes[1]}"
            )
        self.drawing.join(new.drawing)
        drawing, graph = self.drawing, self.graph
        before, after = self.outputs(), new.outputs()
        for open_input, source in zip(new.open_inputs(), self.inputs()):
            drawing.feed(open_input, source)
            after = [source if wire == open_input else wire for wire in after]
        old, parts = list(self.nodes), [part for part in drawing.parts if part is not new]
        holders = [part for part in parts if set(old) <= set(part.nodes)]
        for outlet, successor in zip(before, after):
            graph.redirect(outlet, successor)
            for part in parts:
                part.follow(outlet, successor)
        for node_id in old:
            graph.retire(node_id)
        retired_ids = {node_id for node_id in old if not graph.nodes[node_id].outputs}
        for part in [*parts, new]:
            new_nodes = new.nodes if part in holders else []
            part.nodes = sorted({*(set(part.nodes) - retired_ids), *new_nodes})
