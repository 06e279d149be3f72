"""Convolutions, transposed too, in floats, codes and hybrids."""

from collections.abc import Iterator

import numpy as np

from tests.noise import normal_noise
from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import (
    RELU,
    RELU6,
    SAME,
    VALID,
    X_SCALE,
    Y_SCALE,
    TfliteCase,
    bias,
    case_of,
    weights,
)


def convolutions() -> Iterator[TfliteCase]:
    """CONV_2D and DEPTHWISE_CONV_2D."""
    for padding in (SAME, VALID):
        for stride, dilation, activation in ((1, 1, 0), (2, 1, RELU), (1, 2, RELU6)):
            fields = {
                "Padding": padding,
                "StrideH": stride,
                "StrideW": 1,
                "DilationHFactor": dilation,
                "DilationWFactor": 1,
                "FusedActivationFunction": activation,
            }
            graph = SubgraphBuilder()
            x = graph.input((1, 9, 4, 3))
            y = graph.result(
                "CONV_2D",
                [x, graph.constant(normal_noise(5, 3, 2, 3)), graph.constant(normal_noise(5))],
                (1, 1, 1, 5),
                "Conv2DOptions",
                **fields,
            )
            yield case_of(f"conv {padding} {stride} {dilation}", graph, y)
            for channels in (None, 5):
                graph = SubgraphBuilder()
                x = graph.input((1, 9, 4, 3), "int8", scale=[X_SCALE], zero=[-7])
                w = weights(graph, (5, 3, 2, 3), channels, 0)
                y = graph.result(
                    "CONV_2D",
                    [x, w, bias(graph, x, w, 5)],
                    _conv_shape(9, 4, 5, fields, 3, 2),
                    "Conv2DOptions",
                    3,
                    "int8",
                    (Y_SCALE, 11),
                    **fields,
                )
                yield case_of(f"int8 conv {padding} {stride} {dilation} {channels}", graph, y)
            graph = SubgraphBuilder()
            x = graph.input((1, 9, 4, 3), "int8", scale=[X_SCALE], zero=[-7])
            w = weights(graph, (1, 3, 2, 6), 6, 3)
            y = graph.result(
                "DEPTHWISE_CONV_2D",
                [x, w, bias(graph, x, w, 6)],
                _conv_shape(9, 4, 6, fields, 3, 2),
                "DepthwiseConv2DOptions",
                3,
                "int8",
                (Y_SCALE, 4),
                DepthMultiplier=2,
                **fields,
            )
            yield case_of(f"int8 depthwise {padding} {stride} {dilation}", graph, y)
            graph = SubgraphBuilder()
            x = graph.input((1, 9, 4, 3))
            y = graph.result(
                "DEPTHWISE_CONV_2D",
                [x, graph.constant(normal_noise(1, 3, 2, 6)), graph.constant(normal_noise(6))],
                (1, 1, 1, 6),
                "DepthwiseConv2DOptions",
                DepthMultiplier=2,
                **fields,
            )
            yield case_of(f"depthwise {padding} {stride} {dilation}", graph, y)
    fields = {"Padding": VALID, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    for kind, more, zero in (("int16", "int64", 0),):
        graph = SubgraphBuilder()
        x = graph.input((1, 9, 1, 16), kind, scale=[X_SCALE / 200], zero=[zero])
        w = weights(graph, (5, 3, 1, 16), 5, 0)
        y = graph.result(
            "CONV_2D",
            [x, w, bias(graph, x, w, 5, more)],
            (1, 7, 1, 5),
            "Conv2DOptions",
            3,
            kind,
            (Y_SCALE / 200, zero),
            **fields,
        )
        yield case_of(f"{kind} conv", graph, y)
    graph = SubgraphBuilder()
    x = graph.input((1, 1, 1, 3000), "int8", scale=[X_SCALE], zero=[5])
    y = graph.result(
        "CONV_2D",
        [x, w := weights(graph, (4, 1, 1, 3000), 4, 0), bias(graph, x, w, 4)],
        (1, 1, 1, 4),
        "Conv2DOptions",
        3,
        "int8",
        (0.5, 3),
        **fields,
    )
    yield case_of("int8 conv of sums beyond f32", graph, y)


def _conv_shape(h: int, w: int, channels: int, fields: dict[str, int], kh: int, kw: int) -> tuple[int, ...]:
    span = (kh - 1) * fields["DilationHFactor"] + 1
    if fields["Padding"] == SAME:
        return (1, -(-h // fields["StrideH"]), w, channels)
    return (1, (h - span) // fields["StrideH"] + 1, w - kw + 1, channels)


def hybrid_convolutions() -> Iterator[TfliteCase]:
    """Floats that meet stored codes."""
    fields = {"Padding": VALID, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    for channels in (None, 5):
        graph = SubgraphBuilder()
        w = weights(graph, (5, 3, 2, 16), channels, 0)
        inputs = [graph.input((1, 9, 4, 16)), w, graph.constant(normal_noise(5))]
        yield case_of(
            f"hybrid conv {channels}",
            graph,
            graph.result("CONV_2D", inputs, (1, 7, 3, 5), "Conv2DOptions", 5, **fields),
        )
    graph = SubgraphBuilder()
    inputs = [
        graph.input((1, 9, 4, 16)),
        weights(graph, (1, 3, 2, 16), 16, 3),
        graph.constant(normal_noise(16)),
    ]
    y = graph.result(
        "DEPTHWISE_CONV_2D", inputs, (1, 7, 3, 16), "DepthwiseConv2DOptions", 6, DepthMultiplier=1, **fields
    )
    yield case_of("hybrid depthwise", graph, y)
    graph = SubgraphBuilder()
    shape = graph.constant(np.array([1, 20, 8, 2], np.int32))
    inputs = [shape, weights(graph, (2, 4, 2, 16), 2, 0), graph.input((1, 9, 4, 16))]
    fields = {"Padding": VALID, "StrideH": 2, "StrideW": 2}
    y = graph.result("TRANSPOSE_CONV", inputs, (1, 20, 8, 2), "TransposeConvOptions", 3, **fields)
    yield case_of("hybrid transposed", graph, y)


def transposed_convolutions() -> Iterator[TfliteCase]:
    for padding, stride in ((SAME, 2), (VALID, 2), (SAME, 3), (VALID, 1)):
        size = 5 * stride if padding == SAME else (5 - 1) * stride + 4
        graph = SubgraphBuilder()
        x = graph.input((1, 5, 1, 3))
        shape = graph.constant(np.array([1, size, 1, 2], np.int32))
        y = graph.result(
            "TRANSPOSE_CONV",
            [shape, graph.constant(normal_noise(2, 4, 1, 3)), x],
            (1, size, 1, 2),
            "TransposeConvOptions",
            Padding=padding,
            StrideH=stride,
            StrideW=1,
        )
        yield case_of(f"transposed {padding} {stride}", graph, y)
        graph = SubgraphBuilder()
        x = graph.input((1, 5, 1, 3), "int8", scale=[X_SCALE], zero=[-7])
        shape = graph.constant(np.array([1, size, 1, 2], np.int32))
        y = graph.result(
            "TRANSPOSE_CONV",
            [shape, w := weights(graph, (2, 4, 1, 3), 2, 0), x, bias(graph, x, w, 2)],
            (1, size, 1, 2),
            "TransposeConvOptions",
            3,
            "int8",
            (Y_SCALE, 5),
            Padding=padding,
            StrideH=stride,
            StrideW=1,
        )
        yield case_of(f"int8 transposed {padding} {stride}", graph, y)


ALL = (
    convolutions,
    hybrid_convolutions,
    transposed_convolutions,
)
