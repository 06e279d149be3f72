"""Compile a pulsed model into a program."""

from collections.abc import Callable, Mapping, Sequence

from pulse.errors import CompileError
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.ops.op import Op
from pulse.program.activation_rounding import with_rounded_rows
from pulse.program.backends import conv_kernels as conv_kernels
from pulse.program.backends.groups import choices
from pulse.program.backends.implementations import Implementation, OpFunction, has_preferred, register
from pulse.program.program import Program
from pulse.pulsify.network import PulsedNetwork
from pulse.rounding import Rounding

BACKENDS = ("numba", "numpy")

OTHER_BACKENDS: dict[str, Callable[[PulsedNetwork, str], Program]] = {}
"""Backend of another package -> function (model, form of the weights) -> program."""

Prepare = Callable[[Sequence[str]], None]
"""A function of the names of the kernels that a program needs."""


def compile_model(
    model: PulsedNetwork,
    backend: str = "numba",
    rounding: Rounding = Rounding(),
    *,
    fetches: Sequence[OutletId] | None = None,
    prepare: Prepare | None = None,
) -> Program:
    """Compile a pulsed model into a program.

    backend   ``numba``: kernels over one arena, no GIL and no allocation in a step; ``numpy``: the reference. Views
              may set other backends, and kernels, for their nodes
    rounding  the forms of weights and activations; all other tensors, and sums, are f32
    fetches   other wires of the pulsed graph to keep, for inspection
    prepare   called with the names of all kernels that the program needs, before they are compiled or loaded one by
              one; compiling happens once on a machine. ``streaming.compilation.warming`` has functions that compile
              several at once and show a progress bar
    Raises    CompileError: an op has no kernel; the backend, the form of weights or of activations is unknown;
              or no product takes rows of it
    """
    (form, row_form), unrounded = rounding.resolve(), None
    if row_form is not None:
        model, unrounded = with_rounded_rows(model, row_form), model
    backends = (*BACKENDS, *OTHER_BACKENDS)
    if backend not in backends:
        raise CompileError(f"no backend {backend!r}; choose {', '.join(backends[:-1])} or {backends[-1]}")
    is_mixed = any(view.backend not in ("", backend) or view.kernel for view in model.graph.views.values())
    has_choice = is_mixed or backend in OTHER_BACKENDS or (backend == "numpy" and has_preferred())
    choice_of = choices(model, backend) if has_choice else {}
    if backend in OTHER_BACKENDS or any(
        choice.implementation.backend != backend for choice in choice_of.values()
    ):

        def compile_part(name: str, part: PulsedNetwork, computes: Mapping[int, OpFunction]) -> Program:
            if name in OTHER_BACKENDS:
                return OTHER_BACKENDS[name](part, form)
            return _compile(name, part, (), form, prepare, computes, None)

        from pulse.program.backends.mixed_program import MixedProgram

        return MixedProgram(model, backend, choice_of, compile_part, fetches or (), form, unrounded)
    computes = {node: c for node, choice in choice_of.items() if (c := choice.implementation.compute)}
    return _compile(backend, model, fetches or (), form, prepare, computes, unrounded)


def _compile(
    backend: str,
    model: PulsedNetwork,
    fetches: Sequence[OutletId],
    form: str,
    prepare: Prepare | None,
    computes: Mapping[int, OpFunction],
    unrounded: PulsedNetwork | None,
) -> Program:
    if backend == "numpy":
        from pulse.program.backends.reference import ReferenceProgram

        return ReferenceProgram(model, fetches, form, computes=computes, unrounded=unrounded)
    from pulse.program.backends.native_program import NativeProgram

    return NativeProgram(model, fetches, form, prepare, unrounded)


def _without_kernel(op: Op, facts: Sequence[TypedFact]) -> str:
    from pulse.program.backends.native_program import has_kernel

    return "" if has_kernel(op) else "has no kernel for it"


register(Implementation("numba", "kernels", (Op,), refuses=_without_kernel))
