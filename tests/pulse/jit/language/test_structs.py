"""Declared structs: where fields are, what Python and compiled code read and write, what is refused."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.jit.entries import Entry
from pulse.jit.language.address import address_of, words_at
from pulse.jit.language.atomics import compare_exchange, fence, increment, load, store
from pulse.jit.language.structs import Struct, bytes_of, numbers, struct_at
from pulse.jit.python_call import CallResult
from pulse.jit.rows.fields import LINE_WORDS, WORD_BYTES, fields_of, starts_line, words_of


class Side(Struct):
    """The counters of one thread."""

    calls: int = starts_line()
    seconds: float


class Shared(Struct):
    """Fields of two threads, those of two sides, and numbers up to the end."""

    first: int
    part: float
    few: NDArray[np.int64] = numbers(3)
    left: Side
    right: Side
    last: int = starts_line()
    rest: NDArray[np.int64] = numbers()


shared_at, side_at = struct_at(Shared), struct_at(Side)


def words(kind: type[Struct]) -> dict[str, int]:
    return {name: field.word for name, field in fields_of(kind).items()}


def test_fields_lie_in_order_and_lines_begin_where_declared() -> None:
    assert words(Side) == {"calls": 0, "seconds": 1}
    assert words_of(Side) == LINE_WORDS
    assert words(Shared) == {
        "first": 0,
        "part": 1,
        "few": 2,
        "left": LINE_WORDS,
        "right": 2 * LINE_WORDS,
        "last": 3 * LINE_WORDS,
        "rest": 3 * LINE_WORDS + 1,
    }
    assert bytes_of(Shared) == WORD_BYTES * 4 * LINE_WORDS
    assert Side.new(count=0).words.size == LINE_WORDS
    shared = Shared.new(count=2, more=5)
    assert shared.address % (WORD_BYTES * LINE_WORDS) == 0
    assert shared.words.size == 2 * 4 * LINE_WORDS + 5
    assert not shared.words.any()


def test_python_reads_and_writes_fields() -> None:
    shared = Shared.new(count=2)
    shared.first, shared.part, shared.last = -3, 0.25, 1 << 62
    shared.right.calls, shared.right.seconds = 7, -1.5
    shared.few[:] = 4, 5, 6
    shared[1].first = 9
    assert (shared.first, shared.part, shared.last, shared[1].first) == (-3, 0.25, 1 << 62, 9)
    assert (shared.left.calls, shared.right.calls, shared.right.seconds) == (0, 7, -1.5)
    assert shared.words[2:5].tolist() == [4, 5, 6]
    assert shared.words[2 * LINE_WORDS] == 7
    again = shared_at(shared.address)
    again.first += 1
    assert type(again) is Shared
    assert shared.first == -2
    assert again.right.seconds == -1.5
    assert shared.address_of("last") == shared.address + WORD_BYTES * 3 * LINE_WORDS


@pytest.mark.parametrize("name", ["frist", "few", "left"])
def test_unknown_fields_are_not_written(name: str) -> None:
    shared: Any = Shared.new()
    with pytest.raises(AttributeError, match=f"Shared has no number '{name}'"):
        setattr(shared, name, 1)


def test_unknown_fields_are_not_read() -> None:
    shared: Any = Shared.new()
    with pytest.raises(AttributeError, match="frist"):
        _ = shared.frist
    with pytest.raises(KeyError, match="frist"):
        shared.address_of("frist")


def test_a_field_cannot_have_the_name_of_an_attribute() -> None:
    with pytest.raises(TypeError, match=r"Bad\.words: structs use this name for something else"):
        type("Bad", (Struct,), {"__annotations__": {"words": int}})


@pytest.mark.parametrize(
    "words",
    [np.zeros(3, np.int64), np.zeros(99), np.zeros((99, 2), np.int64)[:, 0]],
    ids=["too few", "floats", "strided"],
)
def test_memory_that_does_not_fit_is_refused(words: Array) -> None:
    with pytest.raises(ValueError, match=r"Shared: needs 32 int64"):
        Shared(words)


def compile_entry(function: Any, arguments: int, gives: CallResult = None) -> Any:
    return Entry(f"test.{function.__name__}", function, arguments, gives).call


def test_compiled_code_reads_and_writes_the_same() -> None:
    def work(address: int, count: int) -> None:
        for i in range(count):
            shared = shared_at(address)[i]
            shared.first += i + 1
            shared.part, shared.last = shared.part / 2, shared.few[2]
            side = shared.left if i == 0 else shared.right
            side.calls -= 1
            side.seconds = side.calls * 0.5
            shared.few[1] = shared.first

    structs = Shared.new(count=2)
    for i in range(2):
        structs[i].first, structs[i].part, structs[i].few[2] = 10, 3.0, 40 + i
    compile_entry(work, 2)(structs.address, 2)
    for i in range(2):
        assert (structs[i].first, structs[i].part, structs[i].last, structs[i].few[1]) == (
            11 + i,
            1.5,
            40 + i,
            11 + i,
        )
    assert (structs.left.calls, structs.left.seconds, structs.right.calls) == (-1, -0.5, 0)
    assert (structs[1].right.calls, structs[1].right.seconds, structs[1].left.calls) == (-1, -0.5, 0)


def test_threads_share_words() -> None:
    def share(address: int, more: int) -> int:
        shared = shared_at(address)
        store(shared, "first", load(shared, "last") + more)
        increment(shared, "last")
        increment(shared.few, 1)
        store(shared.rest, more, load(shared.few, 1))
        fence()
        side = side_at(address_of(shared.left))
        good = compare_exchange(side, "calls", 0, 5) and not compare_exchange(side, "calls", 0, 6)
        return load(words_at(address_of(side)), 0) if good else -1

    words = Shared.new(more=4)
    words.last = 20
    assert compile_entry(share, 2, "int")(words.address, 3) == 5
    assert (words.first, words.last, words.few.tolist(), words.rest[3]) == (23, 21, [0, 1, 0], 1)


def test_the_compiler_refuses_a_field_that_is_not_there() -> None:
    def reads(address: int) -> int:
        return shared_at(address).frist

    def writes(address: int) -> None:
        shared_at(address).frist = 1

    def orders(address: int) -> int:
        return load(shared_at(address), "part")

    for function, gives in ((reads, "int"), (writes, None), (orders, "int")):
        with pytest.raises(CompileError, match=r"cannot compile it"):
            compile_entry(function, 1, gives)
