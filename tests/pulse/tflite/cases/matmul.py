"""Dense layers and products of matrices, in floats, codes and hybrids."""

from collections.abc import Iterator

import numpy as np

from tests.noise import normal_noise
from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import (
    RELU,
    SAME,
    X_SCALE,
    Y_SCALE,
    TfliteCase,
    bias,
    case_of,
    weights,
)


def dense() -> Iterator[TfliteCase]:
    """FULLY_CONNECTED and BATCH_MATMUL."""
    for keep in (False, True):
        graph = SubgraphBuilder()
        x = graph.input((2, 3, 8))
        shape = (2, 3, 5) if keep else (6, 5)
        y = graph.result(
            "FULLY_CONNECTED",
            [x, graph.constant(normal_noise(5, 8)), graph.constant(normal_noise(5))],
            shape,
            "FullyConnectedOptions",
            KeepNumDims=keep,
            FusedActivationFunction=RELU,
        )
        yield case_of(f"dense {keep}", graph, y)
    for channels in (None, 5):
        graph = SubgraphBuilder()
        x = graph.input((3, 64), "int8", scale=[X_SCALE], zero=[-7])
        y = graph.result(
            "FULLY_CONNECTED",
            [x, w := weights(graph, (5, 64), channels, 0), bias(graph, x, w, 5)],
            (3, 5),
            "FullyConnectedOptions",
            4,
            "int8",
            (Y_SCALE, 11),
        )
        yield case_of(f"int8 dense {channels}", graph, y)
        graph = SubgraphBuilder()
        x = graph.input((3, 64))
        y = graph.result(
            "FULLY_CONNECTED",
            [x, weights(graph, (5, 64), channels, 0), graph.constant(normal_noise(5))],
            (3, 5),
            "FullyConnectedOptions",
            9,
        )
        yield case_of(f"hybrid dense {channels}", graph, y)
    for channels in (None, 5):
        graph = SubgraphBuilder()
        x = graph.input((3, 64), "int16", scale=[X_SCALE / 200], zero=[0])
        y = graph.result(
            "FULLY_CONNECTED",
            [x, w := weights(graph, (5, 64), channels, 0), bias(graph, x, w, 5, "int64")],
            (3, 5),
            "FullyConnectedOptions",
            4,
            "int16",
            (Y_SCALE / 200, 0),
        )
        yield case_of(f"int16 dense {channels}", graph, y)
    graph = SubgraphBuilder()
    x = graph.input((2, 3, 8))
    y = graph.result(
        "BATCH_MATMUL", [x, graph.constant(normal_noise(2, 5, 8))], (2, 3, 5), "BatchMatMulOptions", AdjY=True
    )
    yield case_of("batch matmul", graph, y)
    graph = SubgraphBuilder()
    x, other = graph.input((3, 8), name="a"), graph.input((8, 5), name="b")
    y = graph.result("BATCH_MATMUL", [x, other], (3, 5), "BatchMatMulOptions")
    yield case_of("batch matmul of two", graph, y)
    for zero in (0, 12):
        graph = SubgraphBuilder()
        x = graph.input((2, 30, 8), "int8", name="a", scale=[X_SCALE], zero=[3])
        other = graph.input((2, 8, 20), "int8", name="b", scale=[0.04], zero=[zero])
        y = graph.result("BATCH_MATMUL", [x, other], (2, 30, 20), "BatchMatMulOptions", 2, "int8", (0.7, -4))
        yield case_of(f"int8 batch matmul {zero}", graph, y)
    graph = SubgraphBuilder()
    x = graph.input((3, 8))
    half = graph.constant(normal_noise(5, 8).astype(np.float16))
    w = graph.result("DEQUANTIZE", [half], (5, 8))
    y = graph.result("FULLY_CONNECTED", [x, w, -1], (3, 5), "FullyConnectedOptions")
    yield case_of("f16 dense", graph, y)
    graph = SubgraphBuilder()
    x = graph.input((1, 9, 4, 3))
    halves = [graph.constant(normal_noise(*shape).astype(np.float16)) for shape in ((5, 3, 2, 3), (5,))]
    kernel, offset = (graph.result("DEQUANTIZE", [half], graph.tensors[half].shape) for half in halves)
    unit_steps = {"Padding": SAME, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    y = graph.result("CONV_2D", [x, kernel, offset], (1, 9, 4, 5), "Conv2DOptions", **unit_steps)
    yield case_of("f16 conv", graph, y)


ALL = (dense,)
