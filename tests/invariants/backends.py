"""The backends that a random model runs on."""

import numpy as np

from pulse.errors import CompileError
from pulse.models import PulsedModel
from pulse.program.compiler import compile_model
from pulse.program.program import Program
from tests.backends import BACKENDS


def backends(model: PulsedModel, rng: np.random.Generator) -> list[Program]:
    """Ours, as far as they have the kernels."""
    programs: list[Program] = []
    for backend in BACKENDS:
        try:
            programs.append(compile_model(model, backend))
        except CompileError:
            continue
    return programs
