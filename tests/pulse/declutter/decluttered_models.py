"""SmallModel models built by hand, and the check that declutter keeps their results."""

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.random import default_rng

from pulse.declutter import declutter_and_count
from pulse.dim import SymbolScope, TDim
from pulse.facts import Array, TypedFact
from pulse.graph import Graph, OutletId
from pulse.models import TypedModel
from pulse.ops.op import Op
from pulse.ops.source import Source
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire


class SmallModel:
    """A graph whose wires are called by name; its input is x."""

    def __init__(self, shape: str = "1,4,T,f32") -> None:
        self.scope = SymbolScope()
        self.scope.assume("T >= 0")
        self.graph: TypedGraph = Graph()
        self.x = self.source("x", shape)

    def source(self, name: str, shape: str) -> OutletId:
        fact = TypedFact.parse(shape, self.scope)
        outlet = self.graph.add(name, Source(fact), (), [fact])[0]
        self.graph.inputs.append(outlet)
        return outlet

    def dim(self, text: str) -> TDim:
        return self.scope.parse(text)

    def add(self, name: str, op: Op, *inputs: OutletId | Array | float) -> OutletId:
        return wire(self.graph, name, op, [self.constant(value) for value in inputs])[0]

    def constant(self, value: OutletId | Array | float) -> OutletId:
        if isinstance(value, OutletId):
            return value
        return add_constant(
            self.graph, "c", np.asarray(value, None if isinstance(value, np.ndarray) else np.float32)
        )

    def model(self, *outputs: OutletId) -> TypedModel:
        self.graph.set_outputs(outputs)
        return TypedModel(self.graph, self.scope)


def ops(model: TypedModel) -> list[str]:
    """The ops of a model, without its inputs and constants."""
    names = (model.graph.nodes[node].op.name for node in model.graph.order())
    return [name for name in names if name not in ("Source", "Const")]


def declutter_and_compare(model: TypedModel, tolerance: float = 2e-6) -> tuple[TypedModel, Counter[str]]:
    """Declutter and require equal results; returns the new model, and how often each rewrite was applied."""
    result, fired = declutter_and_count(model)
    rng = default_rng(0)
    for length in (6, 7, 19):
        env = dict.fromkeys(model.symbols, length)
        feeds = {
            name: rng.standard_normal([dim.eval(env) for dim in fact.shape]).astype(fact.dtype)
            for name, fact in model.inputs.items()
        }
        expected, outputs = model.run(feeds), result.run(feeds)
        assert list(outputs) == list(expected)
        for name, value in expected.items():
            assert outputs[name].dtype == value.dtype
            np.testing.assert_allclose(outputs[name], value, rtol=tolerance, atol=tolerance)
    return result, fired


Case = Callable[[SmallModel], OutletId]
