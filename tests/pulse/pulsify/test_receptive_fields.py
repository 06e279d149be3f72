"""The receptive field that a model reports bounds what a change of one input frame can reach."""

from fractions import Fraction

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.pulsify.driver import pulsify
from tests.invariants.graphs import feeds, random_model, shortest


@pytest.mark.parametrize("seeds", [range(75), pytest.param(range(75, 375), marks=pytest.mark.slow)], ids=len)
def test_no_change_reaches_beyond_the_receptive_field(seeds: range) -> None:
    tried = tight = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        typed = random_model(rng, 6)
        model = pulsify(typed)
        length = shortest(typed) + 24
        values = feeds(typed, length, rng)
        try:
            before = typed.run(values)
        except InputError:
            continue
        index = length // 2
        changed = {name: array.copy() for name, array in values.items()}
        changed["x"][:, :, index] += 10.0
        after = typed.run(changed)
        for port in model.outputs:
            if port.axis is None or port.name not in model.receptive_fields:
                continue
            field = model.receptive_fields[port.name]
            differs = (before[port.name] != after[port.name]).any(
                axis=tuple(axis for axis in range(before[port.name].ndim) if axis != port.axis)
            )
            for frame in np.flatnonzero(differs):
                centre = Fraction(int(frame)) / port.rate
                if field.first is None:
                    assert index <= centre + field.last, (seed, port.name, int(frame))
                elif (
                    3 <= frame < before[port.name].shape[port.axis] - 3
                ):  # mirrored and edge frames see inwards
                    assert centre + field.first <= index <= centre + field.last, (seed, port.name, int(frame))
                    tight += index in (centre + field.first, centre + field.last)
            tried += 1
    assert tried >= len(seeds)
    assert tight >= 0.6 * len(seeds)


@pytest.mark.parametrize(("before", "after", "ahead"), [(2, 0, 0), (1, 1, 1), (0, 2, 2)])
def test_the_receptive_field_of_a_convolution_is_its_taps(before: int, after: int, ahead: int) -> None:
    from pulse.dim import SymbolScope, TDim
    from pulse.facts import TypedFact
    from pulse.graph import Graph
    from pulse.models import TypedModel
    from pulse.ops.conv import Conv
    from pulse.ops.source import Source
    from pulse.typed import add_constant
    from pulse.wiring import wire

    scope = SymbolScope()
    fact = TypedFact.parse("1,1,T,f32", scope)
    graph = Graph()
    graph.inputs = graph.add("x", Source(fact), (), [fact])
    kernel = add_constant(graph, "w", np.ones((1, 1, 3), np.float32))
    pads = ((TDim.of(before), TDim.of(after)),)
    graph.set_outputs(wire(graph, "y", Conv((1,), (1,), pads), [graph.inputs[0], kernel]), ["y"])
    field = pulsify(TypedModel(graph, scope)).receptive_fields["y"]
    assert (field.frames, field.ahead) == (3, ahead)
