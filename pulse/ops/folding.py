"""Ops whose inputs are all known, computed before running."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError
from pulse.facts import Array, TypedFact, is_symbolic
from pulse.ops.op import Op


def known_inputs(op: Op, inputs: Sequence[TypedFact]) -> list[Array]:
    """Return the values of all inputs if the op can be computed before running; otherwise empty."""
    if not op.folds:
        return []
    values = list[Array]()
    for fact in inputs:
        if fact.value is None:
            return []
        values.append(fact.value)
    return values if op.symbolic or not any(map(is_symbolic, values)) else []


def symbolic_eval(op: Op, inputs: Sequence[TypedFact]) -> list[Array] | None:
    """Return the outputs of an op whose inputs are all known; None if they are not. Raises FactError: no result."""
    values = known_inputs(op, inputs)
    if not values:
        return None
    try:
        with np.errstate(all="ignore"):
            return [numbers_if_constant(np.asarray(value)) for value in op.eval(values, {})]
    except (ValueError, IndexError, OverflowError) as error:
        raise FactError(f"it cannot be computed from these constants: {error}") from error


def numbers_if_constant(value: Array) -> Array:
    """Convert a tensor of dims to numbers if all of them are constant."""
    if not is_symbolic(value) or not all(TDim.of(dim).is_const for dim in value.ravel().tolist()):
        return value
    return np.array([int(dim) for dim in value.ravel().tolist()], np.int64).reshape(value.shape)
