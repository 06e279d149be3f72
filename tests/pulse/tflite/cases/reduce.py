"""Reductions, and places of an extreme."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import X_SCALE, TfliteCase, case_of


def reductions() -> Iterator[TfliteCase]:
    """Means, sums, extremes and products, over halves too."""
    for kind in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        for keep in (True, False):
            graph = SubgraphBuilder()
            x, axes = graph.input((2, 3, 4)), graph.constant(np.array([1], np.int32))
            yield case_of(
                f"{kind} {keep}",
                graph,
                graph.result(kind, [x, axes], (2, 1, 4) if keep else (2, 4), "ReducerOptions", KeepDims=keep),
            )
    graph = SubgraphBuilder()
    x = graph.input((1, 7, 3, 40), "int16", scale=[0.00031], zero=[0])
    axes = graph.constant(np.array([1, 2], np.int32))
    y = graph.result("MEAN", [x, axes], (1, 40), "ReducerOptions", 2, "int16", (0.00007, 0))
    yield case_of("int16 MEAN", graph, y)
    for kind, scale in (("MEAN", 0.0213), ("SUM", 0.3), ("REDUCE_MAX", X_SCALE)):
        graph = SubgraphBuilder()
        x = graph.input((1, 7, 3, 4), "int8", scale=[X_SCALE], zero=[-7])
        axes = graph.constant(np.array([1, 2], np.int32))
        zero = -7 if kind == "REDUCE_MAX" else 5
        yield case_of(
            f"int8 {kind}",
            graph,
            graph.result(kind, [x, axes], (1, 4), "ReducerOptions", 2, "int8", (scale, zero)),
        )
    for kind in ("MEAN", "SUM"):
        for dtype, zero in (("int8", -7), ("uint8", 121), ("int16", 0)):
            for count, scale in ((6, X_SCALE), (14, 0.5)):
                graph = SubgraphBuilder()
                x = graph.input((512, count), dtype, scale=[X_SCALE], zero=[zero])
                axes = graph.constant(np.array([1], np.int32))
                y = graph.result(
                    kind, [x, axes], (512,), "ReducerOptions", 2, dtype, (scale, zero and zero + 1)
                )
                yield case_of(f"{dtype} {kind} of {count} on halves", graph, y)


def extremes() -> Iterator[TfliteCase]:
    """ARG_MAX and ARG_MIN."""
    for kind, options in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        graph = SubgraphBuilder()
        axis = graph.constant(np.array(1, np.int32))
        yield case_of(
            kind,
            graph,
            graph.result(kind, [graph.input((3, 5)), axis], (3,), options, dtype="int32", OutputType=2),
        )


ALL = (
    reductions,
    extremes,
)
