"""Nodes, the wires between them, and views of them: three handles of one graph under construction.

If nodes of two graphs are connected, the graphs become one; handles stay valid.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pulse.build.canvas import OpenInput, is_open, is_operator
from pulse.build.drawing import Drawing, Handle, Part
from pulse.build.part_view import PartView
from pulse.build.schemas import check_attributes
from pulse.errors import InputError
from pulse.graph import OutletId
from pulse.infer.network import Constant
from pulse.infer.op import InferenceOp
from pulse.models import HasModel, Model
from pulse.onnx.read.op import OnnxOp
from pulse.support.naming import unknown_name
from pulse.support.wording import count_of
from pulse.text.matching import find_matches


class Node(Handle, HasModel):
    """An operator in a graph, with its inputs and readers.

    Inputs and outputs are counted from 0, in ONNX's order: for a convolution 0 is the data, 1 the weight, 2 the bias.
    Parameters are separate nodes (``Producer``), which belong to the nodes that read them.
    """

    @classmethod
    def of(cls, drawing: Drawing, node_id: int) -> "Node":
        """Return the one handle of a node."""
        handle = drawing.handles.get(node_id)
        return handle if isinstance(handle, Node) else cls(drawing, node_id)

    @property
    def _node(self) -> Any:
        return self.drawing.graph.nodes[self.id]

    @property
    def name(self) -> str:
        """Its name, the only one of the graph."""
        return self._node.name

    @property
    def op(self) -> InferenceOp:
        """The operation. It refers to no node or state, so several nodes may have the same one (``share``)."""
        return self._node.op

    @property
    def type(self) -> str:
        """The operator's name, with its domain unless that is ONNX's own: ``com.microsoft::Gelu``."""
        return self.op.name

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that were given, by name."""
        return dict(self.op.attributes) if isinstance(self.op, OnnxOp) else {}

    def set_attributes(self, **attributes: Any) -> None:
        """Change attributes of this node alone; None removes one. Raises InputError: no such attribute, or value."""
        op = self.op
        if not isinstance(op, OnnxOp):
            raise InputError(f"{self.name} ({self.type}): has no attributes; omit them")
        location = f"{self.name} ({self.type})"
        new_attributes = check_attributes(op.domain, op.op_type, {**op.attributes, **attributes}, location)
        self._node.op = replace(op, attributes=new_attributes)

    @property
    def outputs(self) -> int:
        """How many outputs it has."""
        return len(self._node.outputs)

    def category(self, in_: int) -> str:
        """Return the kind of an input: ``data``, ``param`` (constant) or ``optional`` (omitted).

        Raises InputError: no such input
        """
        source = self.drawing.source(self.id, in_)
        if source is None:
            return "optional"
        return "param" if isinstance(self.drawing.op(source), Constant) else "data"

    def inputs(self) -> "list[Connector | None]":
        """Return the wire of each input; None if nothing feeds it."""
        drawing = self.drawing
        sources = (drawing.source(self.id, index) for index in range(drawing.input_count(self.id)))
        return [
            None
            if outlet is None or is_open(drawing.op(outlet))
            else Connector.of(Node.of(drawing, outlet.node), outlet.slot)
            for outlet in sources
        ]

    def parents(self) -> "list[Node]":
        """Return the nodes that it reads, each once, in the order of the inputs; parameters included."""
        return list(dict.fromkeys(wire.node for wire in self.inputs() if wire is not None))

    def parent(self, in_: int) -> "Node | None":
        """Return the node that an input reads; None if nothing feeds it. Raises InputError: no such input."""
        self.drawing.source(self.id, in_)
        wire = self.inputs()[in_]
        return None if wire is None else wire.node

    def children(self, out: int | None = None) -> "list[Node]":
        """Return the nodes that read it, or one of its outputs; each once."""
        outlets = self._node.outputs if out is None else [self._node.outputs[self._output(out)]]
        readers = (inlet.node for outlet in outlets for inlet in outlet.successors)
        return [Node.of(self.drawing, node_id) for node_id in dict.fromkeys(readers)]

    def _output(self, out: int) -> int:
        if not 0 <= out < self.outputs:
            raise InputError(
                f"{self.name} ({self.type}): it has no output {out}; its outputs are 0 to {self.outputs - 1}"
            )
        return out

    def add_child(self, other: "Node | GraphView", out: int = 0, in_: int = 0) -> "Node | GraphView":
        """Connect an output of this node to an input of another one; return the other node.

        other   a node; or a view, ``in_`` being one of its open inputs
        Raises  InputError: no such output or input, one that a node feeds already (a parameter gives way), or a cycle
        """
        Connector.of(self, self._output(out)).feed(other, in_)
        return other

    def __call__(self, *connectors: "Connector") -> "Any":
        """Feed the data inputs in order; return a Connector for each output, alone if there is one output.

        If the node is fed already, another one with its operator and parameters (``share``) is fed instead.
        Raises InputError: the number of connectors differs from the data inputs
        """
        node = self if self.drawing.open_input_indices(self.id) else self.share()
        indices = node.drawing.open_input_indices(node.id)
        if len(connectors) != len(indices):
            raise InputError(
                f"{node.name} ({node.type}): it has {count_of(len(indices), 'data input')}, and {len(connectors)} "
                "connectors are "
                "given; give one for each"
            )
        for connector, index in zip(connectors, indices):
            require_connector(connector).feed(node, index)
        output_connectors = [Connector.of(node, slot) for slot in range(node.outputs)]
        return output_connectors[0] if len(output_connectors) == 1 else tuple(output_connectors)

    def share(self) -> "Node":
        """Return another node of the same operator, not fed yet.

        Both read the same parameters, which are stored and counted once; each has its own state.
        """
        return Node.of(self.drawing, self.drawing.share(self.id))

    def replace(self, other: "Node | GraphView") -> None:
        """Replace this node by a node or a view; as ``GraphView.replace``."""
        GraphView([self]).replace(other)

    def to_model(self, inputs: Mapping[str, str] | None = None) -> Model:
        return GraphView([self]).graph(inputs)

    def __repr__(self) -> str:
        return f"<{self.type} {self.name}>"


