"""A digest of a pulsed model: its nodes, constants and initial states."""

from collections.abc import Iterable, Iterator
from typing import Any

from pulse.graph import Node
from pulse.ops.op import Op
from pulse.ops.source import Const
from pulse.ops.stateful import Stateful
from pulse.pulsify.network import PulsedNetwork
from pulse.support.blake2 import blake2b


def digest(model: PulsedNetwork, purpose: str) -> bytes:
    """Return 16 bytes that differ between models, and between texts that say what the digest is for."""
    state = blake2b(purpose.encode(), digest_size=16)
    for node in _nodes_within(model.graph.nodes):
        value = node.op.value.tobytes() if isinstance(node.op, Const) else node.op.detail().encode()
        state.update(f"{node.name} {node.op.name} {node.inputs}".encode() + value)
        if isinstance(node.op, Stateful):
            state.update(b"".join(array.tobytes() for array in node.op.initial_state()))
    for register in model.registers:
        state.update(f"{register.read} {register.write}".encode() + register.initial.tobytes())
    return state.digest()


def _nodes_within(nodes: Iterable[Node[Any, Op]]) -> Iterator[Node[Any, Op]]:
    """Yield the nodes, each followed by the nodes of its bodies."""
    for node in nodes:
        yield node
        for body in node.op.bodies:
            yield from _nodes_within(body.nodes)
