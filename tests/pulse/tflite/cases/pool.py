"""Pools over windows."""

from collections.abc import Iterator

from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import SAME, VALID, X_SCALE, TfliteCase, case_of


def pools() -> Iterator[TfliteCase]:
    """Maximum and average pools of floats and codes."""
    for kind in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        for padding, shape_out in ((SAME, (1, 5, 3, 2)), (VALID, (1, 4, 2, 2))):
            fields = {"Padding": padding, "StrideH": 2, "StrideW": 1, "FilterHeight": 3, "FilterWidth": 2}
            graph = SubgraphBuilder()
            yield case_of(
                f"{kind} {padding}",
                graph,
                graph.result(kind, [graph.input((1, 9, 3, 2))], shape_out, "Pool2DOptions", **fields),
            )
            graph = SubgraphBuilder()
            x = graph.input((1, 9, 3, 2), "int8", scale=[X_SCALE], zero=[-7])
            yield case_of(
                f"int8 {kind} {padding}",
                graph,
                graph.result(kind, [x], shape_out, "Pool2DOptions", 2, "int8", (X_SCALE, -7), **fields),
            )


ALL = (pools,)
