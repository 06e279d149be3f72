"""Choices between two wires."""

from collections.abc import Iterator

import numpy as np

from pulse.facts import BOOL, Shape
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, HasType, SameType
from pulse.infer.shapes import Broadcasting
from pulse.onnx.registry import onnx_op, rule
from pulse.ops.elementwise import Cast, Elementwise
from pulse.typed import TypedNode

UNBOUNDED = ("log", "reciprocal", "sqrt", "div", "pow")
"""Functions that may return NaN or infinity for the arguments that a choice leaves out."""
MAX_EXAMINED_OPS = 12
"""Maximum number of ops that are examined between a choice and a conversion; beyond it, the choice stays."""


@onnx_op("Where")
def where(node: NodeContext) -> OutletId:
    """Choose elements of two wires; those that are not chosen need no result.

    Buckets of distances are written as ``where(n < 8, n, log(n / 8).to(int) + 8)``. The logarithm of 0 is infinite,
    but it is never chosen: the conversion is given 0 there.
    """
    return node.apply("where", node.input(0), *(_Branch(node, slot).build() for slot in (1, 2)))


@rule("Where")
def infer_where(node: InferenceNode) -> Iterator[FactRelation]:
    """A bool that chooses between two wires of one type; shapes are broadcast."""
    yield HasType([node.input(0)], BOOL)
    yield SameType([node.input(1), node.input(2), node.output])
    yield Broadcasting(node.output, node.given_inputs())


class _Branch:
    """One of the two wires of a choice: the wire, or the same of which only chosen elements are converted."""

    def __init__(self, node: NodeContext, slot: int) -> None:
        self._node, self._slot = node, slot
        self._shape: Shape = node.fact(0).shape
        self._count = 0

    def build(self) -> OutletId:
        """Return the wire. Elements that are not chosen may differ."""
        return self._convert_chosen(self._node.input(self._slot), MAX_EXAMINED_OPS)

    def _convert_chosen(self, outlet: OutletId, farthest: int) -> OutletId:
        """Return a wire of which only the chosen elements are converted; itself if it converts nothing."""
        graph = self._node.graph
        producer, fact = graph.node(outlet), graph.fact(outlet)
        if not farthest or fact.shape != self._shape or fact.value is not None:
            return outlet
        if isinstance(producer.op, Cast) and self._converts(producer):
            return self._wire(producer.op, [self._hide(producer.inputs[0])])
        if not isinstance(producer.op, Elementwise | Cast):
            return outlet
        inputs = [self._convert_chosen(source, farthest - 1) for source in producer.inputs]
        return outlet if inputs == producer.inputs else self._wire(producer.op, inputs)

    def _converts(self, producer: TypedNode) -> bool:
        source = self._node.graph.fact(producer.inputs[0])
        op = producer.op
        to_integers = isinstance(op, Cast) and np.issubdtype(op.dtype, np.integer)
        return (
            to_integers
            and np.issubdtype(source.dtype, np.floating)
            and self._may_be_infinite(producer.inputs[0], MAX_EXAMINED_OPS)
        )

    def _may_be_infinite(self, outlet: OutletId, farthest: int) -> bool:
        graph = self._node.graph
        producer = graph.node(outlet)
        if not farthest or not isinstance(producer.op, Elementwise | Cast):
            return False
        if isinstance(producer.op, Elementwise) and producer.op.kind in UNBOUNDED:
            divides = producer.op.kind == "div"
            if not divides or graph.fact(producer.inputs[1]).value is None:
                return True
        return any(self._may_be_infinite(source, farthest - 1) for source in producer.inputs)

    def _hide(self, outlet: OutletId) -> OutletId:
        """Return the wire with 0 in place of elements that are not chosen."""
        pair = (outlet, 0) if self._slot == 1 else (0, outlet)
        return self._node.apply("where", self._node.input(0), *pair, suffix=self._name("selected"))

    def _wire(self, op: Elementwise | Cast, inputs: list[OutletId]) -> OutletId:
        return self._node.wire(op, inputs, self._name("selected"))

    def _name(self, suffix: str) -> str:
        self._count += 1
        return f"{suffix}{self._slot}_{self._count}"
