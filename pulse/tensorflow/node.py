"""A TensorFlow node as its translator sees it."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from pulse.dim import SymbolScope
from pulse.facts import I64, DType, TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.ops.elementwise import Cast
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.tensorflow.graph_node import LibraryFunction, function_attribute
from pulse.tensorflow.tensors import FunctionName, KnownSizes, TensorType, dims_in
from pulse.typed import TypedNetwork


class FunctionModels(Protocol):
    """The functions of a file, as models."""

    def find(self, name: FunctionName) -> LibraryFunction:
        """Return a function. Raises LoadError: no function has this name."""
        ...

    def assignments(self, name: FunctionName) -> dict[int, str]:
        """Return the arguments that a function assigns, and the outputs of its model that are their next values."""
        ...

    def to_typed(
        self, name: FunctionName, facts: Sequence[TypedFact], scope: SymbolScope, title: str
    ) -> TypedNetwork:
        """Return a function as a model; arguments with known values are constants in it.

        Raises LoadError: it cannot be read.
        """
        ...


@record(eq=False)
class TensorflowNode(NodeContext):
    """One node while it is translated.

    function_models   the functions of the file, which attributes may name
    """

    function_models: "FunctionModels | None" = None

    @property
    def functions(self) -> "FunctionModels":
        """The functions of the file. Raises LoadError: it has none."""
        if self.function_models is None:
            raise self.error("the file has no functions; export the model again")
        return self.function_models

    def require_type(self, name: str) -> TensorType:
        """Return a type attribute. Raises LoadError: it is missing."""
        value = self.attributes.get(name)
        if not isinstance(value, TensorType):
            raise self.error(f"attribute {name} is missing or is not a type; export the model again")
        return value

    def require_dtype(self, name: str) -> DType:
        """Return the type of an attribute, of numbers. Raises LoadError: it is missing or another type."""
        type_ = self.require_type(name)
        if type_.known_type is None:
            raise self.error(f"a tensor of {type_} is not supported")
        return type_.known_type

    def is_complex(self, name: str = "T") -> bool:
        """Return whether an input is complex: a last axis of two, the real and the imaginary part."""
        value = self.attributes.get(name)
        return isinstance(value, TensorType) and value.is_complex

    def sizes(self, name: str) -> KnownSizes:
        """Return a shape attribute."""
        return dims_in(self.attributes.get(name))

    def function(self, name: str) -> FunctionName:
        """Return a function among the attributes. Raises LoadError: it is missing."""
        return function_attribute(self.attributes, name, self.error)

    def read_list(self, name: str, count: int) -> list[int]:
        """Return a list of integers of that length; ones if it is missing. Raises LoadError: it has another length."""
        values = self.integer_list(name, [1] * count)
        if len(values) != count:
            raise self.error(
                f"attribute {name} has {count_of(len(values), 'entry', 'entries')} instead of {count}"
            )
        return list(values)

    def to_one_type(self, outlets: Sequence[OutletId]) -> list[OutletId]:
        """Return wires in one type: sizes are i64 here, where TensorFlow may compute with them in i32."""
        types = {self.graph.fact(outlet).dtype for outlet in outlets}
        if len(types) == 1 or not all(np.issubdtype(dtype, np.integer) for dtype in types):
            return list(outlets)
        return [self.widen(outlet, f"operand{index}") for index, outlet in enumerate(outlets)]

    def widen(self, outlet: OutletId, suffix: str) -> OutletId:
        """Cast a wire of integers to i64; return the wire itself if it is that."""
        fact = self.graph.fact(outlet)
        if fact.dtype == I64:
            return outlet
        if fact.value is not None and not is_symbolic(fact.value):
            return self.constant(fact.value.astype(np.int64), suffix)
        return self.wire(Cast(I64), [outlet], suffix)

    def number(self, value: float, dtype: DType, suffix: str) -> OutletId:
        """Add one number as a constant."""
        return self.constant(np.array(value, dtype), suffix)
