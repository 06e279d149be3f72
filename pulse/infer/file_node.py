"""A node of a file: its operator, its inputs and its attributes."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from pulse.dim import TDim
from pulse.errors import LoadError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.dims import normal_axis
from pulse.support.record import record

T = TypeVar("T")


@record(eq=False)
class FileNode:
    """One node of a file, its attributes read with their types.

    ``wire_name`` is the name of its first output; ``inputs`` has None for omitted optional inputs.
    """

    op_type: str
    opset: int
    wire_name: str
    attributes: Mapping[str, Any]
    inputs: tuple[OutletId | None, ...]

    def error(self, message: str) -> LoadError:
        """Return a LoadError that names the node."""
        return LoadError(f"{self.wire_name} ({self.op_type}): {message}")

    def require(self, condition: object, message: str) -> None:
        """Raise LoadError with the node's name unless a condition is true."""
        if not condition:
            raise self.error(message)

    def has(self, slot: int) -> bool:
        """Return whether an optional input is present."""
        return slot < len(self.inputs) and self.inputs[slot] is not None

    def input(self, slot: int) -> OutletId:
        """Return an input. Raises LoadError: it is omitted."""
        outlet = self.inputs[slot] if slot < len(self.inputs) else None
        if outlet is None:
            raise self.error(f"input {slot} is missing")
        return outlet

    def given_inputs(self) -> list[OutletId]:
        """Return every input that is present."""
        return [outlet for outlet in self.inputs if outlet is not None]

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front. Raises FactError: out of range."""
        return normal_axis(axis, rank, f"{self.wire_name} ({self.op_type})")

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Return axes counted from the front, sorted.

        Raises FactError: one is out of range; LoadError: one is named twice
        """
        numbers = sorted(self.axis(axis, rank) for axis in axes)
        if len(set(numbers)) != len(numbers):
            raise self.error(f"axes {list(axes)} name one axis twice")
        return tuple(numbers)

    def _attribute(self, name: str, types: type[T] | tuple[type[T], ...], default: T | None) -> T:
        value = self.attributes.get(name, default)
        if value is None:
            raise self.error(f"attribute {name} is missing; export the model again")
        if not isinstance(value, types):
            raise self.error(f"attribute {name} has the wrong type: {value!r}")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute. Raises LoadError: missing, or of another type."""
        return self._attribute(name, int, default)

    def divisor(self, name: str, whole: TDim, subject: str, default: int | None = None) -> int:
        """Return an integer attribute that cuts a size into equal parts. Raises LoadError: it does not divide it."""
        value = self.integer(name, default)
        if value < 1 or (whole.is_const and int(whole) % value):
            raise self.error(f"attribute {name} is {value}, which does not divide the {whole} {subject}")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an integer attribute that means yes or no."""
        return bool(self._attribute(name, int, default))

    def real(self, name: str, default: float | None = None) -> float:
        """Return a float attribute."""
        return self._attribute(name, float, default)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text attribute."""
        return self._attribute(name, str, default)

    def tensor(self, name: str, default: Array | None = None) -> Array:
        """Return a tensor."""
        return self._attribute(name, np.ndarray, default)

    def integer_list(self, name: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return a list of integers."""
        return self._list(name, int, default)

    def real_list(self, name: str) -> tuple[float, ...]:
        """Return a list of floats."""
        return self._list(name, float, None)

    def text_list(self, name: str, default: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return a list of texts."""
        return self._list(name, str, default)

    def _list(self, name: str, item_type: type[T], default: Sequence[T] | None) -> tuple[T, ...]:
        values: list[T] = self._attribute(name, list, None if default is None else list(default))
        for value in values:
            if not isinstance(value, item_type):
                raise self.error(f"attribute {name} has the wrong type: {value!r} in a list")
        return tuple(values)
