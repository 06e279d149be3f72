"""A typed model in other terms: its symbols replaced by expressions of another scope, its types by others."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.facts import Array, DType, TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.ops.folding import numbers_if_constant
from pulse.ops.op import Op
from pulse.ops.source import Source
from pulse.support.budget import current_spending
from pulse.support.naming import free_name
from pulse.typed import TypedGraph, TypedNetwork
from pulse.wiring import wire

N = TypeVar("N", bound=TypedNetwork)
_WITHOUT_DIMS = (int, bool, float, str, type(None))


class Substitution:
    """Replaces dims and types in everything that a model has; here by themselves.

    scope  the scope of the new model
    """

    def __init__(self, scope: SymbolScope) -> None:
        self.scope = scope

    def dim(self, dim: TDim) -> TDim:
        """Return what replaces an expression."""
        return dim

    def dtype(self, dtype: DType) -> DType:
        """Return what replaces a type."""
        return dtype

    def array(self, array: Array) -> Array:
        """Return what replaces a tensor."""
        return array

    def fact(self, fact: TypedFact) -> TypedFact:
        """Return what replaces a type and shape."""
        value = None if fact.value is None else self.array(fact.value)
        return TypedFact(self.dtype(fact.dtype), tuple(self.dim(dim) for dim in fact.shape), value)

    def keeps(self, fact: TypedFact) -> bool:
        """Return whether ``fact`` returns this fact unchanged; if not, what reads it is wired anew."""
        return True

    def op(self, op: Op) -> Op:
        """Return what replaces an operation: the same object if nothing in it changes."""
        return cast("Op", self._substitute(op))

    def wire(
        self, graph: TypedGraph, name: str, op: Op, inputs: Sequence[OutletId], original: Sequence[TypedFact]
    ) -> list[OutletId]:
        """Add what replaces a node to the new graph; return its outputs. Raises FactError: the op refuses its inputs.

        op        the operation after ``op``
        inputs    wires of the new graph
        original  the facts of the node's inputs before
        """
        return wire(graph, name, op, inputs)

    def model(self, model: N) -> N:
        """Return a model inside an operation."""
        graph = TypedGraph()
        outlets = self.graft(model, graph, {})
        graph.inputs = [outlets[outlet] for outlet in model.graph.inputs]
        graph.set_outputs([outlets[outlet] for outlet in model.graph.outputs], model.graph.output_names)
        graph.views = model.graph.views_in({old.node: (new.node,) for old, new in outlets.items()})
        return replace(
            model, graph=graph, scope=self.scope, metadata=dict(model.metadata), spending=current_spending()
        )

    def graft(
        self, model: TypedNetwork, graph: TypedGraph, wires: Mapping[OutletId, OutletId], prefix: str = ""
    ) -> dict[OutletId, OutletId]:
        """Wire a model into a graph of these terms, and return the model's wires in that graph.

        wires   outlets of the model -> wires of the graph that replace them
        prefix  prefix of the names of new nodes
        Raises  FactError: sizes that do not fit
        """
        new_wires = dict(wires)
        order = model.graph.order([*model.graph.inputs, *model.graph.outputs])
        for node_id in order:
            node = model.graph.nodes[node_id]
            if all(outlet in new_wires for outlet in node.wires):
                continue
            op, name = self.op(node.op), prefix + node.name
            inputs = [new_wires[outlet] for outlet in node.inputs]
            if isinstance(op, Source):
                new_outlets = graph.add(name, op, (), [op.fact])
            elif op is node.op and self._keeps_node(model.graph, node_id, graph, inputs):
                new_outlets = graph.add(name, op, inputs, [outlet.fact for outlet in node.outputs])
            else:
                new_outlets = self.wire(graph, name, op, inputs, model.graph.input_facts(node))
            new_wires.update(zip(node.wires, new_outlets))
        return new_wires

    def _keeps_node(
        self, source: TypedGraph, node_id: int, target: TypedGraph, inputs: Sequence[OutletId]
    ) -> bool:
        """Return whether a node reads equal facts in both graphs, which it keeps, as those of its outputs."""
        node = source.nodes[node_id]
        alike = all(self._agree(target.fact(new), source.fact(old)) for old, new in zip(node.inputs, inputs))
        return alike and all(self.keeps(outlet.fact) for outlet in node.outputs)

    def _agree(self, new: TypedFact, old: TypedFact) -> bool:
        if new is old:
            return True
        alike = new.dtype == old.dtype and new.shape == old.shape and new.value is old.value
        return alike and self.keeps(new)

    def _substitute(self, value: Any) -> Any:
        if type(value) in _WITHOUT_DIMS:
            return value
        match value:
            case TDim():
                return self.dim(value)
            case np.dtype():
                return self.dtype(cast("DType", value))
            case TypedFact():
                return self.fact(value)
            case TypedNetwork():
                return self.model(value)
            case np.ndarray():
                return self.array(cast("Array", value))
            case tuple():
                items = cast("tuple[Any, ...]", value)
                substitutes = tuple(self._substitute(item) for item in items)
                return substitutes if any(a is not b for a, b in zip(substitutes, items)) else items
            case Op() if is_dataclass(value):
                old = {name: getattr(value, name) for name in _fields_of(type(value))}
                new = {name: self._substitute(field_value) for name, field_value in old.items()}
                changes = {
                    name: field_value for name, field_value in new.items() if field_value is not old[name]
                }
                return replace(value, **changes) if changes else value
            case _:
                return value


class Terms(Substitution):
    """The symbols of one model as terms of another model's scope.

    A symbol that ``values`` does not name becomes a new one of the scope, under its own name if that is free.
    """

    def __init__(self, scope: SymbolScope, values: Mapping[Symbol, TDim]) -> None:
        super().__init__(scope)
        self._values = dict(values)

    def dim(self, dim: TDim) -> TDim:
        """Return an expression in these terms; a symbol that is new to them gets a free name."""
        for symbol in sorted(dim.symbols - self._values.keys(), key=lambda symbol: symbol.name):
            name = free_name(symbol.name, self.scope.knows, "_", 2)
            self._values[symbol] = TDim.of(self.scope.symbol(name))
        return dim.subs(self._values) if dim.symbols else dim

    def array(self, array: Array) -> Array:
        """Return a tensor; only one of dims changes."""
        if not is_symbolic(array):
            return array
        result = np.empty(array.shape, object)
        result.ravel()[:] = [self.dim(TDim.of(element)) for element in array.ravel().tolist()]
        return numbers_if_constant(result)

    def keeps(self, fact: TypedFact) -> bool:
        """Return whether it has no symbols."""
        return not (
            any(dim.terms for dim in fact.shape) or (fact.value is not None and is_symbolic(fact.value))
        )

    def assume(self, scope: SymbolScope) -> None:
        """Rely on what another scope assumes of its symbols. Raises DimError: it can never hold."""
        for assumption in scope.assumptions:
            test = self.dim(assumption)
            if not (test.is_const and int(test) == 1):
                self.scope.assume(test)


@cache
def _fields_of(record_class: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(record_class) if field.init)


def with_sizes(model: N, sizes: Mapping[Symbol, int]) -> N:
    """Return the model with numbers in place of some symbols, in a new scope. Raises FactError: they do not fit."""
    terms = Terms(SymbolScope(), {symbol: TDim.of(size) for symbol, size in sizes.items()})
    terms.assume(model.scope)
    return replace(terms.model(model), spending=model.spending)
