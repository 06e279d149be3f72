"""Records are frozen dataclasses, whatever is asked of them first."""

import copy
import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from threading import Barrier
from typing import ClassVar

import numpy as np
import pytest

from pulse.support.record import record


@record
class Tone:
    """Fields of all kinds."""

    KINDS: ClassVar[int] = 2

    hertz: float
    name: str = "a"
    parts: list[int] = field(default_factory=list[int])
    note: str = field(default="", repr=False)

    @cached_property
    def twice(self) -> float:
        """A cached property."""
        return self.hertz * 2


@dataclass(frozen=True)
class PlainTone:
    """A class that ``Tone`` is compared with."""

    hertz: float
    name: str = "a"
    parts: list[int] = field(default_factory=list[int])
    note: str = field(default="", repr=False)


@record
class Chord(Tone):
    """Fields of a base, and one that is checked."""

    third: float = 0

    def __post_init__(self) -> None:
        """Refuse a negative ``third``."""
        if self.third < 0:
            raise ValueError("third")


class Loud(Tone):
    """A class with its own attributes."""

    def __init__(self, hertz: float) -> None:
        super().__init__(hertz)
        self.gain = 2


@record(eq=False, kw_only=True)
class NamedRecord:
    """A record with named fields, compared by identity."""

    first: int
    second: int = 1


@record
class Point:
    """A hashable record."""

    x: int
    y: int


def test_a_record_equals_a_dataclass() -> None:
    for arguments in ((1.0,), (1.0, "b", [3], "n")):
        tone, plain = Tone(*arguments), PlainTone(*arguments)
        assert asdict(tone) == asdict(plain)
        assert repr(tone) == repr(plain).replace("PlainTone", "Tone")
    assert is_dataclass(Tone)
    assert [field.name for field in fields(Tone)] == [field.name for field in fields(PlainTone)]
    assert inspect.signature(Tone).parameters.keys() == inspect.signature(PlainTone).parameters.keys()
    assert inspect.signature(Tone).parameters["name"].annotation is str
    assert Tone(1).parts is not Tone(1).parts
    assert Tone(2).twice == 4
    assert replace(Tone(1), name="c") == Tone(1, "c") != Tone(1)
    with pytest.raises(TypeError, match=r"Tone.__init__\(\) missing 1 required positional argument: 'hertz'"):
        Tone()  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("kind", [Tone, Loud])
@pytest.mark.parametrize(
    "change",
    [lambda tone: setattr(tone, "name", "d"), lambda tone: delattr(tone, "name")],
    ids=["set", "delete"],
)
def test_records_cannot_be_changed(change: Callable[[Tone], None], kind: type[Tone]) -> None:
    tone = kind(1)
    with pytest.raises(FrozenInstanceError, match="field 'name'"):
        change(tone)
    assert tone.name == "a"


def test_a_class_of_a_record_may_have_attributes_of_its_own() -> None:
    assert Loud(1).gain == 2


def test_records_take_no_other_attributes() -> None:
    with pytest.raises(FrozenInstanceError):
        Tone(1).other = 1


def test_records_inherit_fields() -> None:
    assert Chord(1, third=3) == Chord(1, third=3) != Chord(1)
    assert Chord(1) != Tone(1)
    assert repr(Chord(1, third=3)) == "Chord(hertz=1, name='a', parts=[], third=3)"
    with pytest.raises(ValueError, match="third"):
        Chord(1, third=-1)


def test_records_may_be_compared_by_identity_and_take_names_only() -> None:
    named = NamedRecord(first=1)
    assert named != NamedRecord(first=1)
    assert hash(named) != hash(NamedRecord(first=1))
    assert named.second == 1
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        NamedRecord(1)  # pyright: ignore[reportCallIssue]


def test_records_of_one_shape_share_code_and_no_names() -> None:
    """Fields that differ in their names alone, in the order of places, by name, with defaults and factories."""

    @record
    class Left:
        a: int
        c: int = field(kw_only=True)
        b: list[int] = field(default_factory=lambda: [1])

    @record
    class Right:
        x: int
        z: int = field(kw_only=True)
        y: list[int] = field(default_factory=lambda: [2])

    assert vars(Left(1, c=3)) == {"a": 1, "b": [1], "c": 3}
    assert vars(Right(y=[5], x=4, z=6)) == {"x": 4, "y": [5], "z": 6}
    assert str(inspect.signature(Right)).startswith("(x: int, y: list[int] = <object object")
    assert list(inspect.signature(Left).parameters) == ["a", "b", "c"]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'z'"):
        Right(1)  # pyright: ignore[reportCallIssue]


def test_records_of_no_field_and_of_an_array_are_compared() -> None:
    """Values are compared as those of a tuple: the same array equals itself."""

    @record
    class Nothing:
        pass

    @record
    class One:
        value: object

    array = np.zeros(2)
    assert Nothing() == Nothing() != One(1)
    assert hash(Nothing()) == hash(Nothing())
    assert One(array) == One(array)
    assert hash(One(1)) == hash(One(1))
    assert One(1) != One(2)


def test_records_hash_by_value() -> None:
    assert len({Point(1, 2), Point(1, 2), Point(2, 1)}) == 2
    assert hash(Point(1, 2)) == hash((1, 2))


def test_records_filled_without_init_are_compared_and_copied() -> None:
    """A copy of a record whose class has not been called, as a worker process gets it from a pickle."""

    @record
    class Fresh:
        """A class without written methods yet."""

        x: int

    first, other = object.__new__(Fresh), object.__new__(Fresh)
    for instance in (first, other):
        vars(instance)["x"] = 3
    assert first == other
    assert hash(first) == hash(other)
    assert repr(first).endswith("Fresh(x=3)")
    assert copy.copy(first) == first
    assert pickle.loads(pickle.dumps(Point(1, 2))) == Point(1, 2)


def test_threads_may_call_a_class_at_once() -> None:
    """Several threads call a class for the first time."""
    for _ in range(50):

        @record
        class Shared:
            """A record that several threads declare at once."""

            x: int = 5

        start = Barrier(4)

        def make(kind: type[Shared] = Shared, start: Barrier = start) -> Shared:
            start.wait()
            return kind()

        with ThreadPoolExecutor(4) as threads:
            instances = [future.result() for future in [threads.submit(make) for _ in range(4)]]
        assert all(
            instance == instances[0] and hash(instance) == hash(instances[0]) for instance in instances
        )


def test_a_record_that_changes_has_no_hash() -> None:
    """Its fields may be set; it is compared by them, and has no hash."""

    @record(frozen=False)
    class Counted:
        name: str
        count: int = 0

    first, other = Counted("a"), Counted("a")
    first.count += 2
    assert (first.count, other.count, repr(first).endswith("Counted(name='a', count=2)")) == (2, 0, True)
    assert replace(first, name="b").count == 2
    assert first != other
    assert first == Counted("a", 2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(first)
