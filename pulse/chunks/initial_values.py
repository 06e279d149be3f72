"""Values of states at the first chunk."""

from typing import Any

import numpy as np

from pulse.errors import PulsifyError
from pulse.facts import Array, TypedFact, convert_numbers, dtype_name, shape_text


def initial_value(name: str, fact: TypedFact, source: Any) -> Array:
    """Return the value of a state at the first chunk, zeros if it is None; a single number applies to all elements."""
    shape = fact.sizes
    value = convert_numbers(0 if source is None else source, fact.dtype)
    if value is None:
        raise PulsifyError(
            f"initial value of {name}: {source!r:.60} is not of type {dtype_name(fact.dtype)}; give a number, a list "
            "or an array"
        )
    if value.shape not in ((), shape):
        raise PulsifyError(
            f"initial value of {name}: its shape is {shape_text(value.shape)}, the state's is {shape_text(shape)}; "
            "give that, or one number for all of it"
        )
    return np.full(shape, value)
