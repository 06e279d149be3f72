"""Operators of one or two tensors, element by element."""

from collections.abc import Iterator

import numpy as np

from tests.noise import normal_noise
from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import X_SCALE, TfliteCase, case_of, codes

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


def pairs() -> Iterator[TfliteCase]:
    """Functions of two tensors."""
    for kind, options in FLOATS:
        graph = SubgraphBuilder()
        a, b = graph.input((2, 3, 4), name="a"), graph.input((4,), name="b")
        yield case_of(f"{kind} of floats", graph, graph.result(kind, [a, b], (2, 3, 4), options))
    graph = SubgraphBuilder()
    a, b = graph.input((2, 3, 4), name="a"), graph.input((2, 3, 4), name="b")
    yield case_of("ATAN2 of floats", graph, graph.result("ATAN2", [a, b], (2, 3, 4), "ATan2Options"))
    for kind, options in FLOATS[:3]:
        for dtype, zero in (("int8", 3), ("uint8", 120)):
            graph = SubgraphBuilder()
            a = graph.input((2, 3, 4), dtype, name="a", scale=[X_SCALE], zero=[zero])
            b = graph.input((2, 3, 4), dtype, name="b", scale=[0.031], zero=[zero + 4])
            y = graph.result(kind, [a, b], (2, 3, 4), options, 2, dtype, (0.11, zero - 5))
            yield case_of(f"{dtype} {kind}", graph, y)
    for kind, options in FLOATS[:3]:
        graph = SubgraphBuilder()
        a = graph.input((2, 30, 4), "int16", name="a", scale=[0.00031], zero=[0])
        b = graph.input((2, 30, 4), "int16", name="b", scale=[0.00012], zero=[0])
        fields = {} if kind == "MUL" else {"PotScaleInt16": False}
        scale = 0.00004 if kind == "MUL" else 0.00047
        y = graph.result(kind, [a, b], (2, 30, 4), options, 2, "int16", (scale, 0), **fields)
        yield case_of(f"int16 {kind}", graph, y)
    for kind in ("MAXIMUM", "MINIMUM"):
        graph = SubgraphBuilder()
        a = graph.input((2, 3, 4), "int8", name="a", scale=[X_SCALE], zero=[3])
        b = graph.input((2, 3, 4), "int8", name="b", scale=[X_SCALE], zero=[3])
        yield case_of(
            f"int8 {kind}",
            graph,
            graph.result(kind, [a, b], (2, 3, 4), "MaximumMinimumOptions", 2, "int8", (X_SCALE, 3)),
        )
    for kind in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"):
        graph = SubgraphBuilder()
        a, b = graph.input((2, 3), "int32", name="a"), graph.input((2, 3), "int32", name="b")
        options = "".join(part.capitalize() for part in kind.split("_")) + "Options"
        yield case_of(kind, graph, graph.result(kind, [a, b], (2, 3), options, dtype="bool"))
    graph = SubgraphBuilder()
    c, a, b = (
        graph.input((2, 3), "bool", name="c"),
        graph.input((2, 3), name="a"),
        graph.input((2, 3), name="b"),
    )
    yield case_of("SELECT_V2", graph, graph.result("SELECT_V2", [c, a, b], (2, 3), "SelectV2Options"))
    graph = SubgraphBuilder()
    c, a, b = (
        graph.input((3,), "bool", name="c"),
        graph.input((3, 3), name="a"),
        graph.input((3, 3), name="b"),
    )
    yield case_of("SELECT of rows", graph, graph.result("SELECT", [c, a, b], (3, 3), "SelectOptions"))
    graph = SubgraphBuilder()
    a, b = graph.input((2, 3), "int32", name="a"), graph.input((2, 3), "int32", name="b")
    y = graph.result("ADD", [a, b], (2, 3), "AddOptions", dtype="int32")
    yield case_of("int32 ADD and CAST", graph, graph.result("CAST", [y], (2, 3), "CastOptions"))


