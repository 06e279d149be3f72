"""Small models that are written as ONNX."""

import numpy as np

import pulse
from pulse.dim import SymbolScope, TDim
from pulse.facts import Array, TypedFact
from pulse.graph import Graph
from pulse.models import PulsedModel, TypedModel
from pulse.ops.op import Op
from pulse.ops.source import Source
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire
from tests.pulse.cases.build import floats, model, node


def chain(*ops: tuple[Op, list[Array]], shape: tuple[int, ...] = (4, 2)) -> TypedModel:
    """Ops over x [T, shape...], one after the other, each with its own constants."""
    scope = SymbolScope()
    fact = TypedFact(np.dtype(np.float32), (TDim.of(scope.symbol("T")), *map(TDim.of, shape)))
    graph: TypedGraph = Graph()
    graph.inputs = graph.add("x", Source(fact), (), [fact])
    (outlet,) = graph.inputs
    for number, (op, values) in enumerate(ops):
        reads = [add_constant(graph, f"c{number}", value) for value in values]
        outlet = wire(graph, f"y{number}", op, [outlet, *reads])[0]
    graph.set_outputs([outlet], ["y"])
    return TypedModel(graph, scope, "chain")


def causal() -> PulsedModel:
    """A convolution over past frames."""
    weight = {"w": floats("w", 2, 2, 3)}
    conv = node("Conv", "x w", pads=[2, 0])
    source = model([conv], {"x": floats("x", 1, 2, 9)}, weight, 17, {"x": 2})
    return pulse.load(source).analyse().declutter().pulsify(pulse=2)
