"""What a translator sees of its node: inputs, attributes, and a way to wire ops."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard, TypeVar

import numpy as np

from pulse.dim import SymbolScope, TDim
from pulse.errors import LoadError
from pulse.facts import Array, Shape, TypedFact, is_symbolic, symbolic_text
from pulse.graph import OutletId
from pulse.ops.op import Op, normal_axis
from pulse.typed import TypedGraph, constant, wire

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class NodeContext:
    """One node while it is translated.

    ``wire_name`` is the name of its first output; the last op that stands for the node gets it.
    ``captures`` has the values around the node that its Subgraphs read, by their names.
    """

    op_type: str
    opset: int
    wire_name: str
    attributes: Mapping[str, Any]
    inputs: tuple[OutletId | None, ...]
    outputs: tuple[str, ...]
    graph: TypedGraph
    scope: SymbolScope
    captures: Mapping[str, OutletId] = field(default_factory=dict[str, OutletId])

    def error(self, message: str) -> LoadError:
        """A LoadError that names the node."""
        return LoadError(f"{self.wire_name} ({self.op_type}): {message}")

    def has(self, slot: int) -> bool:
        """Whether an optional input is given."""
        return slot < len(self.inputs) and self.inputs[slot] is not None

    def input(self, slot: int) -> OutletId:
        """An input. Raises LoadError where it is left out."""
        outlet = self.inputs[slot] if slot < len(self.inputs) else None
        if outlet is None:
            raise self.error(f"input {slot} is missing")
        return outlet

    def given(self) -> list[OutletId]:
        """Every input that is given."""
        return [outlet for outlet in self.inputs if outlet is not None]

    def fact(self, slot: int) -> TypedFact:
        """What is known of an input."""
        return self.graph.fact(self.input(slot))

    def value(self, slot: int) -> Array | None:
        """The value of an input where it is known: an array of numbers, or of TDim."""
        return self.fact(slot).value

    def numbers(self, slot: int, what: str) -> Array:
        """The value of an input, which must be known and free of symbols. Raises LoadError."""
        value = self.value(slot)
        if value is None:
            raise self.error(f"its {what} is computed while running; only a constant is covered")
        if is_symbolic(value):
            raise self.error(
                f"its {what} {symbolic_text(value)} depends on a length; only a constant is covered"
            )
        return value

    def scalar(self, slot: int, what: str) -> Any:
        """The one number of an input. Raises LoadError."""
        value = self.numbers(slot, what)
        if value.size != 1:
            raise self.error(f"its {what} must be one number, got shape {list(value.shape)}")
        return value.reshape(()).item()

    def integers(self, slot: int, what: str) -> list[int]:
        """The constant integers of an input. Raises LoadError."""
        return [int(number) for number in self.numbers(slot, what).ravel().tolist()]

    def dims(self, slot: int, what: str) -> Shape:
        """The integers of an input, which may depend on symbols. Raises LoadError."""
        value = self.value(slot)
        if value is None:
            raise self.error(
                f"its {what} is computed while running (through floats, or from data); "
                "only constants and integer arithmetic on shapes are covered"
            )
        if not is_symbolic(value) and not np.issubdtype(value.dtype, np.integer):
            raise self.error(f"its {what} must be integers")
        return tuple(TDim.of(dim) for dim in value.ravel().tolist())

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front. Raises FactError."""
        return normal_axis(axis, rank, f"{self.wire_name} ({self.op_type})")

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Axes counted from the front, sorted. Raises FactError, LoadError where one is named twice."""
        found = sorted(self.axis(axis, rank) for axis in axes)
        if len(set(found)) != len(found):
            raise self.error(f"axes {list(axes)} name one axis twice")
        return tuple(found)

    def _attribute(self, name: str, kinds: type[T] | tuple[type[T], ...], default: T | None) -> T:
        value = self.attributes.get(name, default)
        if value is None:
            raise self.error(f"attribute {name} is missing")
        if not isinstance(value, kinds):
            raise self.error(f"attribute {name} has the wrong type: {value!r}")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute. Raises LoadError."""
        return self._attribute(name, int, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """An integer attribute that means yes or no."""
        return bool(self._attribute(name, int, default))

    def real(self, name: str, default: float | None = None) -> float:
        """A float attribute. Raises LoadError."""
        return self._attribute(name, float, default)

    def text(self, name: str, default: str | None = None) -> str:
        """A text attribute. Raises LoadError."""
        return self._attribute(name, str, default)

    def tensor(self, name: str, default: Array | None = None) -> Array:
        """A tensor. Raises LoadError."""
        return self._attribute(name, np.ndarray, default)

    def integer_list(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """A list of integers. Raises LoadError."""
        values = self._list(name, None if default is None else list(default))
        return tuple(value for value in values if self._is(int, value, name))

    def real_list(self, name: str) -> tuple[float, ...]:
        """A list of floats. Raises LoadError."""
        return tuple(value for value in self._list(name, None) if self._is(float, value, name))

    def text_list(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """A list of texts. Raises LoadError."""
        values = self._list(name, None if default is None else list(default))
        return tuple(value for value in values if self._is(str, value, name))

    def _list(self, name: str, default: list[Any] | None) -> list[Any]:
        return self._attribute(name, list, default)

    def _is(self, kind: type[T], value: object, name: str) -> TypeGuard[T]:
        if not isinstance(value, kind):
            raise self.error(f"attribute {name} has the wrong type: {value!r} in a list")
        return True

    def named(self, wire_name: str) -> "NodeContext":
        """The same node, with another name for what it wires."""
        return replace(self, wire_name=wire_name)

    def wire(self, op: Op, inputs: Sequence[OutletId], suffix: str = "") -> OutletId:
        """Add an op with one output; the last op of a node has no suffix. Raises FactError."""
        name = f"{self.wire_name}.{suffix}" if suffix else self.wire_name
        return wire(self.graph, name, op, inputs)[0]

    def constant(self, value: Array, suffix: str = "") -> OutletId:
        """Add a constant."""
        return constant(self.graph, f"{self.wire_name}.{suffix}" if suffix else self.wire_name, value)

    def dims_constant(self, dims: Sequence[TDim], suffix: str = "") -> OutletId:
        """Add a list of dims as an i64 constant; as plain numbers where it depends on no symbol."""
        if all(dim.is_const for dim in dims):
            return self.constant(np.array([int(dim) for dim in dims], dtype=np.int64), suffix)
        value = np.empty(len(dims), dtype=object)
        value[:] = list(dims)
        return self.constant(value, suffix)

    def scalar_constant(self, number: float, like: TypedFact, suffix: str) -> OutletId:
        """Add one number, of the type of another wire."""
        return self.constant(np.array(number, dtype=like.dtype), suffix)
