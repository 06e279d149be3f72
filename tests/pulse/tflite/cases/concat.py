"""Joins along an axis, and along a new one; tensors taken apart."""

from collections.abc import Iterator

from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import (
    MOVED_TYPES,
    TfliteCase,
    case_of,
    moved_input,
    moved_tensor,
    scale_of_moved,
)


def joins() -> Iterator[TfliteCase]:
    """Two inputs joined to one tensor."""
    for dtype in MOVED_TYPES:
        for kind, options, shape_out, fields in (
            ("CONCATENATION", "ConcatenationOptions", (2, 6), {}),
            ("PACK", "PackOptions", (2, 2, 3), {"ValuesCount": 2}),
        ):
            graph = SubgraphBuilder()
            inputs = [moved_input(graph, (2, 3), dtype, name) for name in "ab"]
            y = graph.result(
                kind, inputs, shape_out, options, 2, dtype, scale_of_moved(dtype), Axis=1, **fields
            )
            yield case_of(f"{dtype} {kind}", graph, y)


def parts() -> Iterator[TfliteCase]:
    """The entries of an axis as separate tensors."""
    for dtype in MOVED_TYPES:
        graph = SubgraphBuilder()
        x = moved_input(graph, (4, 6), dtype)
        outputs = [moved_tensor(graph, (6,), dtype) for _ in range(4)]
        graph.node("UNPACK", [x], outputs, "UnpackOptions", 2, Num=4, Axis=0)
        yield case_of(f"{dtype} UNPACK", graph, *outputs)


ALL = (
    joins,
    parts,
)
