"""Convolutions, transposed too, pools and dense layers, in floats, codes and hybrids."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.tflite.builder import Graph
from tests.pulse.tflite.cases.case import (
    RELU,
    RELU6,
    SAME,
    VALID,
    X_SCALE,
    Y_SCALE,
    Case,
    bias,
    case_of,
    noise,
    weights,
)


def convolutions() -> Iterator[Case]:
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
            g = Graph()
            x = g.input((1, 9, 4, 3))
            y = g.result(
                "CONV_2D",
                [x, g.constant(noise((5, 3, 2, 3))), g.constant(noise((5,)))],
                (1, 1, 1, 5),
                "Conv2DOptions",
                **fields,
            )
            yield case_of(f"conv {padding} {stride} {dilation}", g, y)
            for channels in (None, 5):
                g = Graph()
                x = g.input((1, 9, 4, 3), "int8", scale=[X_SCALE], zero=[-7])
                w = weights(g, (5, 3, 2, 3), channels, 0)
                y = g.result(
                    "CONV_2D",
                    [x, w, bias(g, x, w, 5)],
                    _conv_shape(9, 4, 5, fields, 3, 2),
                    "Conv2DOptions",
                    3,
                    "int8",
                    (Y_SCALE, 11),
                    **fields,
                )
                yield case_of(f"int8 conv {padding} {stride} {dilation} {channels}", g, y)
            g = Graph()
            x = g.input((1, 9, 4, 3), "int8", scale=[X_SCALE], zero=[-7])
            w = weights(g, (1, 3, 2, 6), 6, 3)
            y = g.result(
                "DEPTHWISE_CONV_2D",
                [x, w, bias(g, x, w, 6)],
                _conv_shape(9, 4, 6, fields, 3, 2),
                "DepthwiseConv2DOptions",
                3,
                "int8",
                (Y_SCALE, 4),
                DepthMultiplier=2,
                **fields,
            )
            yield case_of(f"int8 depthwise {padding} {stride} {dilation}", g, y)
            g = Graph()
            x = g.input((1, 9, 4, 3))
            y = g.result(
                "DEPTHWISE_CONV_2D",
                [x, g.constant(noise((1, 3, 2, 6))), g.constant(noise((6,)))],
                (1, 1, 1, 6),
                "DepthwiseConv2DOptions",
                DepthMultiplier=2,
                **fields,
            )
            yield case_of(f"depthwise {padding} {stride} {dilation}", g, y)
    fields = {"Padding": VALID, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    for kind, more, zero in (("int16", "int64", 0),):
        g = Graph()
        x = g.input((1, 9, 1, 16), kind, scale=[X_SCALE / 200], zero=[zero])
        w = weights(g, (5, 3, 1, 16), 5, 0)
        y = g.result(
            "CONV_2D",
            [x, w, bias(g, x, w, 5, more)],
            (1, 7, 1, 5),
            "Conv2DOptions",
            3,
            kind,
            (Y_SCALE / 200, zero),
            **fields,
        )
        yield case_of(f"{kind} conv", g, y)
    g = Graph()
    x = g.input((1, 1, 1, 3000), "int8", scale=[X_SCALE], zero=[5])
    y = g.result(
        "CONV_2D",
        [x, w := weights(g, (4, 1, 1, 3000), 4, 0), bias(g, x, w, 4)],
        (1, 1, 1, 4),
        "Conv2DOptions",
        3,
        "int8",
        (0.5, 3),
        **fields,
    )
    yield case_of("int8 conv of sums beyond f32", g, y)


def _conv_shape(h: int, w: int, channels: int, fields: dict[str, int], kh: int, kw: int) -> tuple[int, ...]:
    span = (kh - 1) * fields["DilationHFactor"] + 1
    if fields["Padding"] == SAME:
        return (1, -(-h // fields["StrideH"]), w, channels)
    return (1, (h - span) // fields["StrideH"] + 1, w - kw + 1, channels)


def hybrid_convolutions() -> Iterator[Case]:
    """Floats that meet stored codes."""
    fields = {"Padding": VALID, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    for channels in (None, 5):
        g = Graph()
        w = weights(g, (5, 3, 2, 16), channels, 0)
        inputs = [g.input((1, 9, 4, 16)), w, g.constant(noise((5,)))]
        yield case_of(
            f"hybrid conv {channels}",
            g,
            g.result("CONV_2D", inputs, (1, 7, 3, 5), "Conv2DOptions", 5, **fields),
        )
    g = Graph()
    inputs = [g.input((1, 9, 4, 16)), weights(g, (1, 3, 2, 16), 16, 3), g.constant(noise((16,)))]
    y = g.result(
        "DEPTHWISE_CONV_2D", inputs, (1, 7, 3, 16), "DepthwiseConv2DOptions", 6, DepthMultiplier=1, **fields
    )
    yield case_of("hybrid depthwise", g, y)
    g = Graph()
    shape = g.constant(np.array([1, 20, 8, 2], np.int32))
    inputs = [shape, weights(g, (2, 4, 2, 16), 2, 0), g.input((1, 9, 4, 16))]
    fields = {"Padding": VALID, "StrideH": 2, "StrideW": 2}
    y = g.result("TRANSPOSE_CONV", inputs, (1, 20, 8, 2), "TransposeConvOptions", 3, **fields)
    yield case_of("hybrid transposed", g, y)


def transposed_convolutions() -> Iterator[Case]:
    """TRANSPOSE_CONV."""
    for padding, stride in ((SAME, 2), (VALID, 2), (SAME, 3), (VALID, 1)):
        size = 5 * stride if padding == SAME else (5 - 1) * stride + 4
        g = Graph()
        x = g.input((1, 5, 1, 3))
        shape = g.constant(np.array([1, size, 1, 2], np.int32))
        y = g.result(
            "TRANSPOSE_CONV",
            [shape, g.constant(noise((2, 4, 1, 3))), x],
            (1, size, 1, 2),
            "TransposeConvOptions",
            Padding=padding,
            StrideH=stride,
            StrideW=1,
        )
        yield case_of(f"transposed {padding} {stride}", g, y)
        g = Graph()
        x = g.input((1, 5, 1, 3), "int8", scale=[X_SCALE], zero=[-7])
        shape = g.constant(np.array([1, size, 1, 2], np.int32))
        y = g.result(
            "TRANSPOSE_CONV",
            [shape, w := weights(g, (2, 4, 1, 3), 2, 0), x, bias(g, x, w, 2)],
            (1, size, 1, 2),
            "TransposeConvOptions",
            3,
            "int8",
            (Y_SCALE, 5),
            Padding=padding,
            StrideH=stride,
            StrideW=1,
        )
        yield case_of(f"int8 transposed {padding} {stride}", g, y)


def dense() -> Iterator[Case]:
    """FULLY_CONNECTED and BATCH_MATMUL."""
    for keep in (False, True):
        g = Graph()
        x = g.input((2, 3, 8))
        shape = (2, 3, 5) if keep else (6, 5)
        y = g.result(
            "FULLY_CONNECTED",
            [x, g.constant(noise((5, 8))), g.constant(noise((5,)))],
            shape,
            "FullyConnectedOptions",
            KeepNumDims=keep,
            FusedActivationFunction=RELU,
        )
        yield case_of(f"dense {keep}", g, y)
    for channels in (None, 5):
        g = Graph()
        x = g.input((3, 64), "int8", scale=[X_SCALE], zero=[-7])
        y = g.result(
            "FULLY_CONNECTED",
            [x, w := weights(g, (5, 64), channels, 0), bias(g, x, w, 5)],
            (3, 5),
            "FullyConnectedOptions",
            4,
            "int8",
            (Y_SCALE, 11),
        )
        yield case_of(f"int8 dense {channels}", g, y)
        g = Graph()
        x = g.input((3, 64))
        y = g.result(
            "FULLY_CONNECTED",
            [x, weights(g, (5, 64), channels, 0), g.constant(noise((5,)))],
            (3, 5),
            "FullyConnectedOptions",
            9,
        )
        yield case_of(f"hybrid dense {channels}", g, y)
    for channels in (None, 5):
        g = Graph()
        x = g.input((3, 64), "int16", scale=[X_SCALE / 200], zero=[0])
        y = g.result(
            "FULLY_CONNECTED",
            [x, w := weights(g, (5, 64), channels, 0), bias(g, x, w, 5, "int64")],
            (3, 5),
            "FullyConnectedOptions",
            4,
            "int16",
            (Y_SCALE / 200, 0),
        )
        yield case_of(f"int16 dense {channels}", g, y)
    g = Graph()
    x = g.input((2, 3, 8))
    y = g.result(
        "BATCH_MATMUL", [x, g.constant(noise((2, 5, 8)))], (2, 3, 5), "BatchMatMulOptions", AdjY=True
    )
    yield case_of("batch matmul", g, y)
    g = Graph()
    x, other = g.input((3, 8), name="a"), g.input((8, 5), name="b")
    y = g.result("BATCH_MATMUL", [x, other], (3, 5), "BatchMatMulOptions")
    yield case_of("batch matmul of two", g, y)
    for zero in (0, 12):
        g = Graph()
        x = g.input((2, 30, 8), "int8", name="a", scale=[X_SCALE], zero=[3])
        other = g.input((2, 8, 20), "int8", name="b", scale=[0.04], zero=[zero])
        y = g.result("BATCH_MATMUL", [x, other], (2, 30, 20), "BatchMatMulOptions", 2, "int8", (0.7, -4))
        yield case_of(f"int8 batch matmul {zero}", g, y)
    g = Graph()
    x = g.input((3, 8))
    half = g.constant(noise((5, 8)).astype(np.float16))
    w = g.result("DEQUANTIZE", [half], (5, 8))
    y = g.result("FULLY_CONNECTED", [x, w, -1], (3, 5), "FullyConnectedOptions")
    yield case_of("f16 dense", g, y)
    g = Graph()
    x = g.input((1, 9, 4, 3))
    halves = [g.constant(noise(shape).astype(np.float16)) for shape in ((5, 3, 2, 3), (5,))]
    kernel, offset = (g.result("DEQUANTIZE", [half], g.tensors[half].shape) for half in halves)
    ones = {"Padding": SAME, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    y = g.result("CONV_2D", [x, kernel, offset], (1, 9, 4, 5), "Conv2DOptions", **ones)
    yield case_of("f16 conv", g, y)


ALL = (
    convolutions,
    hybrid_convolutions,
    transposed_convolutions,
    dense,
)
