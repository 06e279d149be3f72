"""Nodes, the wires between them, and views of them: three handles of one graph under construction.

Where nodes of two graphs are connected, the graphs become one; handles stay what they are.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias
from weakref import WeakSet

import numpy as np

from pulse.build.canvas import Canvas, OpenInput, is_open, is_operator
from pulse.build.conversions import LAYOUTS, convert_layout, convert_types, round_parameters
from pulse.build.schemas import check_attributes
from pulse.dim import SymbolScope
from pulse.errors import InputError
from pulse.facts import Array, dtype_name
from pulse.graph import OutletId, View
from pulse.infer.network import Constant, ModelGraph
from pulse.infer.op import ModelOp
from pulse.matching import find_matches
from pulse.models import Model, Sketch
from pulse.onnx.read.node import OnnxOp
from pulse.pulsify.receptive import Receptive


class Drawing:
    """A canvas and the handles of what is on it."""

    def __init__(self, graph: ModelGraph | None = None, scope: SymbolScope | None = None) -> None:
        self.canvas = Canvas(graph, scope)
        self._nodes: dict[int, Node] = {}
        self.views: WeakSet[GraphView] = WeakSet()
        self.kept: list[GraphView] = []
        """The views that models are to know, in the order in which they were named."""

    def node(self, node_id: int) -> "Node":
        """The one handle of a node."""
        if node_id not in self._nodes:
            self._nodes[node_id] = Node(self, node_id)
        return self._nodes[node_id]

    def named_views(self) -> dict[str, View]:
        """The views that models are to know, by name. Raises InputError: two with one name."""
        views: dict[str, View] = {}
        for number, view in enumerate(self.kept):
            name = view.name or f"view {number}"
            if name in views:
                raise InputError(f"two views are called {name}; give each a name of its own")
            views[name] = View({node.id for node in view.nodes}, view.backend, view.kernel)
        return views

    def keep(self, view: "GraphView") -> None:
        """Let models know a view."""
        if view not in self.kept:
            self.kept.append(view)

    def join(self, other: "Drawing") -> None:
        """Take over all that is on another one. Raises InputError: both were read from files with named lengths."""
        if other is self:
            return
        scopes = [each.canvas.scope for each in (self, other) if each.canvas.scope is not None]
        if len(scopes) > 1:
            raise InputError(
                "nodes of two models that were read cannot be connected here; join the models with pulse.chain"
            )
        offset = self.canvas.graph.absorb(other.canvas.graph)
        self.canvas.scope = next(iter(scopes), None)
        for node in other._nodes.values():
            node.drawing, node.id = self, node.id + offset
            self._nodes[node.id] = node
        for view in other.views:
            view.drawing = self
            self.views.add(view)
        self.kept += other.kept
        other._nodes, other.kept = {}, []


class Node(Sketch):
    """An operator in a graph, with what it reads and who reads it.

    Inputs and outputs are counted from 0, in the order in which ONNX has them: of a convolution 0 is the data, 1 the
    weight, 2 the bias. Parameters are nodes of their own (``Producer``), which belong to the nodes that read them.
    """

    def __init__(self, drawing: Drawing, node_id: int) -> None:
        self.drawing, self.id = drawing, node_id

    @property
    def _node(self) -> Any:
        return self.drawing.canvas.graph.nodes[self.id]

    @property
    def name(self) -> str:
        """Its name, the only one of the graph."""
        return self._node.name

    @property
    def op(self) -> ModelOp:
        """What it computes. It knows no node and no state, so several nodes may have the same one (``share``)."""
        return self._node.op

    @property
    def type(self) -> str:
        """The operator's name, with the domain in front if that is not ONNX's own: ``com.microsoft::Gelu``."""
        return self.op.name

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that were given, by name."""
        return dict(self.op.attributes) if isinstance(self.op, OnnxOp) else {}

    def set_attributes(self, **attributes: Any) -> None:
        """Change attributes of this node alone; None takes one away. Raises InputError: no such attribute, or value."""
        op = self.op
        if not isinstance(op, OnnxOp):
            raise InputError(f"{self.name} ({self.type}): has no attributes")
        where = f"{self.name} ({self.type})"
        changed = check_attributes(op.domain, op.type, {**op.attributes, **attributes}, where)
        self._node.op = replace(op, attributes=changed)

    @property
    def outputs(self) -> int:
        """How many outputs it has."""
        return len(self._node.outputs)

    def category(self, in_: int) -> str:
        """What an input is: ``data``, ``param`` (a constant), or ``optional`` and left out. Raises InputError."""
        source = self.drawing.canvas.source(self.id, in_)
        if source is None:
            return "optional"
        return "param" if isinstance(self.drawing.canvas.op(source), Constant) else "data"

    def inputs(self) -> "list[Connector | None]":
        """The wire of each input; None if nothing feeds it."""
        canvas = self.drawing.canvas
        sources = (canvas.source(self.id, place) for place in range(canvas.places(self.id)))
        return [
            None
            if outlet is None or is_open(canvas.op(outlet))
            else Connector.of(self.drawing.node(outlet.node), outlet.slot)
            for outlet in sources
        ]

    def parents(self) -> "list[Node]":
        """The nodes that it reads, each once, in the order of the inputs; parameters included."""
        return list(dict.fromkeys(wire.node for wire in self.inputs() if wire is not None))

    def parent(self, in_: int) -> "Node | None":
        """The node that an input reads; None if nothing feeds it. Raises InputError: no such input."""
        self.drawing.canvas.source(self.id, in_)
        wire = self.inputs()[in_]
        return None if wire is None else wire.node

    def children(self, out: int | None = None) -> "list[Node]":
        """The nodes that read it, or one of its outputs; each once."""
        outlets = self._node.outputs if out is None else [self._node.outputs[self._output(out)]]
        readers = (inlet.node for outlet in outlets for inlet in outlet.successors)
        return [self.drawing.node(node_id) for node_id in dict.fromkeys(readers)]

    def _output(self, out: int) -> int:
        if not 0 <= out < self.outputs:
            raise InputError(
                f"{self.name} ({self.type}): it has no output {out}; its outputs are 0 to {self.outputs - 1}"
            )
        return out

    def add_child(self, other: "Node | GraphView", out: int = 0, in_: int = 0) -> "Node | GraphView":
        """Let an input of another node read an output of this one; the other node.

        other   a node; or a view, ``in_`` being one of its open inputs
        Raises  InputError: no such output or input, one that a node feeds already (a parameter gives way), or a circle
        """
        Connector.of(self, self._output(out)).feed(other, in_)
        return other

    def __call__(self, *connectors: "Connector") -> "Any":
        """Feed the data inputs in their order; a Connector for each output, alone if there is one.

        A node that is fed already stays as it is, and another one with the same operator and the same parameters
        (``share``) is fed. Raises InputError: another number of connectors than data inputs
        """
        node = self if self._open_places() else self.share()
        places = node._open_places()
        if len(connectors) != len(places):
            raise InputError(
                f"{node.name} ({node.type}): it has {len(places)} data inputs, and {len(connectors)} connectors are "
                "given; give one for each"
            )
        for connector, place in zip(connectors, places):
            require_connector(connector).feed(node, place)
        made = [Connector.of(node, slot) for slot in range(node.outputs)]
        return made[0] if len(made) == 1 else tuple(made)

    def _open_places(self) -> list[int]:
        """The data inputs that neither a node nor a connector feeds."""
        canvas = self.drawing.canvas
        sources = {place: canvas.source(self.id, place) for place in range(canvas.places(self.id))}
        ops = {place: canvas.op(outlet) for place, outlet in sources.items() if outlet is not None}
        return [place for place, op in ops.items() if isinstance(op, OpenInput) and not op.given]

    def share(self) -> "Node":
        """Another node of the same operator, not fed yet.

        Both read the same parameters, which are stored and counted once; each has a state of its own.
        """
        canvas, node = self.drawing.canvas, self._node
        inputs = [
            outlet if isinstance(canvas.op(outlet), Constant) else canvas.add("x", OpenInput())
            for outlet in node.inputs
        ]
        outlet = canvas.add(node.name, node.op, inputs, len(node.outputs))
        return self.drawing.node(outlet.node)

    def replace(self, other: "Node | GraphView") -> None:
        """Put a node or a view in the place of this one; as ``GraphView.replace``."""
        GraphView([self]).replace(other)

    def to_model(self, inputs: Mapping[str, str] | None = None) -> Model:
        return GraphView([self]).graph(inputs)

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"


