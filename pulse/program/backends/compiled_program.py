"""A program compiled in this process, with its model."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from pulse.errors import PulseError
from pulse.graph import Node
from pulse.ops.op import Op
from pulse.ops.source import Const
from pulse.ops.stateful import Stateful
from pulse.program.backends.groups import choices
from pulse.program.backends.implementations import ImplementationChoice
from pulse.program.program import Program
from pulse.pulsify.network import PulsedNetwork
from pulse.rounding import check_form
from pulse.support.blake2 import blake2b
from pulse.support.record import record


@record(eq=False)
class PlacedNode:
    """A node of a program: its name, its op and its implementation."""

    name: str
    op: Op
    implementation: ImplementationChoice


class CompiledProgram(Program):
    """A program and the pulsed model from which it was compiled, ``network``.

    unrounded  the model with f32 activations, if ``model`` rounds them to the form of the weights; by default it
               does not
    """

    def __init__(
        self, model: PulsedNetwork, form: str = "f32", unrounded: PulsedNetwork | None = None
    ) -> None:
        super().__init__(model, check_form(form), "f32" if unrounded is None else form)
        self.network = model
        self.unrounded = model if unrounded is None else unrounded

    @cached_property
    def choices(self) -> Mapping[int, ImplementationChoice]:
        """The implementation of each node of ``network``."""
        return choices(self.network, self.default_backend)

    @property
    def default_backend(self) -> str:
        """The backend of the nodes for which no view sets one."""
        return self.backend

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("choices", None)  # computed again on demand
        return state

    def node(self, name: str) -> "PlacedNode":
        """Return a node of the pulsed graph with its implementation. Raises PulseError if there is none."""
        for node in self.network.graph.nodes:
            if node.name == name and node.id in self.choices:
                return PlacedNode(name, node.op, self.choices[node.id])
        names = ", ".join(self.network.graph.nodes[node_id].name for node_id in self.choices)
        raise PulseError(f"{self.model.title}: no node is called {name!r}; the nodes are {names}")

    @property
    def nodes(self) -> "list[PlacedNode]":
        """The nodes of the pulsed graph, each with its implementation."""
        graph = self.network.graph
        return [
            PlacedNode(graph.nodes[node_id].name, graph.nodes[node_id].op, choice)
            for node_id, choice in sorted(self.choices.items())
        ]

    def _digest(self) -> bytes:
        digest = blake2b(f"{self.backend} {self.pulse} {self.form}".encode(), digest_size=16)
        for node in _nodes_within(self.network.graph.nodes):
            value = node.op.value.tobytes() if isinstance(node.op, Const) else node.op.detail().encode()
            digest.update(f"{node.name} {node.op.name} {node.inputs}".encode() + value)
            if isinstance(node.op, Stateful):
                digest.update(b"".join(array.tobytes() for array in node.op.initial_state()))
        for register in self.network.registers:
            digest.update(f"{register.read} {register.write}".encode() + register.initial.tobytes())
        return digest.digest()


def _nodes_within(nodes: Iterable[Node[Any, Op]]) -> Iterator[Node[Any, Op]]:
    """Yield the nodes, each followed by the nodes of its bodies."""
    for node in nodes:
        yield node
        for body in node.op.bodies:
            yield from _nodes_within(body.nodes)