class Connector(HasModel):
    """A wire: an output of a node, or an input of the future model.

    name    name of the input, for feeds
    shape   its dims and type, such as ``1,80,T,f32``; inferred from the weights by default
    """

    def __init__(self, name: str = "x", shape: str = "") -> None:
        drawing = Drawing()
        self.node = Node.of(drawing, drawing.add(name, OpenInput(shape, True, name)).node)
        self.slot = 0

    @classmethod
    def of(cls, node: Node, slot: int = 0) -> "Connector":
        """Return an output of a node."""
        connector = cls.__new__(cls)
        connector.node, connector.slot = node, slot
        return connector

    @property
    def outlet(self) -> OutletId:
        """The outlet in the graph."""
        return OutletId(self.node.id, self.slot)

    def feed(self, other: "Node | GraphView", in_: int = 0) -> None:
        """Connect this wire to an input of a node or an open one of a view. Raises InputError as ``add_child``."""
        reader: Any = other
        if not isinstance(reader, Node | GraphView):
            raise InputError(f"a wire feeds a node or a view, not {reader!r}")
        self.require_there()
        if isinstance(other, GraphView):
            open_inputs = other.open_inputs()
            if not 0 <= in_ < len(open_inputs):
                raise InputError(f"the view has no open input {in_}; it has {len(open_inputs)}")
            other.feed(open_inputs[in_], self)
            return
        other.drawing.source(other.id, in_)
        self.node.drawing.join(other.drawing)
        self.node.drawing.connect(self.outlet, other.id, in_)

    def graph(self, *others: "Connector") -> "GraphView":
        """Return the view of all that this wire, and the others, are computed from; they are its outputs."""
        ends = (self, *others)
        for end in ends:
            require_connector(end).require_there()
        for other in others:
            self.node.drawing.join(other.node.drawing)
        drawing = self.node.drawing
        order = drawing.graph.order([end.outlet for end in ends])
        handles = [Node.of(drawing, node_id) for node_id in order]
        inputs = [Connector.of(node) for node in handles if is_open(node.op)]
        return GraphView([node for node in handles if is_operator(node.op)], inputs, ends)

    def to_model(self, inputs: Mapping[str, str] | None = None) -> Model:
        return self.graph().graph(inputs)

    def require_there(self) -> None:
        """Raise InputError for an input that another wire has replaced."""
        if not self.node.drawing.graph.nodes[self.node.id].outputs:
            raise InputError("this connector was an input that another wire now feeds; use that wire")

    def __repr__(self) -> str:
        return f"<Connector {self.node.drawing.graph.label(self.outlet)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Connector) and (self.node, self.slot) == (other.node, other.slot)

    def __hash__(self) -> int:
        return hash((self.node, self.slot))


