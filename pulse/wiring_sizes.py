"""Sizes that a file computes in floats: ``ceil(T / 4)``, or T itself as a float."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from pulse.dim import Ratio
from pulse.errors import DimError
from pulse.facts import Array, TypedFact
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.op import Op, numbers_if_constant
from pulse.typed import TypedGraph

MOST_SIZES = 64
"""The most elements of a tensor of sizes."""


def integer_sizes(graph: TypedGraph, outlet: OutletId) -> Array | None:
    """A wire of floats computed only from sizes, truncated towards 0 to numbers or dims; None for others.

    None if it is not, or if floats may round it to another integer.
    """
    ratios = size_ratios(graph, outlet)
    try:
        return None if ratios is None else numbers_if_constant(_each(Ratio.truncate, ratios))
    except DimError:
        return None


def size_ratios(graph: TypedGraph, outlet: OutletId) -> Array | None:
    """The elements of a wire as quotients of dims, if all of it is constant or computed of sizes, else None."""
    try:
        return _ratios(graph, outlet)
    except DimError:
        return None


def _ratios(graph: TypedGraph, outlet: OutletId) -> Array | None:
    """The elements of a wire as quotients of dims. Raises DimError: floats may round them."""
    fact = graph.fact(outlet)
    if not _is_small(fact):
        return None
    if fact.value is not None:
        return _each(Ratio.of, fact.value)
    if fact.dtype.kind != "f":
        return None
    node = graph.node(outlet)
    inputs: list[Array] = []
    for place in node.inputs:
        ratios = _ratios(graph, place)
        if ratios is None:
            return None
        inputs.append(ratios)
    return _compute(node.op, inputs)


def _compute(op: Op, inputs: Sequence[Array]) -> Array | None:
    """The value of an op with float outputs. Raises DimError."""
    if isinstance(op, Elementwise):
        on_ratios = ELEMENTWISE[op.kind].ratio
        return None if on_ratios is None else _each(on_ratios, *inputs)
    if len(inputs) != 1 or not (isinstance(op, Cast) or op.symbolic):
        return None
    return inputs[0] if isinstance(op, Cast) else op.eval(inputs, {})[0]


def _is_small(fact: TypedFact) -> bool:
    return all(dim.is_const for dim in fact.shape) and prod(int(dim) for dim in fact.shape) <= MOST_SIZES


def _each(function: Callable[..., Any], *operands: Array) -> Array:
    return np.asarray(
        np.frompyfunc(function, len(operands), 1)(*(operand.astype(object) for operand in operands))
    )
