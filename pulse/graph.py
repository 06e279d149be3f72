"""The graph: nodes, their outlets, and who reads them."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, TypeVar

from pulse.errors import PulseError
from pulse.support.naming import unknown_name
from pulse.support.wording import count_of

F = TypeVar("F")
O = TypeVar("O")


class OutletId(NamedTuple):
    """One output of one node."""

    node: int
    slot: int = 0


class InletId(NamedTuple):
    """One input of one node."""

    node: int
    slot: int


@dataclass(slots=True, eq=False)
class Outlet(Generic[F]):
    """The fact of a wire, and the inlets that read it: an ordered set, since one wire may have many readers."""

    fact: F
    successors: dict[InletId, None] = field(default_factory=dict[InletId, None])


@dataclass(slots=True, eq=False)
class Node(Generic[F, O]):
    """An operation, the outlets it reads and the outlets it makes.

    id       its index in the graph
    name     its name, unique in the graph
    op       its operation
    inputs   the outlets that it reads
    outputs  the outlets that it makes
    """

    id: int
    name: str
    op: O
    inputs: list[OutletId]
    outputs: list[Outlet[F]]

    @property
    def wires(self) -> list[OutletId]:
        """The ids of its outlets."""
        return [OutletId(self.id, slot) for slot in range(len(self.outputs))]


@dataclass(slots=True)
class View:
    """Some nodes of a graph under a name; rewriting keeps it up to date.

    nodes            the ids of its nodes
    backend, kernel  the requested ones for its nodes; see ``pulse.program.backends.implementations``
    """

    nodes: set[int]
    backend: str = ""
    kernel: str = ""

    def translate(self, new_ids: Mapping[int, Iterable[int]]) -> "View":
        """Return the view in another graph; ``new_ids`` maps each node to its nodes there."""
        nodes = {new for node in self.nodes for new in new_ids.get(node, ())}
        return View(nodes, self.backend, self.kernel)


class Graph(Generic[F, O]):
    """Nodes in the order of their creation, the model's inputs and its outputs.

    Successors are the inverse of the nodes' inputs; ``check`` proves it.
    A node never reads a later node until a patch is applied; ``order`` is always a topological one.
    A retired node keeps its place and its id, but has no outputs and no inputs.
    """

    def __init__(self) -> None:
        self.nodes: list[Node[F, O]] = []
        self.inputs: list[OutletId] = []
        self._outputs: list[OutletId] = []
        self._output_indices: dict[OutletId, list[int]] = {}
        self.output_names: list[str] = []
        self.views: dict[str, View] = {}
        """The user's views by name; empty if unused."""
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}

    @property
    def outputs(self) -> Sequence[OutletId]:
        """The outputs of the model, in their order; ``set_outputs`` changes them."""
        return self._outputs

    def is_output(self, outlet: OutletId) -> bool:
        """Return whether an outlet is an output of the model."""
        return outlet in self._output_indices

    def add(self, name: str, op: O, inputs: Sequence[OutletId], facts: Sequence[F]) -> list[OutletId]:
        """Append a node and return its outlets, one for each fact."""
        node_id, names = len(self.nodes), self._names
        free_name = self.unique(name) if name in names else name
        if inputs:
            for slot, source in enumerate([self.outlet(outlet) for outlet in inputs]):
                source.successors[InletId(node_id, slot)] = None
        self.nodes.append(Node(node_id, free_name, op, list(inputs), [Outlet(fact, {}) for fact in facts]))
        names.add(free_name)
        return [OutletId(node_id, slot) for slot in range(len(facts))]

    def unique(self, name: str) -> str:
        """Return ``name``, with a number if it is taken."""
        if name not in self._names:
            return name
        suffix = self._numbers.get(name, 0) + 1
        while f"{name}.{suffix}" in self._names:
            suffix += 1
        self._numbers[name] = suffix - 1
        return f"{name}.{suffix}"

    def _release_name(self, name: str) -> None:
        """Free a name; for each name, ``_numbers`` holds a number up to which all numbered names are in use."""
        self._names.discard(name)
        base, _, suffix = name.rpartition(".")
        if base in self._numbers and suffix.isdecimal() and len(suffix) < 10:
            self._numbers[base] = min(self._numbers[base], int(suffix) - 1)

    def set_outputs(self, outputs: Sequence[OutletId], names: Sequence[str] | None = None) -> None:
        """Make any outlets the outputs of the model."""
        for outlet in outputs:
            self.outlet(outlet)
        output_names = [self.label(outlet) for outlet in outputs] if names is None else list(names)
        if len(output_names) != len(outputs) or len(set(output_names)) != len(output_names):
            raise PulseError(f"outputs need one distinct name each, got {output_names}")
        self._outputs, self._output_indices = list(outputs), {}
        for index, outlet in enumerate(outputs):
            self._output_indices.setdefault(outlet, []).append(index)
        self.output_names = output_names

    def node(self, outlet: OutletId) -> Node[F, O]:
        """Return the node that makes an outlet."""
        return self.nodes[outlet.node]

    def outlet(self, outlet: OutletId) -> Outlet[F]:
        """Return the outlet itself."""
        try:
            return self.nodes[outlet.node].outputs[outlet.slot]
        except IndexError:
            raise PulseError(
                f"no outlet {outlet} in a graph of {count_of(len(self.nodes), 'node')}"
            ) from None

    def fact(self, outlet: OutletId) -> F:
        """Return the fact of an outlet."""
        return self.outlet(outlet).fact

    def input_facts(self, node: Node[F, O]) -> list[F]:
        """Return the facts of the wires that a node reads."""
        return [self.fact(outlet) for outlet in node.inputs]

    def label(self, outlet: OutletId) -> str:
        """Return the wire's name: its node's, with the slot if there are several."""
        node = self.node(outlet)
        return node.name if len(node.outputs) == 1 else f"{node.name}:{outlet.slot}"

    def find(self, label: str) -> OutletId:
        """Return the outlet of a name: an output's, or a wire's label; ``x:0`` is ``x`` if no other has that name."""
        for name in (label, label.removesuffix(":0")):
            if name in self.output_names:
                return self.outputs[self.output_names.index(name)]
            for wire in self.wires():
                if self.label(wire) == name:
                    return wire
        wires = (self.label(wire) for wire in self.wires())
        raise PulseError(unknown_name("wire", label, dict.fromkeys([*self.output_names, *wires])))

    def order(self, targets: Sequence[OutletId] | None = None) -> list[int]:
        """Return the nodes that the targets (the outputs by default) need, each after what it reads."""
        nodes, entered, done = self.nodes, set[int](), set[int]()
        order: list[int] = []
        for outlet in self.outputs if targets is None else targets:
            if outlet.node in done:
                continue
            stack = [(outlet.node, iter(nodes[outlet.node].inputs))]
            entered.add(outlet.node)
            while stack:
                node_id, ahead = stack[-1]
                for source, _ in ahead:
                    if source in done:
                        continue
                    if source in entered:
                        raise PulseError(f"the graph has a cycle through {nodes[source].name}")
                    if inputs := nodes[source].inputs:
                        stack.append((source, iter(inputs)))
                        entered.add(source)
                        break
                    done.add(source)
                    order.append(source)
                else:
                    stack.pop()
                    done.add(node_id)
                    order.append(node_id)
        return order

    def order_after(self, known: Container[OutletId], targets: Sequence[OutletId]) -> list[int]:
        """Return the nodes that the targets need if the outlets in ``known`` are given, each after what it reads."""
        needed, order = set(targets), list[int]()
        for node_id in reversed(self.order(targets)):
            node = self.nodes[node_id]
            if any(wire in needed and wire not in known for wire in node.wires):
                needed.update(node.inputs)
                order.append(node_id)
        return order[::-1]

    def wires(self) -> Iterator[OutletId]:
        """Yield every outlet, in the order of the nodes."""
        for node in self.nodes:
            yield from node.wires

    def redirect(self, old: OutletId, new: OutletId, before: int | None = None) -> None:
        """Connect the readers of ``old``, including outputs of the model, to ``new``.

        before  only the readers with a smaller id; all of them by default
        """
        if old == new:
            return
        source, target = self.outlet(old), self.outlet(new)
        inlets = [inlet for inlet in source.successors if before is None or inlet.node < before]
        for inlet in inlets:
            del source.successors[inlet]
            self.nodes[inlet.node].inputs[inlet.slot] = new
            target.successors[inlet] = None
        for index in self._output_indices.pop(old, ()):
            self._outputs[index] = new
            self._output_indices.setdefault(new, []).append(index)

    def retire(self, node_id: int, first: int = 0) -> None:
        """Take a node out if it is not read, then what only it read; their names are free again.

        Inputs and outputs of the model stay, and nodes before number ``first``.
        """
        pending = [node_id]
        while pending:
            node = self.nodes[pending.pop()]
            if not node.outputs or any(
                self.outlet(wire).successors or self.is_output(wire) or wire in self.inputs
                for wire in node.wires
            ):
                continue
            for slot, outlet in enumerate(node.inputs):
                del self.outlet(outlet).successors[InletId(node.id, slot)]
                if outlet.node >= first:
                    pending.append(outlet.node)
            node.inputs, node.outputs = [], []
            self._release_name(node.name)
            for view in self.views.values():
                view.nodes.discard(node.id)

    def rename(self, node_id: int, name: str) -> None:
        """Give a node another name, with a number if it is taken."""
        node = self.nodes[node_id]
        self._release_name(node.name)
        node.name = self.unique(name)
        self._names.add(node.name)

    def connect(self, outlet: OutletId, inlet: InletId) -> None:
        """Connect one inlet to another outlet; nodes that only it read stay until they are retired."""
        target = self.outlet(outlet)
        inputs = self.nodes[inlet.node].inputs
        if inlet.slot == len(inputs):
            inputs.append(outlet)
        else:
            self.outlet(inputs[inlet.slot]).successors.pop(inlet)
            inputs[inlet.slot] = outlet
        target.successors[inlet] = None

    def absorb(self, other: "Graph[F, O]") -> int:
        """Take over the nodes of another graph, which is then empty; return the number added to their ids.

        A node has its name, with a number if that is taken. Inputs and outputs of the model stay those of this graph.
        """
        offset = len(self.nodes)
        for node in other.nodes:
            node.id += offset
            node.inputs = [OutletId(source + offset, slot) for source, slot in node.inputs]
            for outlet in node.outputs:
                outlet.successors = {
                    InletId(reader + offset, slot): None for reader, slot in outlet.successors
                }
            if node.outputs:
                node.name = self.unique(node.name)
                self._names.add(node.name)
        self.nodes += other.nodes
        other.__init__()
        return offset

    def duplicate(self) -> "Graph[F, O]":
        """Return a copy of the graph with the same node ids; ops and facts are shared."""
        result = Graph[F, O]()
        for node in self.nodes:
            outlets = [Outlet(outlet.fact, dict(outlet.successors)) for outlet in node.outputs]
            result.nodes.append(Node(node.id, node.name, node.op, list(node.inputs), outlets))
        result.inputs = list(self.inputs)
        result._names, result._numbers = set(self._names), dict(self._numbers)
        result.set_outputs(self.outputs, self.output_names)
        result.views = {name: replace(view, nodes=set(view.nodes)) for name, view in self.views.items()}
        return result

    def compact_copy(self) -> "Graph[F, O]":
        """Return the graph in order, with only its inputs and the nodes that its outputs need."""
        result = Graph[F, O]()
        order = dict.fromkeys((*(outlet.node for outlet in self.inputs), *self.order()))
        new_ids = {node_id: index for index, node_id in enumerate(order)}
        for node_id, index in new_ids.items():
            node = self.nodes[node_id]
            inputs = [OutletId(new_ids[source], slot) for source, slot in node.inputs]
            for slot, source in enumerate(inputs):
                result.nodes[source.node].outputs[source.slot].successors[InletId(index, slot)] = None
            outlets = [Outlet(outlet.fact, {}) for outlet in node.outputs]
            result.nodes.append(Node(index, node.name, node.op, inputs, outlets))
            result._names.add(node.name)
        result.inputs = [OutletId(new_ids[node_id], slot) for node_id, slot in self.inputs]
        outputs = [OutletId(new_ids[node_id], slot) for node_id, slot in self.outputs]
        result.set_outputs(outputs, self.output_names)
        result.views = self.views_in({node_id: (index,) for node_id, index in new_ids.items()})
        return result

    def views_in(self, new_ids: Mapping[int, Iterable[int]]) -> dict[str, View]:
        """Return the views in another graph: node -> the nodes that replace it there."""
        return {name: view.translate(new_ids) for name, view in self.views.items()}

    def check(self) -> None:
        """Check that successors match inputs, and that names and outputs are valid."""
        successors = {
            (node.id, slot, *inlet)
            for node in self.nodes
            for slot, outlet in enumerate(node.outputs)
            for inlet in outlet.successors
        }
        inputs = {(*outlet, node.id, slot) for node in self.nodes for slot, outlet in enumerate(node.inputs)}
        if successors != inputs:
            raise PulseError(f"successors are wrong: {successors ^ inputs}")
        names = [node.name for node in self.nodes if node.outputs]
        if len(set(names)) != len(names):
            raise PulseError("two nodes share a name")
        for outlet in (*self.inputs, *self.outputs):
            self.outlet(outlet)
        self.order([OutletId(node.id) for node in self.nodes if node.outputs])