def require_connector(value: object) -> Connector:
    """Return the connector. Raises InputError: it is something else."""
    if isinstance(value, Connector):
        return value
    raise InputError(f"nodes and views are called with connectors, not with {value!r}")


class GraphView(PartView):
    """Some nodes of a graph: the whole or a part of it; views may overlap. Nothing is copied.

    nodes    operators; parameters belong to their readers
    inputs   the order of the wires that are read from outside; the nodes' order by default
    outputs  the wires that are its results; by default those read outside, and those of nodes without readers inside
    name     a view with a name can be found in models of its graph (``TypedModel.view``)
    Raises   InputError: nodes of two graphs
    """

    _called = False

    def __init__(
        self,
        nodes: Iterable[Node],
        inputs: "Sequence[Connector] | None" = None,
        outputs: "Sequence[Connector] | None" = None,
        name: str = "",
    ) -> None:
        members = list(dict.fromkeys(nodes))
        drawings = {id(node.drawing): node.drawing for node in members}
        drawings |= {id(end.node.drawing): end.node.drawing for end in (*(inputs or ()), *(outputs or ()))}
        if len(drawings) != 1:
            what = "none" if not drawings else "nodes of several graphs; connect them first"
            raise InputError(f"a view needs nodes of one graph, not {what}")
        (drawing,) = drawings.values()
        reads, gives = (None if ends is None else [end.outlet for end in ends] for ends in (inputs, outputs))
        self.part = Part(drawing, [node.id for node in members], reads, gives, name)

    @classmethod
    def of_part(cls, part: Part) -> "GraphView":
        """Return the view of a part."""
        view = cls.__new__(cls)
        view.part = part
        return view

    @classmethod
    def of(cls, model: Model) -> "GraphView":
        """Return a model from a file as an editable graph; ``graph()`` returns the model."""
        copy = model.graph.compact_copy()
        part = Part(Drawing(copy, model.scope), range(len(copy.nodes)), list(copy.inputs), list(copy.outputs))
        part.titles = list(copy.output_names)
        copy.inputs = []
        copy.set_outputs([], [])
        return cls.of_part(part)

    @property
    def nodes(self) -> list[Node]:
        """The nodes, in the order in which they were made."""
        return self._handles(self.part.nodes)

    def _handles(self, node_ids: Iterable[int]) -> list[Node]:
        return [Node.of(self.part.drawing, node_id) for node_id in node_ids]

    def _connectors(self, outlets: Iterable[OutletId]) -> list[Connector]:
        return [Connector.of(Node.of(self.part.drawing, outlet.node), outlet.slot) for outlet in outlets]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<GraphView {', '.join(node.name for node in self.nodes)}>"

    def __contains__(self, node: object) -> bool:
        return node in self.nodes

    def __getitem__(self, name: str) -> Node:
        """Return a node by its name. Raises InputError: no such node."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise InputError(unknown_name("node of the view", name, (node.name for node in self)))

    # borders

    def inputs(self) -> list[Connector]:
        """Return the wires that it reads and does not make, each once; constants left out."""
        return self._connectors(self.part.inputs())

    def outputs(self) -> list[Connector]:
        """Return the wires that are its results."""
        return self._connectors(self.part.outputs())

    def input_nodes(self) -> list[Node]:
        """Return the nodes that read no node of the view."""
        inside = set(self.nodes)
        return [node for node in self.nodes if inside.isdisjoint(node.parents())]

    def output_nodes(self) -> list[Node]:
        """Return the nodes that no node of the view reads."""
        inside = set(self.nodes)
        return [node for node in self.nodes if inside.isdisjoint(node.children())]

    def inner_nodes(self) -> list[Node]:
        """Return the nodes that are neither input nodes nor output nodes."""
        border = {*self.input_nodes(), *self.output_nodes()}
        return [node for node in self.nodes if node not in border]

    def parameters(self) -> list[Node]:
        """Return the constants that its nodes read, each once."""
        parents = dict.fromkeys(parent for node in self.nodes for parent in node.parents())
        return [node for node in parents if isinstance(node.op, Constant)]

    def match(self, query: str) -> "list[GraphView]":
        """Return the parts of the view that fit a query, such as ``Conv->BatchNorm?->Relu``; see docs/aidge.md.

        Raises InputError: not a query
        """
        matches = find_matches(self.part.graph, query, set(self.part.nodes))
        return [GraphView(self._handles(match.nodes)) for match in matches]

    # use

    def add_child(self, other: "Node | GraphView", out: int = 0, in_: int = 0) -> "Node | GraphView":
        """Connect one of its outputs to an input of another part; as ``Node.add_child``."""
        ends = self.outputs()
        if not 0 <= out < len(ends):
            raise InputError(f"the view has no output {out}; it has {len(ends)}")
        ends[out].feed(other, in_)
        return other

    def __call__(self, *connectors: Connector) -> Any:
        """Feed its open inputs in order; return a Connector for each output, alone if there is one output.

        Raises InputError: the number of connectors differs from the open inputs, a cycle, or a second call
        """
        if self._called:
            raise InputError(
                "the view has already been called; call a clone of it: clone(share='params') has its parameters"
            )
        open_inputs = self.open_inputs()
        if len(connectors) != len(open_inputs):
            raise InputError(
                f"the view has {count_of(len(open_inputs), 'open input')}, and {len(connectors)} connectors are given; "
                "give one for each"
            )
        for open_input, connector in zip(open_inputs, connectors):
            self.feed(open_input, require_connector(connector))
        self._called = True
        ends = self.outputs()
        return ends[0] if len(ends) == 1 else tuple(ends)

    def open_inputs(self) -> list[Connector]:
        """Return the inputs that no node feeds yet."""
        return self._connectors(self.part.open_inputs())

    def feed(self, open_input: Connector, source: Connector) -> None:
        """Connect all readers of an open input to another wire. Raises InputError: that would close a cycle."""
        source.require_there()
        source.node.drawing.join(open_input.node.drawing)
        source.node.drawing.feed(open_input.outlet, source.outlet)

    # changes

    def clone(self, share: str = "") -> "GraphView":
        """Return a copy of the nodes in a new graph.

        share   ``params``: both read the same arrays; by default the clone has copies
        Raises  InputError: another value of ``share``
        """
        if share not in ("", "params"):
            raise InputError(f"share must be 'params' or omitted, not {share!r}")
        return GraphView.of_part(self.part.clone(bool(share)))

    def replace(self, other: "Node | GraphView") -> None:
        """Replace this one by another node or view, for all its readers.

        The open inputs of the other one, in order, read the inputs of this one, and its outputs replace those of this
        one. A view that contained all of the old nodes contains the new ones; a view that contained some of them loses
        these.
        Raises InputError: another number of inputs or outputs
        """
        new = other if isinstance(other, GraphView) else GraphView([other])
        self.part.replace(new.part)


Component: TypeAlias = "Node | GraphView | Sequence[Component]"
"""A component of a structure: a node, a view, or a list of them, which is a sequence."""
