"""Typed access to untrusted JSON, by name, with checks."""

from collections.abc import Iterator
from typing import Any, cast

from pulse.errors import LoadError
from pulse.support.record import record

MAX_OFFSET = 1 << 47
"""The largest size or stride that a file may state: an address has 48 bits."""


@record
class JsonObject:
    """A JSON object.

    name    the name of the file, for errors
    values  its members
    Raises  LoadError: a value is missing, of another type or out of range
    """

    name: str
    values: dict[str, Any]

    def text(self, key: str, max_characters: int = 1 << 16) -> str:
        """Return a string of at most this many characters."""
        value = self.values.get(key)
        if not isinstance(value, str) or len(value) > max_characters:
            raise self.error(key)
        return value

    def number(self, key: str, low: int = 0, high: int = MAX_OFFSET) -> int:
        """Return an integer from low to high."""
        return self._number(key, self.values.get(key), low, high)

    def optional_number(self, key: str, high: int = MAX_OFFSET) -> int | None:
        """Return an integer from 0 to high; None if the value is null or missing."""
        return None if self.values.get(key) is None else self.number(key, 0, high)

    def numbers(self, key: str, low: int = 0, high: int = MAX_OFFSET) -> tuple[int, ...]:
        """Return a list of integers from low to high."""
        return tuple(self._number(key, value, low, high) for value in self._list(key))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        values = self._list(key)
        if not all(isinstance(value, str) for value in values):
            raise self.error(key)
        return tuple(values)

    def real(self, key: str) -> float:
        """Return a number that is finite and not negative."""
        value = self.values.get(key)
        if type(value) not in (int, float) or not 0 <= cast(float, value) < float("inf"):
            raise self.error(key)
        return float(cast(float, value))

    def flag(self, key: str) -> bool:
        """Return the boolean of a key."""
        value = self.values.get(key)
        if not isinstance(value, bool):
            raise self.error(key)
        return value

    def child(self, key: str) -> "JsonObject":
        return self._child(key, self.values.get(key))

    def optional_child(self, key: str) -> "JsonObject | None":
        """Return an object; None if the value is null or missing."""
        return None if self.values.get(key) is None else self.child(key)

    def children(self, key: str) -> Iterator["JsonObject"]:
        """Return a list of objects."""
        return (self._child(key, value) for value in self._list(key))

    def mapping(self, key: str, value_type: type) -> dict[str, Any]:
        """Return an object whose values all have the given type."""
        values = self.child(key).values
        if not all(type(value) is value_type for value in values.values()):
            raise self.error(key)
        return values

    def _list(self, key: str) -> list[Any]:
        value = self.values.get(key)
        if not isinstance(value, list):
            raise self.error(key)
        return cast(list[Any], value)

    def _child(self, key: str, value: Any) -> "JsonObject":
        if not isinstance(value, dict):
            raise self.error(key)
        return JsonObject(self.name, cast(dict[str, Any], value))

    def _number(self, key: str, value: Any, low: int, high: int) -> int:
        if type(value) is not int or not low <= value <= high:
            raise self.error(key)
        return value

    def error(self, key: str) -> LoadError:
        """Return the error of a value that is not valid."""
        return LoadError(f"{self.name}: its header has no valid {key!r}; compile the model again")
