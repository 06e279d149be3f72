"""Operators that only move their elements, and blocks of few operators."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from pulse.facts import Array
from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import X_SCALE, TfliteCase, case_of


def movements() -> Iterator[TfliteCase]:
    """The same elements elsewhere, in floats and codes."""
    for dtype in ("float32", "int8"):
        more = {} if dtype == "float32" else {"scale": [X_SCALE], "zero": [-7]}
        same = None if dtype == "float32" else (X_SCALE, -7)

        def case_of_operator(
            kind: str,
            shape: tuple[int, ...],
            shape_out: tuple[int, ...],
            extra: list[Any],
            options: str,
            dtype: str = dtype,
            more: Any = more,
            same: Any = same,
            **fields: Any,
        ) -> TfliteCase:
            graph = SubgraphBuilder()
            x = graph.input(shape, dtype, **more)
            inputs = [x, *(graph.constant(value) for value in extra)]
            return case_of(
                f"{dtype} {kind} {fields}",
                graph,
                graph.result(
                    kind,
                    inputs,
                    shape_out,
                    options,
                    2 if dtype == "int8" and kind not in ("RESHAPE", "EXPAND_DIMS", "SQUEEZE") else 1,
                    dtype,
                    same,
                    **fields,
                ),
            )

        def i32(*numbers: int) -> Array:
            return np.array(numbers, np.int32)

        yield case_of_operator("RESHAPE", (2, 3, 4), (6, 4), [i32(6, -1)], "ReshapeOptions")
        yield case_of_operator("RESHAPE", (2, 3, 4), (6, 4), [], "ReshapeOptions", NewShape=[6, 4])
        yield case_of_operator("TRANSPOSE", (2, 3, 4), (4, 2, 3), [i32(2, 0, 1)], "TransposeOptions")
        yield case_of_operator("EXPAND_DIMS", (2, 3), (2, 1, 3), [np.array(1, np.int32)], "ExpandDimsOptions")
        yield case_of_operator("SQUEEZE", (2, 1, 3), (2, 3), [], "SqueezeOptions", SqueezeDims=[1])
        yield case_of_operator("PAD", (2, 3), (3, 6), [np.array([[1, 0], [1, 2]], np.int32)], "PadOptions")
        yield case_of_operator(
            "MIRROR_PAD", (2, 5), (2, 8), [np.array([[0, 0], [1, 2]], np.int32)], "MirrorPadOptions", Mode=0
        )
        yield case_of_operator(
            "STRIDED_SLICE",
            (4, 5, 6),
            (2, 2, 6),
            [i32(1, 0, 0), i32(3, 4, 6), i32(1, 2, 1)],
            "StridedSliceOptions",
            EndMask=4,
        )
        yield case_of_operator(
            "STRIDED_SLICE",
            (4, 5, 6),
            (4, 6),
            [i32(0, -1, 0), i32(0, 0, 0), i32(1, 1, 1)],
            "StridedSliceOptions",
            BeginMask=5,
            EndMask=5,
            ShrinkAxisMask=2,
        )
        yield case_of_operator("SLICE", (4, 5), (2, 4), [i32(1, 1), i32(2, -1)], "SliceOptions")
        yield (
            case_of_operator("TILE", (2, 3), (4, 3), [i32(2, 1)], "TileOptions")
            if dtype == "float32"
            else case_of_operator("SLICE", (4, 5), (4, 5), [i32(0, 0), i32(-1, -1)], "SliceOptions")
        )
        yield case_of_operator("GATHER", (4, 5), (2, 5), [i32(2, 0)], "GatherOptions", Axis=0)
        yield (
            case_of_operator("REVERSE_V2", (4, 5), (4, 5), [i32(1)], "ReverseV2Options")
            if dtype == "float32"
            else case_of_operator("GATHER", (4, 5), (4, 2), [i32(2, 0)], "GatherOptions", Axis=1)
        )
        for kind, options, count in (
            ("SPLIT", "SplitOptions", 2),
            ("SPLIT_V", "SplitVOptions", 2),
            ("UNPACK", "UnpackOptions", 4),
        ):
            graph = SubgraphBuilder()
            x = graph.input((4, 6), dtype, **more)
            shape = (6,) if kind == "UNPACK" else (4, 3)
            outputs = [graph.tensor(shape, dtype, **more) for _ in range(count)]
            axis, sizes = graph.constant(np.array(1, np.int32)), graph.constant(i32(3, 3))
            inputs = {"SPLIT": [axis, x], "SPLIT_V": [x, sizes, axis], "UNPACK": [x]}[kind]
            fields = {"Num": 4, "Axis": 0} if kind == "UNPACK" else {"NumSplits": 2}
            graph.node(kind, inputs, outputs, options, 2, **fields)
            yield case_of(f"{dtype} {kind}", graph, *outputs)
        for kind, options, shape_out in (
            ("CONCATENATION", "ConcatenationOptions", (2, 6)),
            ("PACK", "PackOptions", (2, 2, 3)),
        ):
            graph = SubgraphBuilder()
            a, b = graph.input((2, 3), dtype, name="a", **more), graph.input((2, 3), dtype, name="b", **more)
            fields = {"ValuesCount": 2} if kind == "PACK" else {}
            yield case_of(
                f"{dtype} {kind}",
                graph,
                graph.result(kind, [a, b], shape_out, options, 2, dtype, same, Axis=1, **fields),
            )


def blocks() -> Iterator[TfliteCase]:
    """Blocks of space as batches or channels, and frames repeated."""
    for dtype in ("float32", "int8"):
        more = {} if dtype == "float32" else {"scale": [X_SCALE], "zero": [-7]}
        same, version = (None, 1) if dtype == "float32" else ((X_SCALE, -7), 2)
        block = np.array([2, 3], np.int32)
        for kind, shape, shape_out, amounts in (
            ("SPACE_TO_BATCH_ND", (1, 5, 4, 2), (6, 3, 2, 2), [[1, 0], [0, 2]]),
            ("BATCH_TO_SPACE_ND", (6, 3, 2, 2), (1, 5, 5, 2), [[1, 0], [0, 1]]),
        ):
            graph = SubgraphBuilder()
            inputs = [
                graph.input(shape, dtype, **more),
                graph.constant(block),
                graph.constant(np.array(amounts, np.int32)),
            ]
            yield case_of(
                f"{dtype} {kind}", graph, graph.result(kind, inputs, shape_out, "", version, dtype, same)
            )
        for kind, options, shape, shape_out in (
            ("DEPTH_TO_SPACE", "DepthToSpaceOptions", (1, 3, 2, 8), (1, 6, 4, 2)),
            ("SPACE_TO_DEPTH", "SpaceToDepthOptions", (1, 6, 4, 2), (1, 3, 2, 8)),
        ):
            graph = SubgraphBuilder()
            x = graph.input(shape, dtype, **more)
            yield case_of(
                f"{dtype} {kind}",
                graph,
                graph.result(kind, [x], shape_out, options, version, dtype, same, BlockSize=2),
            )
        graph = SubgraphBuilder()
        inputs = [graph.input((1, 3, 1, 2), dtype, **more), graph.constant(np.array([6, 1], np.int32))]
        y = graph.result(
            "RESIZE_NEAREST_NEIGHBOR",
            inputs,
            (1, 6, 1, 2),
            "ResizeNearestNeighborOptions",
            version,
            dtype,
            same,
        )
        yield case_of(f"{dtype} RESIZE_NEAREST_NEIGHBOR", graph, y)


ALL = (
    movements,
    blocks,
)
