"""Groups of fields that rows of several kernels have."""

from collections.abc import Iterable, Sequence

from pulse.program.kernels.matmul.epilogue import STEPS, Epilogue, EpilogueStep, GateEpilogue
from pulse.program.kernels.recurrent.gates import ACTIVATIONS
from pulse.program.kernels.recurrent.layer import ActivationFields
from tests.pulse.program.kernels.rows import Array


def activation(name: str, alpha: float = 0.0, beta: float = 0.0) -> ActivationFields:
    return ActivationFields(code=ACTIVATIONS[name], alpha=alpha, beta=beta)


def epilogue_step(
    name: str, operand: Array, rows: Array, parameter: float = 0.0, limit: float = 0.0
) -> EpilogueStep:
    return EpilogueStep(code=STEPS.index(name), parameter=parameter, limit=limit, operand=operand, rows=rows)


def epilogue_of(
    steps: Iterable[EpilogueStep] = (), gates: Sequence[GateEpilogue] = (), flat: bool = False
) -> Epilogue:
    """The steps after a product, in order, or one gate."""
    listed = list(steps)
    return Epilogue(flat=flat, gate_count=len(gates), step_count=len(listed), gates=gates, steps=listed)
