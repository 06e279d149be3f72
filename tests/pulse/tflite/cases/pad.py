"""Padding with zeros and with mirrored elements."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.tflite.cases.case import MOVED_TYPES, TfliteCase, moved_case


def pads() -> Iterator[TfliteCase]:
    for dtype in MOVED_TYPES:
        yield moved_case(dtype, "PAD", (2, 3), (3, 6), [np.array([[1, 0], [1, 2]], np.int32)], "PadOptions")
        amounts = np.array([[0, 0], [1, 2]], np.int32)
        yield moved_case(dtype, "MIRROR_PAD", (2, 5), (2, 8), [amounts], "MirrorPadOptions", Mode=0)


ALL = (pads,)