class Connector(Sketch):
    """A wire: an output of a node, or an input of the model to be.

    name    of the input, for feeds
    shape   its dims and type, such as ``1,80,T,f32``; found from the weights where it is left out
    """

    def __init__(self, name: str = "x", shape: str = "") -> None:
        drawing = Drawing()
        self.node = drawing.node(drawing.canvas.add(name, OpenInput(shape, True, name)).node)
        self.slot = 0

    @classmethod
    def of(cls, node: Node, slot: int = 0) -> "Connector":
        """An output of a node."""
        connector = cls.__new__(cls)
        connector.node, connector.slot = node, slot
        return connector

    @property
    def outlet(self) -> OutletId:
        """Its place in the graph."""
        return OutletId(self.node.id, self.slot)

    def feed(self, other: "Node | GraphView", in_: int = 0) -> None:
        """Let an input of a node, or an open one of a view, read this wire. Raises InputError, as ``add_child``."""
        given: Any = other
        if not isinstance(given, Node | GraphView):
            raise InputError(f"a wire feeds a node or a view, not {given!r}")
        self.require_there()
        if isinstance(other, GraphView):
            places = other.open_inputs()
            if not 0 <= in_ < len(places):
                raise InputError(f"the view has no open input {in_}; it has {len(places)}")
            other.feed(places[in_], self)
            return
        other.drawing.canvas.source(other.id, in_)
        self.node.drawing.join(other.drawing)
        self.node.drawing.canvas.connect(self.outlet, other.id, in_)

    def graph(self, *others: "Connector") -> "GraphView":
        """The view of all that this wire, and the others, are computed from; they are its outputs."""
        ends = (self, *others)
        for end in ends:
            require_connector(end).require_there()
        for other in others:
            self.node.drawing.join(other.node.drawing)
        drawing = self.node.drawing
        order = drawing.canvas.graph.order([end.outlet for end in ends])
        handles = [drawing.node(node_id) for node_id in order]
        inputs = [Connector.of(node) for node in handles if is_open(node.op)]
        return GraphView([node for node in handles if is_operator(node.op)], inputs, ends)

    def to_model(self, inputs: Mapping[str, str] | None = None) -> Model:
        return self.graph().graph(inputs)

    def require_there(self) -> None:
        """Raise InputError for an input in whose place another wire is by now."""
        if not self.node.drawing.canvas.graph.nodes[self.node.id].outputs:
            raise InputError("this connector was an input that another wire feeds now; use that wire")

    def __repr__(self) -> str:
        return f"<Connector {self.node.drawing.canvas.graph.label(self.outlet)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Connector) and (self.node, self.slot) == (other.node, other.slot)

    def __hash__(self) -> int:
        return hash((self.node, self.slot))


