"""A pulsed model cut into groups of nodes, each for one backend."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from pulse.dim import TDim
from pulse.errors import CompileError
from pulse.facts import PulsedFact
from pulse.graph import OutletId
from pulse.interface import Port
from pulse.ops.op import Op
from pulse.ops.source import Const, Source
from pulse.program.backends.implementations import ImplementationChoice, choose
from pulse.pulsify.network import PulsedGraph, PulsedNetwork
from pulse.support.record import record


@record(eq=False)
class BackendGroup:
    """Nodes that one backend runs together.

    backend  the backend
    network  the nodes as a pulsed model
    inputs   its inputs: name -> wire of the whole model
    outputs  its outputs: name -> wire of the whole model
    nodes    node of the whole model -> node of ``network``
    """

    backend: str
    network: PulsedNetwork
    inputs: Mapping[str, OutletId]
    outputs: Mapping[str, OutletId]
    nodes: Mapping[int, int]


@record(eq=False)
class PlacedNode:
    """A node of a program: its name, its op and its implementation."""

    name: str
    op: Op
    implementation: ImplementationChoice


@record
class Transfer:
    """A wire from one backend to another."""

    wire: str
    source: str
    target: str


def choices_by_node(network: PulsedNetwork, backend: str) -> dict[int, ImplementationChoice]:
    """Return the implementation of each node: its view's choice, else the default backend's.

    A view's kernel applies to its nodes that have a kernel of that name; there must be at least one.
    Raises CompileError: no implementation fits
    """
    graph = network.graph
    chosen: dict[int, ImplementationChoice] = {}
    backends: dict[int, str] = {}
    for view in graph.views.values():
        view_backend = view.backend or backend
        backends |= dict.fromkeys(view.nodes, view_backend)
        if view.kernel:
            chosen |= _choose_kernel(network, sorted(view.nodes), view_backend, view.kernel)
    for node in graph.nodes:
        if node.outputs and node.id not in chosen and not isinstance(node.op, Source | Const):
            facts = graph.input_facts(node)
            chosen[node.id] = choose(node.name, node.op, facts, backends.get(node.id, backend))
    return chosen


def _choose_kernel(
    network: PulsedNetwork, nodes: Iterable[int], backend: str, kernel: str
) -> dict[int, ImplementationChoice]:
    """Choose a kernel of this name for the nodes that it can compute. Raises CompileError: there is none."""
    graph = network.graph
    chosen: dict[int, ImplementationChoice] = {}
    errors: list[CompileError] = []
    for node in map(graph.nodes.__getitem__, nodes):
        try:
            chosen[node.id] = choose(node.name, node.op, graph.input_facts(node), backend, kernel)
        except CompileError as error:
            errors.append(error)
    if errors and not chosen:
        raise max(errors, key=lambda error: len(str(error)))  # the error that lists the most candidates
    return chosen


def split_by_backend(
    network: PulsedNetwork, choice_of: Mapping[int, ImplementationChoice], read_outside: Iterable[OutletId]
) -> list[BackendGroup]:
    """Split a model into groups, ordered so that each comes after those that it reads from.

    read_outside  further wires that are read from outside
    Raises        CompileError: a model that was read back in pulses, whose registers belong to no node
    """
    if network.registers:
        raise CompileError(
            f"{network.title}: a model that was written in pulses runs on one backend; set backends of the model that "
            "it was made of"
        )
    graph = network.graph
    read_outside = {*network.targets, *network.checks, *read_outside}
    order = [node_id for node_id in graph.order(list(read_outside)) if node_id in choice_of]
    groups = _group_nodes(graph, order, lambda node_id: choice_of[node_id].implementation.backend)
    return [_extract_group(network, backend, nodes, read_outside) for backend, nodes in groups]


def _group_nodes(
    graph: PulsedGraph, order: Sequence[int], backend_of: Callable[[int], str]
) -> list[tuple[str, list[int]]]:
    """Form few groups of one backend each: a group takes all ready nodes of its backend before the next begins."""
    waiting, done = list(order), set[int]()
    inside = set(order)
    groups: list[tuple[str, list[int]]] = []
    while waiting:
        backend = backend_of(waiting[0])
        members: list[int] = []
        later: list[int] = []
        for node_id in waiting:
            reads = {outlet.node for outlet in graph.nodes[node_id].inputs} & inside
            if backend_of(node_id) == backend and reads <= done:
                members.append(node_id)
                done.add(node_id)
            else:
                later.append(node_id)
        groups.append((backend, members))
        waiting = later
    return groups


def _extract_group(
    network: PulsedNetwork, backend: str, nodes: Sequence[int], read_outside: set[OutletId]
) -> BackendGroup:
    graph, part = network.graph, PulsedGraph()
    copies: dict[OutletId, OutletId] = {}
    inside = set(nodes)
    reads: dict[str, OutletId] = {}
    ports: list[Port] = []
    for node_id in nodes:
        for outlet in graph.nodes[node_id].inputs:
            if outlet in copies or outlet.node in inside:
                continue
            source, fact = graph.node(outlet), graph.fact(outlet)
            op = source.op if isinstance(source.op, Const) else Source(fact)
            copies[outlet] = part.add(graph.label(outlet), op, (), [fact])[0]
            if isinstance(op, Source):
                name = part.label(copies[outlet])
                part.inputs.append(copies[outlet])
                reads[name] = outlet
                ports.append(_make_port(name, fact))
    node_ids: dict[int, int] = {}
    for node_id in nodes:
        node = graph.nodes[node_id]
        outlets = part.add(
            node.name, node.op, [copies[o] for o in node.inputs], [o.fact for o in node.outputs]
        )
        node_ids[node_id] = outlets[0].node
        copies.update(zip(node.wires, outlets))
    outgoing = [
        outlet
        for node_id in nodes
        for outlet in graph.nodes[node_id].wires
        if outlet in read_outside
        or any(inlet.node not in inside for inlet in graph.outlet(outlet).successors)
    ]
    part.set_outputs([copies[outlet] for outlet in outgoing])
    output_wires = dict(zip(part.output_names, outgoing))
    result = replace(
        network,
        graph=part,
        inputs=tuple(ports),
        outputs=tuple(_make_port(name, graph.fact(outlet)) for name, outlet in output_wires.items()),
        wires={},
        receptive_fields={},
        registers=(),
        extra_awaited_wires=(),
        checks=tuple(copies[outlet] for outlet in network.checks if outlet.node in inside),
    )
    return BackendGroup(backend, result, reads, output_wires, node_ids)


def _make_port(name: str, fact: PulsedFact) -> Port:
    """Make the port of a wire between groups. Each pulse has all of its frames, even if the wire does not stream."""
    return Port(name, fact.sizes, fact.dtype, 0, 0, Fraction(1), TDim.of(0))


def transfers(groups: Sequence[BackendGroup], graph: PulsedGraph) -> tuple[Transfer, ...]:
    """List the wires from one backend to another, one entry for each backend that reads a wire."""
    backend_of = {outlet: group.backend for group in groups for outlet in group.outputs.values()}
    wires = dict.fromkeys(
        Transfer(graph.label(outlet), backend_of[outlet], group.backend)
        for group in groups
        for outlet in group.inputs.values()
        if outlet in backend_of and backend_of[outlet] != group.backend
    )
    return tuple(wires)
