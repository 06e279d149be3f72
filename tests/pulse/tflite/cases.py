"""Models of one operator or few, in floats and in codes: each compared with LiteRT."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pulse.facts import Array
from tests.pulse.tflite.builder import Graph

SAME, VALID = 0, 1
RELU, RELU6 = 1, 3
X_SCALE, Y_SCALE = 0.05, 0.06
RANGE = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


@dataclass
class Case:
    """A model, and what each of its inputs may hold."""

    name: str
    graph: Graph

    def feeds(self, rng: np.random.Generator) -> list[Array]:
        """Random inputs."""
        return [_values(rng, self.graph.tensors[number]) for number in self.graph.inputs]


def _values(rng: np.random.Generator, spec: Any) -> Array:
    shape = [max(size, 1) for size in spec.shape]
    if spec.kind in RANGE:
        low, high = RANGE[spec.kind]
        return rng.integers(low, high + 1, shape).astype(spec.kind)
    if spec.kind in ("int32", "int64"):
        return rng.integers(1, 5, shape).astype(spec.kind)
    if spec.kind == "bool":
        return rng.random(shape) < 0.5
    return rng.standard_normal(shape).astype(np.float32)


CASES: list[Callable[[], Iterator[Case]]] = []


def cases(function: Callable[[], Iterator[Case]]) -> Callable[[], Iterator[Case]]:
    """Register a generator of cases."""
    CASES.append(function)
    return function


def all_cases() -> list[Case]:
    """Every case, in the same order each time."""
    return [case for function in CASES for case in function()]


def noise(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Floats that are the same in every run."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def codes(shape: tuple[int, ...], seed: int = 0, kind: str = "int8") -> Array:
    """Codes of weights that are the same in every run."""
    return np.random.default_rng(seed).integers(-127, 128, shape).astype(kind)


def done(name: str, graph: Graph, *outputs: int) -> Case:
    """A case whose outputs are given."""
    graph.outputs = list(outputs)
    return Case(name, graph)


def weights(graph: Graph, shape: tuple[int, ...], channels: int | None, axis: int, seed: int = 0) -> int:
    """Stored codes with one scale, or one for each channel."""
    count = channels or 1
    scale = (0.002 + 0.004 * np.random.default_rng(seed).random(count)).astype(np.float32)
    return graph.constant(codes(shape, seed), scale=scale, zero=[0] * count, axis=axis)


def bias(graph: Graph, x: int, w: int, size: int, kind: str = "int32") -> int:
    """Stored whole numbers, of the scale of the sums that they are added to."""
    scale = [np.float32(graph.tensors[x].scale[0]) * np.float32(each) for each in graph.tensors[w].scale]
    value = np.random.default_rng(5).integers(-2000, 2000, size).astype(kind)
    return graph.constant(value, scale=scale, zero=[0] * len(scale))


@cases
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
            yield done(f"conv {padding} {stride} {dilation}", g, y)
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
                yield done(f"int8 conv {padding} {stride} {dilation} {channels}", g, y)
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
            yield done(f"int8 depthwise {padding} {stride} {dilation}", g, y)
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
            yield done(f"depthwise {padding} {stride} {dilation}", g, y)
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
        yield done(f"{kind} conv", g, y)
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
    yield done("int8 conv of sums beyond f32", g, y)


def _conv_shape(h: int, w: int, channels: int, fields: dict[str, int], kh: int, kw: int) -> tuple[int, ...]:
    span = (kh - 1) * fields["DilationHFactor"] + 1
    if fields["Padding"] == SAME:
        return (1, -(-h // fields["StrideH"]), w, channels)
    return (1, (h - span) // fields["StrideH"] + 1, w - kw + 1, channels)


@cases
def hybrid_convolutions() -> Iterator[Case]:
    """Floats that meet stored codes."""
    fields = {"Padding": VALID, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    for channels in (None, 5):
        g = Graph()
        w = weights(g, (5, 3, 2, 16), channels, 0)
        inputs = [g.input((1, 9, 4, 16)), w, g.constant(noise((5,)))]
        yield done(
            f"hybrid conv {channels}",
            g,
            g.result("CONV_2D", inputs, (1, 7, 3, 5), "Conv2DOptions", 5, **fields),
        )
    g = Graph()
    inputs = [g.input((1, 9, 4, 16)), weights(g, (1, 3, 2, 16), 16, 3), g.constant(noise((16,)))]
    y = g.result(
        "DEPTHWISE_CONV_2D", inputs, (1, 7, 3, 16), "DepthwiseConv2DOptions", 6, DepthMultiplier=1, **fields
    )
    yield done("hybrid depthwise", g, y)
    g = Graph()
    shape = g.constant(np.array([1, 20, 8, 2], np.int32))
    inputs = [shape, weights(g, (2, 4, 2, 16), 2, 0), g.input((1, 9, 4, 16))]
    fields = {"Padding": VALID, "StrideH": 2, "StrideW": 2}
    y = g.result("TRANSPOSE_CONV", inputs, (1, 20, 8, 2), "TransposeConvOptions", 3, **fields)
    yield done("hybrid transposed", g, y)


@cases
def transposed() -> Iterator[Case]:
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
        yield done(f"transposed {padding} {stride}", g, y)
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
        yield done(f"int8 transposed {padding} {stride}", g, y)


@cases
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
        yield done(f"dense {keep}", g, y)
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
        yield done(f"int8 dense {channels}", g, y)
        g = Graph()
        x = g.input((3, 64))
        y = g.result(
            "FULLY_CONNECTED",
            [x, weights(g, (5, 64), channels, 0), g.constant(noise((5,)))],
            (3, 5),
            "FullyConnectedOptions",
            9,
        )
        yield done(f"hybrid dense {channels}", g, y)
    g = Graph()
    x = g.input((3, 64), "int16", scale=[X_SCALE / 200], zero=[0])
    y = g.result(
        "FULLY_CONNECTED",
        [x, w := weights(g, (5, 64), None, 0), bias(g, x, w, 5, "int64")],
        (3, 5),
        "FullyConnectedOptions",
        4,
        "int16",
        (Y_SCALE / 200, 0),
    )
    yield done("int16 dense", g, y)
    g = Graph()
    x = g.input((2, 3, 8))
    y = g.result(
        "BATCH_MATMUL", [x, g.constant(noise((2, 5, 8)))], (2, 3, 5), "BatchMatMulOptions", AdjY=True
    )
    yield done("batch matmul", g, y)
    g = Graph()
    x, other = g.input((3, 8), name="a"), g.input((8, 5), name="b")
    y = g.result("BATCH_MATMUL", [x, other], (3, 5), "BatchMatMulOptions")
    yield done("batch matmul of two", g, y)
    g = Graph()
    x = g.input((2, 3, 8), "int8", name="a", scale=[X_SCALE], zero=[3])
    other = g.input((2, 8, 5), "int8", name="b", scale=[0.04], zero=[0])
    y = g.result("BATCH_MATMUL", [x, other], (2, 3, 5), "BatchMatMulOptions", 2, "int8", (0.7, -4))
    yield done("int8 batch matmul", g, y)
    g = Graph()
    x = g.input((3, 8))
    half = g.constant(noise((5, 8)).astype(np.float16))
    w = g.result("DEQUANTIZE", [half], (5, 8))
    y = g.result("FULLY_CONNECTED", [x, w, -1], (3, 5), "FullyConnectedOptions")
    yield done("f16 dense", g, y)


FLOATS = (
    ("ADD", "AddOptions"),
    ("SUB", "SubOptions"),
    ("MUL", "MulOptions"),
    ("DIV", "DivOptions"),
    ("MAXIMUM", "MaximumMinimumOptions"),
    ("MINIMUM", "MaximumMinimumOptions"),
    ("SQUARED_DIFFERENCE", "SquaredDifferenceOptions"),
    ("FLOOR_DIV", "FloorDivOptions"),
    ("FLOOR_MOD", "FloorModOptions"),
)


@cases
def pairs() -> Iterator[Case]:
    """Functions of two tensors."""
    for kind, options in FLOATS:
        g = Graph()
        a, b = g.input((2, 3, 4), name="a"), g.input((4,), name="b")
        yield done(f"{kind} of floats", g, g.result(kind, [a, b], (2, 3, 4), options))
    for kind, options in FLOATS[:3]:
        for dtype, zero in (("int8", 3), ("uint8", 120)):
            g = Graph()
            a = g.input((2, 3, 4), dtype, name="a", scale=[X_SCALE], zero=[zero])
            b = g.input((2, 3, 4), dtype, name="b", scale=[0.031], zero=[zero + 4])
            y = g.result(kind, [a, b], (2, 3, 4), options, 2, dtype, (0.11, zero - 5))
            yield done(f"{dtype} {kind}", g, y)
    for kind in ("MAXIMUM", "MINIMUM"):
        g = Graph()
        a = g.input((2, 3, 4), "int8", name="a", scale=[X_SCALE], zero=[3])
        b = g.input((2, 3, 4), "int8", name="b", scale=[X_SCALE], zero=[3])
        yield done(
            f"int8 {kind}",
            g,
            g.result(kind, [a, b], (2, 3, 4), "MaximumMinimumOptions", 2, "int8", (X_SCALE, 3)),
        )
    for kind in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
        g = Graph()
        a, b = g.input((2, 3), "int32", name="a"), g.input((2, 3), "int32", name="b")
        options = "".join(part.capitalize() for part in kind.split("_")) + "Options"
        yield done(kind, g, g.result(kind, [a, b], (2, 3), options, dtype="bool"))
    g = Graph()
    c, a, b = g.input((2, 3), "bool", name="c"), g.input((2, 3), name="a"), g.input((2, 3), name="b")
    yield done("SELECT_V2", g, g.result("SELECT_V2", [c, a, b], (2, 3), "SelectV2Options"))
    g = Graph()
    a, b = g.input((2, 3), "int32", name="a"), g.input((2, 3), "int32", name="b")
    y = g.result("ADD", [a, b], (2, 3), "AddOptions", dtype="int32")
    yield done("int32 ADD and CAST", g, g.result("CAST", [y], (2, 3), "CastOptions"))


@cases
def singles() -> Iterator[Case]:
    """Functions of one tensor."""
    for kind, options in (
        ("LOGISTIC", ""),
        ("TANH", ""),
        ("RELU", ""),
        ("RELU6", ""),
        ("RELU_N1_TO_1", ""),
        ("ABS", "AbsOptions"),
        ("NEG", "NegOptions"),
        ("EXP", "ExpOptions"),
        ("FLOOR", ""),
        ("CEIL", ""),
        ("ROUND", ""),
        ("SIN", ""),
        ("COS", "CosOptions"),
        ("SQUARE", "SquareOptions"),
        ("ELU", ""),
        ("HARD_SWISH", "HardSwishOptions"),
        ("SOFTMAX", "SoftmaxOptions"),
        ("LOG_SOFTMAX", "LogSoftmaxOptions"),
        ("GELU", "GeluOptions"),
        ("LEAKY_RELU", "LeakyReluOptions"),
    ):
        g = Graph()
        fields = {"SOFTMAX": {"Beta": 1.5}, "LEAKY_RELU": {"Alpha": 0.2}}.get(kind, {})
        yield done(f"{kind} of floats", g, g.result(kind, [g.input((2, 5))], (2, 5), options, **fields))
    for kind in ("SQRT", "RSQRT", "LOG"):
        g = Graph()
        positive = g.result("EXP", [g.input((2, 5))], (2, 5), "ExpOptions")
        yield done(f"{kind} of floats", g, g.result(kind, [positive], (2, 5)))
    for kind, scale, zero in (
        ("LOGISTIC", 1 / 256, -128),
        ("TANH", 1 / 128, 0),
        ("RELU", 0.04, -128),
        ("RELU6", 6 / 255, -128),
        ("LEAKY_RELU", 0.05, -20),
        ("SOFTMAX", 1 / 256, -128),
        ("ELU", 0.05, -90),
        ("HARD_SWISH", 0.05, -60),
    ):
        g = Graph()
        options = {
            "LEAKY_RELU": "LeakyReluOptions",
            "SOFTMAX": "SoftmaxOptions",
            "HARD_SWISH": "HardSwishOptions",
        }.get(kind, "")
        fields = {"SOFTMAX": {"Beta": 1.0}, "LEAKY_RELU": {"Alpha": 0.2}}.get(kind, {})
        x = g.input((4, 64), "int8", scale=[X_SCALE], zero=[-7])
        yield done(
            f"int8 {kind}",
            g,
            g.result(
                kind,
                [x],
                (4, 64),
                options,
                1 if kind in ("ELU", "HARD_SWISH") else 2,
                "int8",
                (scale, zero),
                **fields,
            ),
        )
    for kind, scale in (("LOGISTIC", 1 / 32768), ("TANH", 1 / 32768)):
        g = Graph()
        x = g.input((4, 64), "int16", scale=[0.00031], zero=[0])
        yield done(f"int16 {kind}", g, g.result(kind, [x], (4, 64), "", 3, "int16", (scale, 0)))
    g = Graph()
    yield done(
        "PRELU", g, g.result("PRELU", [g.input((1, 3, 2, 4)), g.constant(noise((1, 1, 4)))], (1, 3, 2, 4))
    )
    for source, made in (
        ("float32", "int8"),
        ("float32", "uint8"),
        ("int8", "float32"),
        ("int8", "uint8"),
        ("int8", "int8"),
        ("float32", "int16"),
        ("int16", "float32"),
    ):
        g = Graph()
        x = g.input(
            (4, 64),
            source,
            **({} if source == "float32" else {"scale": [X_SCALE], "zero": [0 if source == "int16" else -7]}),
        )
        kind = "DEQUANTIZE" if made == "float32" else "QUANTIZE"
        zero = {"int8": 3, "uint8": 121, "int16": 0}.get(made, 0)
        y = g.result(kind, [x], (4, 64), "", 2, made, None if made == "float32" else (0.03, zero))
        yield done(f"{kind} {source} {made}", g, y)


@cases
def movements() -> Iterator[Case]:
    """The same elements elsewhere, in floats and codes."""
    for dtype in ("float32", "int8"):
        more = {} if dtype == "float32" else {"scale": [X_SCALE], "zero": [-7]}
        same = None if dtype == "float32" else (X_SCALE, -7)

        def one(
            kind: str,
            shape: tuple[int, ...],
            made: tuple[int, ...],
            extra: list[Any],
            options: str,
            dtype: str = dtype,
            more: Any = more,
            same: Any = same,
            **fields: Any,
        ) -> Case:
            g = Graph()
            x = g.input(shape, dtype, **more)
            inputs = [x, *(g.constant(value) for value in extra)]
            return done(
                f"{dtype} {kind} {fields}",
                g,
                g.result(
                    kind,
                    inputs,
                    made,
                    options,
                    2 if dtype == "int8" and kind not in ("RESHAPE", "EXPAND_DIMS", "SQUEEZE") else 1,
                    dtype,
                    same,
                    **fields,
                ),
            )

        def i32(*numbers: int) -> Array:
            return np.array(numbers, np.int32)

        yield one("RESHAPE", (2, 3, 4), (6, 4), [i32(6, -1)], "ReshapeOptions")
        yield one("RESHAPE", (2, 3, 4), (6, 4), [], "ReshapeOptions", NewShape=[6, 4])
        yield one("TRANSPOSE", (2, 3, 4), (4, 2, 3), [i32(2, 0, 1)], "TransposeOptions")
        yield one("EXPAND_DIMS", (2, 3), (2, 1, 3), [np.array(1, np.int32)], "ExpandDimsOptions")
        yield one("SQUEEZE", (2, 1, 3), (2, 3), [], "SqueezeOptions", SqueezeDims=[1])
        yield one("PAD", (2, 3), (3, 6), [np.array([[1, 0], [1, 2]], np.int32)], "PadOptions")
        yield one(
            "MIRROR_PAD", (2, 5), (2, 8), [np.array([[0, 0], [1, 2]], np.int32)], "MirrorPadOptions", Mode=0
        )
        yield one(
            "STRIDED_SLICE",
            (4, 5, 6),
            (2, 2, 6),
            [i32(1, 0, 0), i32(3, 4, 6), i32(1, 2, 1)],
            "StridedSliceOptions",
            EndMask=4,
        )
        yield one(
            "STRIDED_SLICE",
            (4, 5, 6),
            (4, 6),
            [i32(0, -1, 0), i32(0, 0, 0), i32(1, 1, 1)],
            "StridedSliceOptions",
            BeginMask=5,
            EndMask=5,
            ShrinkAxisMask=2,
        )
        yield one("SLICE", (4, 5), (2, 4), [i32(1, 1), i32(2, -1)], "SliceOptions")
        yield (
            one("TILE", (2, 3), (4, 3), [i32(2, 1)], "TileOptions")
            if dtype == "float32"
            else one("SLICE", (4, 5), (4, 5), [i32(0, 0), i32(-1, -1)], "SliceOptions")
        )
        yield one("GATHER", (4, 5), (2, 5), [i32(2, 0)], "GatherOptions", Axis=0)
        yield (
            one("REVERSE_V2", (4, 5), (4, 5), [i32(1)], "ReverseV2Options")
            if dtype == "float32"
            else one("GATHER", (4, 5), (4, 2), [i32(2, 0)], "GatherOptions", Axis=1)
        )
        for kind, options, count in (
            ("SPLIT", "SplitOptions", 2),
            ("SPLIT_V", "SplitVOptions", 2),
            ("UNPACK", "UnpackOptions", 4),
        ):
            g = Graph()
            x = g.input((4, 6), dtype, **more)
            shape = (6,) if kind == "UNPACK" else (4, 3)
            outputs = [g.tensor(shape, dtype, **more) for _ in range(count)]
            axis, sizes = g.constant(np.array(1, np.int32)), g.constant(i32(3, 3))
            inputs = {"SPLIT": [axis, x], "SPLIT_V": [x, sizes, axis], "UNPACK": [x]}[kind]
            fields = {"Num": 4, "Axis": 0} if kind == "UNPACK" else {"NumSplits": 2}
            g.node(kind, inputs, outputs, options, 2, **fields)
            yield done(f"{dtype} {kind}", g, *outputs)
        for kind, options, made in (
            ("CONCATENATION", "ConcatenationOptions", (2, 6)),
            ("PACK", "PackOptions", (2, 2, 3)),
        ):
            g = Graph()
            a, b = g.input((2, 3), dtype, name="a", **more), g.input((2, 3), dtype, name="b", **more)
            fields = {"ValuesCount": 2} if kind == "PACK" else {}
            yield done(
                f"{dtype} {kind}", g, g.result(kind, [a, b], made, options, 2, dtype, same, Axis=1, **fields)
            )


@cases
def blocks() -> Iterator[Case]:
    """Blocks of space as batches or channels, and frames repeated."""
    for dtype in ("float32", "int8"):
        more = {} if dtype == "float32" else {"scale": [X_SCALE], "zero": [-7]}
        same, version = (None, 1) if dtype == "float32" else ((X_SCALE, -7), 2)
        block = np.array([2, 3], np.int32)
        for kind, shape, made, amounts in (
            ("SPACE_TO_BATCH_ND", (1, 5, 4, 2), (6, 3, 2, 2), [[1, 0], [0, 2]]),
            ("BATCH_TO_SPACE_ND", (6, 3, 2, 2), (1, 5, 5, 2), [[1, 0], [0, 1]]),
        ):
            g = Graph()
            inputs = [
                g.input(shape, dtype, **more),
                g.constant(block),
                g.constant(np.array(amounts, np.int32)),
            ]
            yield done(f"{dtype} {kind}", g, g.result(kind, inputs, made, "", version, dtype, same))
        for kind, options, shape, made in (
            ("DEPTH_TO_SPACE", "DepthToSpaceOptions", (1, 3, 2, 8), (1, 6, 4, 2)),
            ("SPACE_TO_DEPTH", "SpaceToDepthOptions", (1, 6, 4, 2), (1, 3, 2, 8)),
        ):
            g = Graph()
            x = g.input(shape, dtype, **more)
            yield done(
                f"{dtype} {kind}", g, g.result(kind, [x], made, options, version, dtype, same, BlockSize=2)
            )
        g = Graph()
        inputs = [g.input((1, 3, 1, 2), dtype, **more), g.constant(np.array([6, 1], np.int32))]
        y = g.result(
            "RESIZE_NEAREST_NEIGHBOR",
            inputs,
            (1, 6, 1, 2),
            "ResizeNearestNeighborOptions",
            version,
            dtype,
            same,
        )
        yield done(f"{dtype} RESIZE_NEAREST_NEIGHBOR", g, y)


@cases
def reductions() -> Iterator[Case]:
    """Reductions and pools."""
    for kind in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        for keep in (True, False):
            g = Graph()
            x, axes = g.input((2, 3, 4)), g.constant(np.array([1], np.int32))
            yield done(
                f"{kind} {keep}",
                g,
                g.result(kind, [x, axes], (2, 1, 4) if keep else (2, 4), "ReducerOptions", KeepDims=keep),
            )
    for kind, scale in (("MEAN", 0.02), ("SUM", 0.3), ("REDUCE_MAX", X_SCALE)):
        g = Graph()
        x = g.input((1, 7, 3, 4), "int8", scale=[X_SCALE], zero=[-7])
        axes = g.constant(np.array([1, 2], np.int32))
        zero = -7 if kind == "REDUCE_MAX" else 5
        yield done(
            f"int8 {kind}", g, g.result(kind, [x, axes], (1, 4), "ReducerOptions", 2, "int8", (scale, zero))
        )
    for kind in ("MAX_POOL_2D", "AVERAGE_POOL_2D"):
        for padding, made in ((SAME, (1, 5, 3, 2)), (VALID, (1, 4, 2, 2))):
            fields = {"Padding": padding, "StrideH": 2, "StrideW": 1, "FilterHeight": 3, "FilterWidth": 2}
            g = Graph()
            yield done(
                f"{kind} {padding}",
                g,
                g.result(kind, [g.input((1, 9, 3, 2))], made, "Pool2DOptions", **fields),
            )
            g = Graph()
            x = g.input((1, 9, 3, 2), "int8", scale=[X_SCALE], zero=[-7])
            yield done(
                f"int8 {kind} {padding}",
                g,
                g.result(kind, [x], made, "Pool2DOptions", 2, "int8", (X_SCALE, -7), **fields),
            )
    for kind, options in (("ARG_MAX", "ArgMaxOptions"), ("ARG_MIN", "ArgMinOptions")):
        g = Graph()
        axis = g.constant(np.array(1, np.int32))
        number = {"ArgMaxOptions": "OutputType"}.get(options, "OutputType")
        yield done(
            kind, g, g.result(kind, [g.input((3, 5)), axis], (3,), options, dtype="int32", **{number: 2})
        )
    g = Graph()
    yield done(
        "CUMSUM",
        g,
        g.result("CUMSUM", [g.input((3, 5)), g.constant(np.array(1, np.int32))], (3, 5), "CumsumOptions"),
    )


@cases
def spectra() -> Iterator[Case]:
    """RFFT2D and what reads it."""
    for kind, options in (("COMPLEX_ABS", ""), ("REAL", ""), ("IMAG", "")):
        g = Graph()
        x, lengths = g.input((3, 1, 16)), g.constant(np.array([1, 16], np.int32))
        y = g.result("RFFT2D", [x, lengths], (3, 1, 9), "Rfft2dOptions", dtype="complex64")
        shape = g.constant(np.array([3, 9], np.int32))
        y = g.result("RESHAPE", [y, shape], (3, 9), "ReshapeOptions", dtype="complex64")
        yield done(f"RFFT2D {kind}", g, g.result(kind, [y], (3, 9), options))
