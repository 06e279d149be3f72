"""Streams after calls that were interrupted, at every place of the call."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from pulse.errors import InputError
from tests.interruption import Unit, everywhere
from tests.pulse.program.programs import are_bit_identical


def are_equal_outputs(left: Any, right: Any) -> bool:
    """Bit for bit, of one call or of several."""
    if isinstance(left, Mapping):
        return are_bit_identical(left, right)
    return len(left) == len(right) and all(map(are_equal_outputs, left, right))


def count_outcomes(
    begin: Callable[[], Any],
    call: Callable[[Any], Any],
    after: Callable[[Any], Any],
    unit: Unit,
    step: int,
    refused: Sequence[str] = ("snapshot",),
    refusal: str = r"with reset\(\)",
) -> Counter[str]:
    """Interrupt a call at every place and count what became of the stream; none may give a wrong number.

    begin    makes a stream, always the same
    after    tells how it continues
    refused  methods that are refused, with these words, until a stream that has to be reset is
    """
    counts = Counter[str]()
    straight = begin()
    saved = straight.snapshot()
    expected = call(straight), after(straight)
    streams: list[Any] = []

    def begin_call() -> Callable[[], object]:
        streams.append(begin())
        return lambda: call(streams[-1])

    for _ in everywhere(begin_call, unit, step):
        stream = streams.pop()
        try:
            again = call(stream)
            counts["as before"] += 1
        except InputError as error:
            assert "reset(), or restore() a snapshot" in str(error)
            counts["refused"] += 1
            for method in refused:
                with pytest.raises(InputError, match=refusal):
                    getattr(stream, method)()
            stream.restore(saved)
            again = call(stream)
        assert are_equal_outputs(again, expected[0])
        assert are_equal_outputs(after(stream), expected[1])
    assert are_equal_outputs(after(streams[-1]), expected[1])  # the last call was not interrupted
    return counts