def require_connector(given: object) -> Connector:
    """The connector. Raises InputError: it is something else."""
    if isinstance(given, Connector):
        return given
    raise InputError(f"nodes and views are called with connectors, not with {given!r}")


class GraphView(Sketch):
    """Some nodes of a graph: the whole or a part of it; views may overlap. Nothing is copied.

    nodes    operators; parameters belong to those that read them
    inputs   the order of the wires that are read from outside; that of the nodes by default
    outputs  the wires that are its results; by default those that are read outside, and all of nodes that none of
             the view reads
    name     a view with a name is known to the models that are made of its graph (``TypedModel.view``)
    Raises   InputError: nodes of two graphs
    """

    _names: list[str] | None = None

    def __init__(
        self,
        nodes: Iterable[Node],
        inputs: "Sequence[Connector] | None" = None,
        outputs: "Sequence[Connector] | None" = None,
        name: str = "",
    ) -> None:
        listed = list(dict.fromkeys(nodes))
        drawings = {id(node.drawing): node.drawing for node in listed}
        drawings |= {id(end.node.drawing): end.node.drawing for end in (*(inputs or ()), *(outputs or ()))}
        if len(drawings) != 1:
            what = "no nodes" if not drawings else "nodes of several graphs; connect them first"
            raise InputError(f"a view of {what}")
        (self.drawing,) = drawings.values()
        self.nodes = [node for node in listed if is_operator(node.op)]
        """The nodes, in the order in which they were made."""
        self.nodes.sort(key=lambda node: node.id)
        self._inputs, self._outputs = inputs, outputs
        self.name, self.backend, self.kernel = name, "", ""
        self._called = False
        if name:
            self.drawing.keep(self)
        self.drawing.views.add(self)

    @classmethod
    def of(cls, model: Model) -> "GraphView":
        """The whole of a model that was read, in a graph that can be changed; ``graph()`` gives the model back."""
        copy = model.graph.rebuilt()
        drawing = Drawing(copy, model.scope)
        nodes = [drawing.node(node.id) for node in copy.nodes]
        inputs = [Connector.of(nodes[outlet.node], outlet.slot) for outlet in copy.inputs]
        outputs = [Connector.of(nodes[outlet.node], outlet.slot) for outlet in copy.outputs]
        names = list(copy.output_names)
        copy.inputs = []
        copy.set_outputs([], [])
        view = cls(nodes, inputs, outputs)
        view._names = names
        return view

    @property
    def _ids(self) -> list[int]:
        return [node.id for node in self.nodes]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<GraphView {', '.join(node.name for node in self.nodes)}>"

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def __getitem__(self, name: str) -> Node:
        """A node by its name. Raises InputError."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise InputError(f"no node of the view is called {name}; there are {', '.join(n.name for n in self)}")

    # borders

    def inputs(self) -> list[Connector]:
        """The wires that it reads and does not make, each once; constants left out."""
        ends = [self._connector(outlet) for outlet in self.drawing.canvas.open_inputs(self._ids)]
        inside = set(self.nodes)
        ends += [end for end in self.outputs() if end.node not in inside and end not in ends]
        first = [wire for wire in self._inputs or () if wire in ends]
        return [*first, *(wire for wire in ends if wire not in first)]

    def _input_names(self) -> list[str]:
        """What the inputs of its model are called, in the order of ``inputs``."""
        wires = [wire.outlet for wire in self.inputs()]
        names = {outlet: name for name, outlet in self.drawing.canvas.input_names(wires).items()}
        return [names[outlet] for outlet in wires]

    def outputs(self) -> list[Connector]:
        """The wires that are its results."""
        if self._outputs is not None:
            return list(self._outputs)
        return [self._connector(outlet) for outlet in self.drawing.canvas.results(self._ids)]

    def _connector(self, outlet: OutletId) -> Connector:
        return Connector.of(self.drawing.node(outlet.node), outlet.slot)

    def input_nodes(self) -> list[Node]:
        """The nodes that read no node of the view."""
        inside = set(self.nodes)
        return [node for node in self.nodes if inside.isdisjoint(node.parents())]

    def output_nodes(self) -> list[Node]:
        """The nodes that no node of the view reads."""
        inside = set(self.nodes)
        return [node for node in self.nodes if inside.isdisjoint(node.children())]

    def inner_nodes(self) -> list[Node]:
        """The nodes that are neither input nodes nor output nodes."""
        border = {*self.input_nodes(), *self.output_nodes()}
        return [node for node in self.nodes if node not in border]

    def parameters(self) -> list[Node]:
        """The constants that its nodes read, each once."""
        parents = dict.fromkeys(parent for node in self.nodes for parent in node.parents())
        return [node for node in parents if isinstance(node.op, Constant)]

    def uncovered_operators(self) -> list[str]:
        """The operators that nothing can compute, by name."""
        return sorted({node.type for node in self.nodes if not node.op.is_covered})

    def match(self, query: str) -> "list[GraphView]":
        """The parts of the view that fit a query, such as ``Conv->BatchNorm?->Relu``; see docs/aidge.md.

        Raises InputError: not a query
        """
        matches = find_matches(self.drawing.canvas.graph, query, set(self._ids))
        return [GraphView(self.drawing.node(node_id) for node_id in match.nodes) for match in matches]

    # use

    def add_child(self, other: "Node | GraphView", out: int = 0, in_: int = 0) -> "Node | GraphView":
        """Let an input of another part read one of its outputs; as ``Node.add_child``."""
        ends = self.outputs()
        if not 0 <= out < len(ends):
            raise InputError(f"the view has no output {out}; it has {len(ends)}")
        ends[out].feed(other, in_)
        return other

    def __call__(self, *connectors: Connector) -> Any:
        """Feed its open inputs in their order; a Connector for each output, alone if there is one.

        Raises InputError: another number of connectors than open inputs, a circle, or it was called before
        """
        if self._called:
            raise InputError(
                "the view was called before; call a clone of it: clone(share='params') has its parameters"
            )
        places = self.open_inputs()
        if len(connectors) != len(places):
            raise InputError(
                f"the view has {len(places)} open inputs, and {len(connectors)} connectors are given; give one for each"
            )
        for place, connector in zip(places, connectors):
            self.feed(place, require_connector(connector))
        self._called = True
        ends = self.outputs()
        return ends[0] if len(ends) == 1 else tuple(ends)

    def open_inputs(self) -> list[Connector]:
        """The inputs that no node feeds yet."""
        return [wire for wire in self.inputs() if is_open(wire.node.op)]

    def feed(self, place: Connector, source: Connector) -> None:
        """Let all that read an open input read another wire. Raises InputError: that would close a circle."""
        source.require_there()
        source.node.drawing.join(place.node.drawing)
        graph = self.drawing.canvas.graph
        if place == source:
            return
        readers = {inlet.node for inlet in graph.outlet(place.outlet).successors}
        if readers & set(graph.order([source.outlet])):
            raise InputError(f"{place.node.name}: reading {graph.label(source.outlet)} would close a circle")
        graph.redirect(place.outlet, source.outlet)
        for view in self.drawing.views:
            view._follow(place, source)
        graph.retire(place.node.id)

    def _follow(self, old: Connector, new: Connector) -> None:
        """Name a wire as it is called now."""
        if self._inputs is not None:
            self._inputs = [new if wire == old else wire for wire in self._inputs]
        if self._outputs is not None:
            self._outputs = [new if wire == old else wire for wire in self._outputs]

    def graph(
        self,
        inputs: Mapping[str, str] | str | None = None,
        outputs: Sequence[str] | None = None,
        title: str = "model",
    ) -> Model:
        """The part as a model of its own, which ``pulse.load`` and all other calls take.

        inputs   name -> shape, such as ``{"x": "1,80,T"}``; the shape alone if there is one input. Others
                 are found from the weights, or were given with the Connector
        outputs  their names; those of their nodes by default
        Raises   InputError: no such input, no such shape, another number of names
        """
        wires, ends = self.inputs(), self.outputs()
        if isinstance(inputs, str):
            names = self._input_names()
            if len(names) != 1:
                raise InputError(f"{title}: give shapes by name, the inputs are {', '.join(names) or 'none'}")
            inputs = {names[0]: inputs}
        network = self.drawing.canvas.network(
            self._ids,
            [wire.outlet for wire in wires],
            [end.outlet for end in ends],
            inputs or {},
            self.drawing.named_views(),
            title,
        )
        names = self._names if outputs is None else list(outputs)
        if names is not None:
            if len(names) != len(ends) or len(set(names)) != len(names):
                raise InputError(f"{title}: {len(ends)} outputs need as many different names, not {names}")
            network.graph.set_outputs(network.graph.outputs, names)
        return Model.of(network)

    def to_model(self, inputs: Mapping[str, str] | None = None) -> Model:
        return self.graph(inputs)

    def forward(self, feeds: Mapping[str, Array] | Array) -> dict[str, Array]:
        """Its outputs, computed by numpy from what its inputs are fed; nothing outside of the view is computed.

        feeds   input -> array; one array if there is one input
        Raises  InputError: another input, or arrays that do not fit
        """
        names = self._input_names()
        if not isinstance(feeds, Mapping):
            if len(names) != 1:
                raise InputError(f"the view has the inputs {', '.join(names) or 'none'}; feed them by name")
            feeds = {names[0]: feeds}
        if missing := sorted(set(names) - set(feeds)):
            raise InputError(f"the view's input {', '.join(missing)} is not fed")
        arrays = {name: np.asarray(array) for name, array in feeds.items()}
        return self.graph(_shapes(arrays)).analyse().run(arrays)

    def receptive_field(
        self, inputs: Mapping[str, str] | str | None = None, symbol: str | None = None
    ) -> dict[str, Receptive]:
        """Output -> the frames of the input that one of its frames depends on.

        inputs, symbol  as in ``graph`` and in ``pulse.load``
        Raises  PulsifyError: the view does not stream
        """
        return self.graph(inputs).analyse().declutter().pulsify(symbol).fields

    # changes

    def set_backend(self, backend: str, kernel: str = "") -> None:
        """Let programs run its nodes on a backend, and if there are several kernels of an operator, by that one.

        backend  ``numba``, ``numpy`` or ``onnxruntime``; "" for the one that a program is compiled for
        kernel   such as ``fft`` of convolutions in numpy; see docs/aidge.md
        """
        self.backend, self.kernel = backend, kernel
        self.drawing.keep(self)

    def set_dtype(self, dtype: str, weights_only: bool = False) -> None:
        """Let its nodes compute in another type of floats: its parameters are rounded, its inputs and outputs cast.

        What it reads and gives stays f32, and must be floats. Kernels of the numba backend compute in f32: give the
        view the backend ``numpy`` too, or round the parameters alone.

        dtype         ``f16``, ``f32`` or ``f64``
        weights_only  round the parameters and compute in f32; programs then store those of f16 in 16 bits
        Raises        InputError: another type
        """
        if weights_only:
            round_parameters(self.drawing.canvas, self._ids, dtype)
        else:
            self._convert(partial(convert_types, name=dtype))

    def set_layout(self, layout: str) -> None:
        """Let its tensors have channels last (``NHWC``): transposes are added, which decluttering absorbs.

        Its open inputs, and results that nothing reads, have channels last from now on. ``NCHW`` is how they are.
        Raises InputError: another layout, or an operator that names axes
        """
        if layout not in LAYOUTS:
            raise InputError(f"layout {layout!r} is none of {', '.join(LAYOUTS)}")
        if layout == LAYOUTS[1]:
            self._convert(convert_layout)

    def _convert(self, convert: "Conversion") -> None:
        """Add the nodes of a conversion to this view, and to all that have the whole of it."""
        holders = [view for view in self.drawing.views if set(self.nodes) <= set(view.nodes)]
        inputs, outputs = ([wire.outlet for wire in wires] for wires in (self.inputs(), self.outputs()))
        added, moved = convert(self.drawing.canvas, self._ids, inputs, outputs)
        nodes = [self.drawing.node(node_id) for node_id in added]
        for view in holders:
            view.nodes += nodes
            for old, new in moved.items():
                view._follow(self._connector(old), self._connector(new))

    def clone(self, share: str = "") -> "GraphView":
        """The same nodes once more, in a graph of their own.

        share   ``params``: both read the same arrays; by default the clone has copies
        Raises  InputError: another value of ``share``
        """
        if share not in ("", "params"):
            raise InputError(f"share is 'params', or left out, not {share!r}")
        graph, drawing = self.drawing.canvas.graph, Drawing(scope=self.drawing.canvas.scope)
        made: dict[OutletId, OutletId] = {}
        inside = set(self._ids)
        for wire in self.inputs():
            op = wire.node.op
            label = graph.label(wire.outlet)
            made[wire.outlet] = drawing.canvas.add(label, op if is_open(op) else OpenInput(called=label))
        for node_id in graph.order([OutletId(node_id) for node_id in self._ids]):
            node, outlet = graph.nodes[node_id], OutletId(node_id)
            if isinstance(node.op, Constant):
                value = node.op.value if share else node.op.value.copy()
                made[outlet] = drawing.canvas.constant(node.name, value)
            elif node_id in inside:
                first = drawing.canvas.add(
                    node.name, node.op, [made[source] for source in node.inputs], len(node.outputs)
                )
                made |= {
                    OutletId(node_id, slot): OutletId(first.node, slot) for slot in range(len(node.outputs))
                }
        inputs, outputs = (
            [Connector.of(drawing.node(made[wire.outlet].node), made[wire.outlet].slot) for wire in wires]
            for wires in (self.inputs(), self.outputs())
        )
        nodes = [drawing.node(made[OutletId(node_id)].node) for node_id in self._ids]
        return GraphView(nodes, inputs, outputs)

    def replace(self, other: "Node | GraphView") -> None:
        """Put another node or view in the place of this one; whatever reads this one reads the other.

        Its open inputs, in their order, read what this one reads; its outputs go where those of this one go. Every view
        that held all of the old nodes holds the new ones; a view that held some of them loses these.
        Raises InputError: another number of inputs or outputs
        """
        new = other if isinstance(other, GraphView) else GraphView([other])
        reads, gives = self.inputs(), self.outputs()
        places, ends = new.open_inputs(), new.outputs()
        if (len(places), len(ends)) != (len(reads), len(gives)):
            raise InputError(
                f"a part with {len(reads)} inputs and {len(gives)} outputs cannot be replaced by one with "
                f"{len(places)} and {len(ends)}"
            )
        self.drawing.join(new.drawing)
        graph = self.drawing.canvas.graph
        for place, source in zip(places, reads):
            new.feed(place, source)
        old, views = list(self.nodes), list(self.drawing.views)
        holders = [view for view in views if view is not new and set(old) <= set(view.nodes)]
        for before, after in zip(gives, ends):
            graph.redirect(before.outlet, after.outlet)
            for view in views:
                if view is not new:
                    view._follow(before, after)
        for node in old:
            graph.retire(node.id)
        gone = {node for node in old if not graph.nodes[node.id].outputs}
        for view in views:
            added = new.nodes if view in holders else []
            view.nodes = sorted({*(n for n in view.nodes if n not in gone), *added}, key=lambda node: node.id)


Conversion: TypeAlias = Callable[
    [Canvas, Iterable[int], Sequence[OutletId], Sequence[OutletId]],
    tuple[list[int], dict[OutletId, OutletId]],
]
"""A part, its inputs and outputs -> the nodes that were added; output -> what it is now."""

Component: TypeAlias = "Node | GraphView | Sequence[Component]"
"""What structures are made of: nodes, views, and lists of them, which are sequences."""


def _shapes(arrays: Mapping[str, Array]) -> dict[str, str]:
    return {
        name: ",".join([*map(str, array.shape), dtype_name(array.dtype)]) for name, array in arrays.items()
    }