def singles() -> Iterator[TfliteCase]:
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
        graph = SubgraphBuilder()
        fields = {"SOFTMAX": {"Beta": 1.5}, "LEAKY_RELU": {"Alpha": 0.2}}.get(kind, {})
        yield case_of(
            f"{kind} of floats", graph, graph.result(kind, [graph.input((2, 5))], (2, 5), options, **fields)
        )
    for kind in ("SQRT", "RSQRT", "LOG"):
        graph = SubgraphBuilder()
        positive = graph.result("EXP", [graph.input((2, 5))], (2, 5), "ExpOptions")
        yield case_of(f"{kind} of floats", graph, graph.result(kind, [positive], (2, 5)))
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
        graph = SubgraphBuilder()
        options = {
            "LEAKY_RELU": "LeakyReluOptions",
            "SOFTMAX": "SoftmaxOptions",
            "HARD_SWISH": "HardSwishOptions",
        }.get(kind, "")
        fields = {"SOFTMAX": {"Beta": 1.0}, "LEAKY_RELU": {"Alpha": 0.2}}.get(kind, {})
        x = graph.input((4, 64), "int8", scale=[X_SCALE], zero=[-7])
        yield case_of(
            f"int8 {kind}",
            graph,
            graph.result(
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
    for size in (5, 64):
        graph = SubgraphBuilder()
        x = graph.input((4, size), "int16", scale=[0.00031], zero=[0])
        y = graph.result("SOFTMAX", [x], (4, size), "SoftmaxOptions", 3, "int16", (1 / 32768, 0), Beta=1.0)
        yield case_of(f"int16 SOFTMAX of {size}", graph, y)
    for kind in ("LOGISTIC", "TANH"):
        for scale in (0.00031, 2.0**-11, 2.0**-12):
            graph = SubgraphBuilder()
            x = graph.input((4, 64), "int16", scale=[scale], zero=[0])
            yield case_of(
                f"int16 {kind} {scale:g}",
                graph,
                graph.result(kind, [x], (4, 64), "", 3, "int16", (1 / 32768, 0)),
            )
    graph = SubgraphBuilder()
    yield case_of(
        "PRELU",
        graph,
        graph.result(
            "PRELU", [graph.input((1, 3, 2, 4)), graph.constant(normal_noise(1, 1, 4))], (1, 3, 2, 4)
        ),
    )
    for source, dtype_out in (
        ("float32", "int8"),
        ("float32", "uint8"),
        ("int8", "float32"),
        ("int8", "uint8"),
        ("int8", "int8"),
        ("float32", "int16"),
        ("int16", "float32"),
    ):
        graph = SubgraphBuilder()
        x = graph.input(
            (4, 64),
            source,
            **({} if source == "float32" else {"scale": [X_SCALE], "zero": [0 if source == "int16" else -7]}),
        )
        kind = "DEQUANTIZE" if dtype_out == "float32" else "QUANTIZE"
        zero = {"int8": 3, "uint8": 121, "int16": 0}.get(dtype_out, 0)
        y = graph.result(
            kind, [x], (4, 64), "", 2, dtype_out, None if dtype_out == "float32" else (0.03, zero)
        )
        yield case_of(f"{kind} {source} {dtype_out}", graph, y)


EVERY = (1, 256)
"""The shape of an input that is long enough to hold most codes."""


def _extreme(graph: SubgraphBuilder, kind: str, x: int, code: int) -> int:
    """Codes that are not below, or not above, one of them."""
    spec = graph.tensors[x]
    bound = graph.constant(np.array([code], spec.kind), scale=spec.scale, zero=spec.zero)
    form = float(spec.scale[0]), int(spec.zero[0])
    return graph.result(kind, [x, bound], spec.shape, "MaximumMinimumOptions", 2, spec.kind, form)


def quotients() -> Iterator[TfliteCase]:
    """DIV of codes, whose divisors are so large that no quotient is below a thousandth of a step."""
    for kind, activation, (ours, other, scale_out) in (
        ("int8", 0, (0.05, 0.031, 0.02)),
        ("int8", 1, (0.05, 0.031, 0.02)),
        ("int8", 3, (0.05, 0.031, 0.1)),
        ("int16", 0, (0.00031, 0.00012, 0.0004)),
        ("int16", 1, (0.00031, 0.00012, 0.0004)),
    ):
        graph, half, size = SubgraphBuilder(), (1, 2048), (1, 4096)
        x = _extreme(graph, "MAXIMUM", graph.input(size, kind, name="a", scale=[ours], zero=[0]), 60)
        y = graph.input(half, kind, name="b", scale=[other], zero=[0])
        parts = [_extreme(graph, "MAXIMUM", y, 1), _extreme(graph, "MINIMUM", y, -1)]
        y = graph.result("CONCATENATION", parts, size, "ConcatenationOptions", 2, kind, (other, 0), Axis=1)
        fields = {"FusedActivationFunction": activation}
        y = graph.result("DIV", [x, y], size, "DivOptions", 2, kind, (scale_out, 0), **fields)
        yield case_of(f"{kind} DIV {activation}", graph, y, steps=1)


def roundings() -> Iterator[TfliteCase]:
    """Codes of many values in scales that no step of one is many steps of another, where kernels round apart."""
    for (ours, zero), (scale_out, offset) in zip(
        ((0.05, 3), (0.0312, -7), (0.0123, 0)), ((0.043, -20), (0.0117, 12), (0.07, 5))
    ):
        for kind, options, fields in (
            ("RELU", "", {}),
            ("RELU6", "", {}),
            ("ABS", "AbsOptions", {}),
            ("LEAKY_RELU", "LeakyReluOptions", {"Alpha": 0.2}),
            ("LEAKY_RELU", "LeakyReluOptions", {"Alpha": 0.0}),
            ("HARD_SWISH", "HardSwishOptions", {}),
            ("QUANTIZE", "QuantizeOptions", {}),
        ):
            graph = SubgraphBuilder()
            x = graph.input(EVERY, "int8", scale=[ours], zero=[zero])
            version = 1 if kind == "HARD_SWISH" else 2
            y = graph.result(kind, [x], EVERY, options, version, "int8", (scale_out, offset), **fields)
            yield case_of(
                f"int8 {kind} {ours:g} {scale_out:g} {' '.join(map(str, fields.values()))}", graph, y
            )
        for kind, options in (
            ("ADD", "AddOptions"),
            ("SUB", "SubOptions"),
            ("SQUARED_DIFFERENCE", "SquaredDifferenceOptions"),
        ):
            graph = SubgraphBuilder()
            a = graph.input((8, 256), "int8", name="a", scale=[ours], zero=[zero])
            b = graph.input((8, 256), "int8", name="b", scale=[0.021], zero=[9])
            y = graph.result(kind, [a, b], (8, 256), options, 2, "int8", (scale_out, offset))
            yield case_of(f"int8 {kind} {ours:g} {scale_out:g}", graph, y)
        graph = SubgraphBuilder()
        x = graph.input((1, 4, 32, 8), "int8", scale=[ours], zero=[zero])
        slopes = graph.constant(codes((1, 1, 8)), scale=[0.0047], zero=[-4])
        y = graph.result("PRELU", [x, slopes], (1, 4, 32, 8), "", 1, "int8", (scale_out, offset))
        yield case_of(f"int8 PRELU {ours:g}", graph, y)
    for kind, options in (
        ("EXP", "ExpOptions"),
        ("GELU", "GeluOptions"),
        ("LEAKY_RELU", "LeakyReluOptions"),
        ("LOG", ""),
        ("RSQRT", ""),
        ("SQRT", ""),
    ):
        for ours, scale_out in ((0.0001, 0.0007), (0.0002, 0.0003)):
            graph = SubgraphBuilder()
            fields = {"Alpha": 0.2} if kind == "LEAKY_RELU" else {}
            y = graph.input((1, 4096), "int16", scale=[ours], zero=[0])
            if "SQRT" in kind:
                y = _extreme(graph, "MAXIMUM", y, 1)
            y = graph.result(
                kind, [y], (1, 4096), options, 1 if kind == "SQRT" else 2, "int16", (scale_out, 0), **fields
            )
            yield case_of(f"int16 {kind} {ours:g}", graph, y)
    for kind, scale, zero in (("ELU", 0.04, -100), ("LOGISTIC", 0.04, -100), ("TANH", 0.01, -3)):
        graph = SubgraphBuilder()
        x = graph.input(EVERY, "int8", scale=[0.02], zero=[-20])
        version = 1 if kind == "ELU" else 2
        yield case_of(
            f"int8 {kind} of halves",
            graph,
            graph.result(kind, [x], EVERY, "", version, "int8", (scale, zero)),
        )
    graph = SubgraphBuilder()
    x = graph.input((1, 4, 64, 8), "int16", scale=[0.00031], zero=[0])
    slopes = graph.constant(codes((1, 1, 8)), scale=[0.0047], zero=[0])
    yield case_of(
        "int16 PRELU", graph, graph.result("PRELU", [x, slopes], (1, 4, 64, 8), "", 1, "int16", (0.001, 0))
    )
    for ours, scale_out, zero in ((0.05, 0.017, -128), (0.01, 0.02, -100)):
        for kind in ("SQRT", "RSQRT"):
            graph = SubgraphBuilder()
            x = graph.input(EVERY, "int8", scale=[ours], zero=[-128])
            y = _extreme(graph, "MAXIMUM", x, -127)
            yield case_of(
                f"int8 {kind} {ours:g}",
                graph,
                graph.result(kind, [y], EVERY, "", 2, "int8", (scale_out, zero)),
            )
    graph = SubgraphBuilder()
    x = graph.input(EVERY, "int8", scale=[0.0123], zero=[0])
    yield case_of(
        "int8 QUANTIZE uint8",
        graph,
        graph.result("QUANTIZE", [x], EVERY, "QuantizeOptions", 2, "uint8", (0.07, 133)),
    )
    for far in (2.0, 2000.0):
        graph = SubgraphBuilder()
        a = graph.input(EVERY, "int8", name="a", scale=[0.05], zero=[3])
        b = graph.input(EVERY, "int8", name="b", scale=[0.05 / far], zero=[-4])
        y = graph.result("ADD", [a, b], EVERY, "AddOptions", 2, "int8", (0.071, 5))
        yield case_of(f"int8 ADD of scales {far:g} apart", graph, y)


ALL = (
    pairs,
    singles,
    quotients,
    roundings,
)
