"""The registry of backends. A backend compiles a pulsed model, or those nodes of a model that views give to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.ops.op import Op
from pulse.program.backends import conv_kernels as conv_kernels
from pulse.program.backends.groups import choices_by_node
from pulse.program.backends.implementations import (
    Implementation,
    ImplementationChoice,
    Refuse,
    register,
)
from pulse.program.program import Program
from pulse.pulsify.network import PulsedNetwork
from pulse.rounding import Rounding
from pulse.support.record import record

Prepare: TypeAlias = Callable[[Sequence[str]], None]
"""A function of the names of the kernels that a program needs."""


@record(eq=False)
class CompileRequest:
    """What a backend compiles.

    model     the model in pulses, with rounded rows if activations are rounded
    rounding  the forms of weights and activations
    fetches   other wires of it to keep, for inspection
    prepare   see ``compile_model``
    choices   node -> its implementation; none: the backend chooses
    """

    model: PulsedNetwork
    rounding: Rounding = Rounding()
    fetches: Sequence[OutletId] = ()
    prepare: Prepare | None = None
    choices: Mapping[int, ImplementationChoice] = field(default_factory=dict[int, ImplementationChoice])


@record(eq=False)
class Backend:
    """A backend.

    name     its name for users
    kernel   the name of its own implementation of ops
    compile  makes a program. Raises CompileError: it cannot run the model
    refuses  says why it does not run an op, empty if it does; None: it runs all ops
    in_parts  whether its programs run only inside of a ``MixedProgram``
    """

    name: str
    kernel: str
    compile: Callable[[CompileRequest], Program]
    refuses: Refuse | None = None
    in_parts: bool = False


BACKENDS: dict[str, Backend] = {}
"""The backends by name. The module ``pulse.runtimes.onnx_backend`` adds onnxruntime."""


def register_backend(backend: Backend) -> None:
    """Add a backend, and its own implementation of every op that it does not refuse."""
    BACKENDS[backend.name] = backend
    register(Implementation(backend.name, backend.kernel, (Op,), refuses=backend.refuses))


def _compile_kernels(request: CompileRequest) -> Program:
    from pulse.program.native.native_program import NativeProgram

    return NativeProgram(request.model, request.fetches, request.rounding, request.prepare)


def _refuse_without_kernel(op: Op, facts: Sequence[TypedFact]) -> str:
    from pulse.program.native.native_program import has_kernel

    return "" if has_kernel(op) else "has no kernel for it"


def _compile_reference(request: CompileRequest) -> Program:
    from pulse.program.backends.reference import ReferenceProgram

    choice_of = request.choices or choices_by_node(request.model, "numpy")
    computes = {node: c for node, choice in choice_of.items() if (c := choice.implementation.compute)}
    return ReferenceProgram(request.model, request.fetches, request.rounding, computes=computes)


register_backend(Backend("numba", "kernels", _compile_kernels, _refuse_without_kernel))
register_backend(Backend("numpy", "reference", _compile_reference))
