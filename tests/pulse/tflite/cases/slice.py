"""Slices, splits and reversals."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import (
    MOVED_TYPES,
    TfliteCase,
    case_of,
    i32,
    moved_case,
    moved_input,
    moved_tensor,
)


def slices() -> Iterator[TfliteCase]:
    for dtype in MOVED_TYPES:
        yield moved_case(
            dtype,
            "STRIDED_SLICE",
            (4, 5, 6),
            (2, 2, 6),
            [i32(1, 0, 0), i32(3, 4, 6), i32(1, 2, 1)],
            "StridedSliceOptions",
            EndMask=4,
        )
        yield moved_case(
            dtype,
            "STRIDED_SLICE",
            (4, 5, 6),
            (4, 6),
            [i32(0, -1, 0), i32(0, 0, 0), i32(1, 1, 1)],
            "StridedSliceOptions",
            BeginMask=5,
            EndMask=5,
            ShrinkAxisMask=2,
        )
        yield moved_case(dtype, "SLICE", (4, 5), (2, 4), [i32(1, 1), i32(2, -1)], "SliceOptions")
    yield moved_case("int8", "SLICE", (4, 5), (4, 5), [i32(0, 0), i32(-1, -1)], "SliceOptions")
    yield moved_case("float32", "REVERSE_V2", (4, 5), (4, 5), [i32(1)], "ReverseV2Options")


def splits() -> Iterator[TfliteCase]:
    """Two halves, by their number and by their sizes."""
    for dtype in MOVED_TYPES:
        for kind, options in (("SPLIT", "SplitOptions"), ("SPLIT_V", "SplitVOptions")):
            graph = SubgraphBuilder()
            x = moved_input(graph, (4, 6), dtype)
            outputs = [moved_tensor(graph, (4, 3), dtype) for _ in range(2)]
            axis = graph.constant(np.array(1, np.int32))
            inputs = [axis, x] if kind == "SPLIT" else [x, graph.constant(i32(3, 3)), axis]
            graph.node(kind, inputs, outputs, options, 2, NumSplits=2)
            yield case_of(f"{dtype} {kind}", graph, *outputs)


ALL = (
    slices,
    splits,
)
