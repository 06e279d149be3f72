"""Entries read by index."""

from collections.abc import Iterator

from tests.pulse.tflite.cases.case import MOVED_TYPES, TfliteCase, i32, moved_case


def gathers() -> Iterator[TfliteCase]:
    for dtype in MOVED_TYPES:
        yield moved_case(dtype, "GATHER", (4, 5), (2, 5), [i32(2, 0)], "GatherOptions", Axis=0)
    yield moved_case("int8", "GATHER", (4, 5), (4, 2), [i32(2, 0)], "GatherOptions", Axis=1)


ALL = (gathers,)
