"""Loops written as single nodes (Enter, Merge, Switch, NextIteration, Exit), replaced by While nodes."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pulse.errors import LoadError
from pulse.support.naming import free_name
from pulse.tensorflow.function_library import FunctionLibrary
from pulse.tensorflow.graph_node import GraphNode, LibraryFunction, NodeOutput
from pulse.tensorflow.read.flat import FlatGraph

ENTER = ("Enter", "RefEnter")
MERGE = ("Merge", "RefMerge")
SWITCH = ("Switch", "RefSwitch")
NEXT = ("NextIteration", "RefNextIteration")
EXIT = ("Exit", "RefExit")


@dataclass(eq=False)
class _LoopVariable:
    """One variable of a loop: where it enters, is updated and leaves."""

    enter: GraphNode
    merge: GraphNode
    after: GraphNode
    switch: str = ""
    exits: list[str] = field(default_factory=list[str])


@dataclass(eq=False)
class _Loop:
    """One loop while it is replaced."""

    name: str
    variables: list[_LoopVariable] = field(default_factory=list[_LoopVariable])
    constant: list[GraphNode] = field(default_factory=list[GraphNode])
    condition: GraphNode | None = None


def loops_to_while(graph: FlatGraph, library: FunctionLibrary) -> FlatGraph:
    """Return the graph with a While node in place of the nodes of each loop. Raises LoadError: a loop is incomplete."""
    if not any(node.op_type in ENTER for node in graph):
        return graph
    return _Conversion(graph, library).run()


def find_reached(nodes: Iterable[GraphNode], enters: Iterable[str], exits: Collection[str]) -> set[str]:
    """Return every node of a loop: those that its entrances reach without leaving it."""
    readers: dict[str, list[str]] = {}
    for node in nodes:
        for name in node.predecessors:
            readers.setdefault(name, []).append(node.name)
    return with_readers(enters, readers, exits)


def with_readers(
    names: Iterable[str], readers: Mapping[str, Collection[str]], exits: Collection[str] = ()
) -> set[str]:
    """Return these nodes and all that read them, directly or through others; those in ``exits`` are left out."""
    stack = list(names)
    reached = set(stack)
    while stack:
        fresh = {name for name in readers.get(stack.pop(), ()) if name not in reached and name not in exits}
        reached |= fresh
        stack += fresh
    return reached


def inside_loops(nodes: Iterable[GraphNode]) -> set[str]:
    """Return the nodes that belong to loops."""
    all_nodes = list(nodes)
    exits = {node.name for node in all_nodes if node.op_type in EXIT}
    return find_reached(all_nodes, (node.name for node in all_nodes if node.op_type in ENTER), exits)


class _Conversion:
    def __init__(self, graph: FlatGraph, library: FunctionLibrary) -> None:
        self._graph = FlatGraph(graph, graph.title)
        self._library = library
        self._loops: dict[str, _Loop] = {}
        self._exits: dict[str, str] = {}
        self._running: list[str] = []

    def run(self) -> FlatGraph:
        """Replace every loop, those inside others first."""
        self._find()
        for name in list(self._loops):
            if name in self._loops:
                self._replace(name)
        return self._graph

    def _find(self) -> None:
        """Find the parts of each loop."""
        readers: dict[str, list[GraphNode]] = {}
        for node in self._graph:
            for tensor in node.inputs:
                readers.setdefault(tensor.node, []).append(node)
        for node in self._graph:
            if node.op_type not in ENTER:
                continue
            if len(node.inputs) != 1:
                raise node.error("it needs one input; the file is damaged, export it again")
            title = str(node.attributes.get("frame_name", ""))
            loop = self._loops.setdefault(title, _Loop(title))
            if node.attributes.get("is_constant") is True:
                loop.constant.append(node)
                continue
            merge = next((source for source in readers.get(node.name, ()) if source.op_type in MERGE), None)
            if merge is None:  # nothing updates it: the loop does not change it
                loop.constant.append(node)
                continue
            sources = [self._graph.nodes.get(tensor.node) for tensor in merge.inputs]
            after = next(
                (source for source in sources if source is not None and source.op_type in NEXT), None
            )
            if after is None or len(after.inputs) != 1:
                raise merge.error("no NextIteration node computes its next value; export the model again")
            variable = _LoopVariable(node, merge, after)
            loop.variables.append(variable)
            self._find_exits(loop, variable, readers)

    def _find_exits(self, loop: _Loop, variable: _LoopVariable, readers: dict[str, list[GraphNode]]) -> None:
        for switch in readers.get(variable.merge.name, ()):
            if switch.op_type not in SWITCH or len(switch.inputs) != 2:
                continue
            condition = self._graph.nodes.get(switch.inputs[1].node)
            if condition is None or condition.op_type != "LoopCond":
                continue
            variable.switch, loop.condition = switch.name, condition
            for exit_ in readers.get(switch.name, ()):
                if exit_.op_type in EXIT:
                    variable.exits.append(exit_.name)
                    self._exits[exit_.name] = loop.name

    def _replace(self, name: str) -> None:
        if name in self._running:
            raise LoadError(
                f"{self._graph.title}: loop {name!r} reads its own result; the file is damaged, export it again"
            )
        self._running.append(name)
        loop = self._loops[name]
        condition = loop.condition
        if condition is None or len(condition.inputs) != 1:
            raise LoadError(
                f"{self._graph.title}: loop {name!r} has no condition (LoopCond); export the model again"
            )
        enters = [*(variable.enter for variable in loop.variables), *loop.constant]
        before = {NodeOutput(variable.merge.name): variable.merge.name for variable in loop.variables}
        updates = {
            NodeOutput(variable.switch or variable.merge.name, 1): variable.switch
            or f"{variable.merge.name}/iteration"
            for variable in loop.variables
        }
        constants = {NodeOutput(node.name): node.name for node in loop.constant}
        results = [*(variable.after.inputs[0] for variable in loop.variables), *constants]
        types = tuple(node.type_number("T") for node in enters)
        condition_function = self._function(
            f"{name}/condition", before | constants, types, [condition.inputs[0]]
        )
        body = self._function(f"{name}/body", updates | constants, types, results)
        loop_name = free_name(name or "while", self._graph.nodes.__contains__, "_", 2)
        exits = {exit_: index for index, variable in enumerate(loop.variables) for exit_ in variable.exits}
        inside = find_reached(self._graph, [node.name for node in enters], set(exits))
        nodes: list[GraphNode] = []
        for node in self._graph:
            if node.name in exits:
                node = GraphNode(node.name, "Identity", (NodeOutput(loop_name, exits[node.name]),))
            elif node.name in inside:
                continue
            elif inside.intersection(node.controls):
                controls = dict.fromkeys(
                    loop_name if control in inside else control for control in node.controls
                )
                node = node.with_inputs(node.inputs, controls)
            nodes.append(node)
        functions = {"cond": self._library.add(condition_function), "body": self._library.add(body)}
        outer = tuple(node.inputs[0] for node in enters)
        nodes.append(GraphNode(loop_name, "While", outer, (), None, functions))
        self._graph = FlatGraph(nodes, self._graph.title)
        del self._loops[name]
        for exit_ in exits:
            self._exits.pop(exit_, None)
        self._running.pop()

    def _function(
        self, name: str, ports: dict[NodeOutput, str], types: tuple[int, ...], outputs: list[NodeOutput]
    ) -> LibraryFunction:
        """Return the nodes between the arguments of a loop and some results, as a function."""
        nodes = self._take_body(ports, outputs)
        arguments = set(ports.values())

        def move(tensors: Iterable[NodeOutput]) -> tuple[NodeOutput, ...]:
            return tuple(NodeOutput(ports[tensor]) if tensor in ports else tensor for tensor in tensors)

        body = [
            node.with_inputs(move(node.inputs), (control for control in node.controls if control in nodes))
            for node in nodes.values()
        ]
        if arguments & nodes.keys():
            raise LoadError(
                f"{self._graph.title}: loop {name!r} reads a value of the iteration before; export the model again"
            )
        return LibraryFunction(name, tuple(ports.values()), types, tuple(body), move(outputs))

    def _take_body(self, ports: dict[NodeOutput, str], outputs: list[NodeOutput]) -> dict[str, GraphNode]:
        names: set[str] = set()
        stack = [tensor for tensor in outputs if tensor not in ports]
        while stack:
            name = stack.pop().node
            if name in names:
                continue
            if name in self._exits:
                self._replace(self._exits[name])
            node = self._graph.node(name, "a loop")
            if node.op_type in ENTER or (
                node.op_type in MERGE
                and any(
                    self._graph.nodes[tensor.node].op_type in NEXT
                    for tensor in node.inputs
                    if tensor.node in self._graph.nodes
                )
            ):
                raise node.error("one loop reads it, but it belongs to another; export the model again")
            names.add(name)
            stack += [tensor for tensor in node.inputs if tensor not in ports]
            stack += [NodeOutput(control) for control in node.controls if self._is_effect(control)]
        return {name: node for name, node in self._graph.nodes.items() if name in names}

    def _is_effect(self, name: str) -> bool:
        node = self._graph.nodes.get(name)
        return node is not None and node.op_type.startswith("Assign")
