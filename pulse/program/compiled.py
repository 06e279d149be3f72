"""A program that was made in this process: it has its model, graph and all."""

import hashlib

from pulse.ops.bodies import nodes_within
from pulse.ops.source import Const
from pulse.ops.stateful import Stateful
from pulse.program.program import Program
from pulse.program.weights import checked_form
from pulse.pulsify.network import PulsedNetwork


class CompiledProgram(Program):
    """A program and the model that it is made of, which ``network`` is."""

    def __init__(self, model: PulsedNetwork, form: str = "f32") -> None:
        super().__init__(model, checked_form(form))
        self.network = model

    def _digest(self) -> bytes:
        digest = hashlib.blake2b(f"{self.backend} {self.pulse} {self.form}".encode(), digest_size=16)
        for node in nodes_within(self.network.graph.nodes):
            value = node.op.value.tobytes() if isinstance(node.op, Const) else node.op.detail().encode()
            digest.update(f"{node.name} {node.op.name} {node.inputs}".encode() + value)
            if isinstance(node.op, Stateful):
                digest.update(b"".join(array.tobytes() for array in node.op.begin()))
        for register in self.network.registers:
            digest.update(f"{register.read} {register.write}".encode() + register.initial.tobytes())
        return digest.digest()
