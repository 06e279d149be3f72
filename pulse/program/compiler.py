"""Compile a pulsed model into a program."""

from collections.abc import Sequence
from dataclasses import replace

from pulse.errors import CompileError
from pulse.graph import OutletId
from pulse.program.activation_rounding import with_rounded_activations
from pulse.program.backends.groups import choices_by_node
from pulse.program.backends.registry import BACKENDS, CompileRequest, Prepare
from pulse.program.program import Program
from pulse.pulsify.network import PulsedNetwork
from pulse.rounding import Rounding


def compile_model(
    model: PulsedNetwork,
    backend: str = "numba",
    rounding: Rounding = Rounding(),
    *,
    fetches: Sequence[OutletId] = (),
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
    rounding.check()
    if rounding.activation_form is not None:
        model = with_rounded_activations(model, rounding.activation_form)
    if backend not in BACKENDS:
        *names, last = BACKENDS
        raise CompileError(f"no backend {backend!r}; choose {', '.join(names)} or {last}")
    request = CompileRequest(model, rounding, fetches, prepare)
    in_parts = BACKENDS[backend].in_parts
    if in_parts or any(
        view.backend not in ("", backend) or view.kernel for view in model.graph.views.values()
    ):
        request = replace(request, choices=choices_by_node(model, backend))
        in_parts |= any(choice.implementation.backend != backend for choice in request.choices.values())
    if not in_parts:
        return BACKENDS[backend].compile(request)
    from pulse.program.backends.mixed_program import MixedProgram

    return MixedProgram(request, backend)
