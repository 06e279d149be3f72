"""Activations."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def activations() -> Iterator[Case]:
    """Infinities, shrinking, gates."""
    x = floats("x", 2, 6, 5)
    wild = x.copy()
    wild[0, 0, 0], wild[1, 0, 0], wild[0, 1, 0] = np.inf, -np.inf, np.nan
    for positive, negative in ((1, 1), (1, 0), (0, 1), (0, 0)):
        operator = node("IsInf", "x", detect_positive=positive, detect_negative=negative)
        yield from cases(f"IsInf_{positive}{negative}", [operator], {"x": wild}, None, (10, 20), {"x": 2})
    operator = node("Shrink", "x", lambd=0.7, bias=0.2)
    yield from cases("Shrink", [operator], {"x": x}, None, (9,), {"x": 2})
    operator = node("SwiGLU", "x z", alpha=1.3)
    yield from cases("SwiGLU", [operator], {"x": x, "z": floats("z", 2, 6, 5)}, None, (28,), {"x": 2, "z": 2})


ALL = (activations,)
