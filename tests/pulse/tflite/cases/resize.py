"""Frames repeated by resizing."""

from collections.abc import Iterator

from tests.pulse.tflite.cases.case import MOVED_TYPES, TfliteCase, i32, moved_case


def repeated_frames() -> Iterator[TfliteCase]:
    for dtype in MOVED_TYPES:
        yield moved_case(
            dtype,
            "RESIZE_NEAREST_NEIGHBOR",
            (1, 3, 1, 2),
            (1, 6, 1, 2),
            [i32(6, 1)],
            "ResizeNearestNeighborOptions",
        )


ALL = (repeated_frames,)
