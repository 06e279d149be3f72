"""From a pulsed model to a program."""

from collections.abc import Callable, Sequence

from pulse.errors import CompileError
from pulse.graph import OutletId
from pulse.program.program import Program
from pulse.program.reference import ReferenceProgram
from pulse.pulsify.network import PulsedNetwork

BACKENDS = ("numba", "numpy")

Prepare = Callable[[Sequence[str]], None]
"""Called with the names of kernels that are about to be needed."""


def compile_model(
    model: PulsedNetwork,
    backend: str = "numba",
    fetches: Sequence[OutletId] | None = None,
    weights: str = "f32",
    prepare: Prepare | None = None,
) -> Program:
    """Make a pulsed model ready to run.

    backend   ``numba``: kernels over one arena, no GIL and no allocation in a step; ``numpy``: the reference
    fetches   further wires of the pulsed graph to keep, for inspection
    weights   how they are stored: ``f32``; ``bf16`` or ``int8`` for models whose weights do not fit into the caches.
              Activations and sums are f32 always; see ``pulse.program.weights``
    prepare   called with the names of all kernels that the program needs before they are compiled or loaded, one by
              one; compiling happens once on a machine. ``streaming.warming`` has some that compile several at once and
              show a bar
    Raises    CompileError: an operation has no kernel, or the backend or the form of weights is unknown
    """
    if backend == "numpy":
        return ReferenceProgram(model, fetches or (), weights)
    if backend == "numba":
        from pulse.program.native_program import NativeProgram

        return NativeProgram(model, fetches or (), weights, prepare)
    raise CompileError(f"no backend {backend!r}; choose {' or '.join(BACKENDS)}")
