"""Small integers with a scale, and their products."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node, rng

BYTES = (np.uint8, np.int8)


def integers(seed: object, kind: type, *shape: int) -> np.ndarray:
    bounds = np.iinfo(kind)
    return rng(seed).integers(bounds.min, bounds.max, shape, dtype=kind, endpoint=True)


def ties() -> np.ndarray:
    """Numbers in the middle between two steps of 0.25, and far beyond every range."""
    return np.concatenate([np.arange(-20, 20) * 0.125, [1e9, -1e9]]).astype(np.float32).reshape(2, 21)


def quantize() -> Iterator[Case]:
    """One scale, one for each entry of an axis, blocks; with and without zero points."""
    for kind in (np.uint8, np.int8, np.uint16, np.int16):
        opsets = (21,) if np.dtype(kind).itemsize == 2 else (10, 13, 21)
        constants = {"s": np.float32(0.25), "z": kind(3)}
        operator = node("QuantizeLinear", "x s z")
        yield from cases(
            f"QuantizeLinear_{kind.__name__}", [operator], {"x": ties()}, constants, opsets, {"x": 1}
        )
    operator = node("QuantizeLinear", "x s")
    yield from cases(
        "QuantizeLinear_plain", [operator], {"x": ties()}, {"s": np.float32(0.5)}, (10, 13), {"x": 1}
    )
    x = floats("x", 2, 3, 5) * 50
    rows = {"s": np.array([0.1, 0.3, 2], np.float32), "z": np.array([1, -2, 0], np.int8)}
    operator = node("QuantizeLinear", "x s z", axis=1)
    yield from cases("QuantizeLinear_axis", [operator], {"x": x}, rows, (13, 21), {"x": 2})
    blocks = {"s": np.abs(floats("s", 2, 2, 5)) + 0.1}
    operator = node("QuantizeLinear", "x s", axis=1, block_size=2)
    yield from cases("QuantizeLinear_blocks", [operator], {"x": x}, blocks, (21,))


def dequantize() -> Iterator[Case]:
    """Every type; scales as above; i32 without a zero point; a constant that folds."""
    for kind in (np.uint8, np.int8, np.uint16, np.int16, np.int32):
        x = integers(kind, kind, 2, 3, 5)
        opsets = (21,) if np.dtype(kind).itemsize == 2 else (10, 13, 21)
        operator = node("DequantizeLinear", "x s")
        name = f"DequantizeLinear_{kind.__name__}"
        yield from cases(f"{name}_plain", [operator], {"x": x}, {"s": np.float32(0.3)}, opsets, {"x": 2})
        if kind is np.int32:
            continue
        operator = node("DequantizeLinear", "x s z", axis=1)
        rows = {"s": np.array([0.1, 0.3, 2], np.float32), "z": integers("z", kind, 3)}
        yield from cases(name, [operator], {"x": x}, rows, [n for n in opsets if n > 10], {"x": 2})
    operator = node("DequantizeLinear", "x s", axis=2, block_size=2)
    blocks = {"s": np.abs(floats("s", 2, 3, 3)) + 0.1}
    yield from cases(
        "DequantizeLinear_blocks", [operator], {"x": integers("b", np.int8, 2, 3, 5)}, blocks, (21,)
    )
    pair = [node("DequantizeLinear", "w s z", "weights"), node("Sub", "x weights")]
    stored = {"w": integers("w", np.int8, 4), "s": np.float32(0.1), "z": np.int8(2)}
    yield from cases("DequantizeLinear_weights", pair, {"x": floats("x", 3, 4)}, stored, (13,), {"x": 0})
    both_ways = [node("QuantizeLinear", "x s z", "q"), node("DequantizeLinear", "q s z")]
    steps = {"s": np.float32(0.05), "z": np.uint8(128)}
    yield from cases("QuantizeLinear_and_back", both_ways, {"x": floats("x", 3, 4)}, steps, (13,), {"x": 0})


def quantisers_of_onnxruntime() -> Iterator[Case]:
    """Onnxruntime's own operators, which its quantiser writes for 16 bits: one scale, and one per entry."""
    x = floats("x", 2, 3, 5) * 50
    for kind in (np.uint8, np.int8, np.uint16, np.int16):
        one = {"s": np.float32(0.25), "z": kind(3)}
        rows = {"s": np.array([0.1, 0.3, 2], np.float32), "z": integers("z", kind, 3)}
        for name, constants, axis in (("one", one, {}), ("rows", rows, {"axis": 1}), ("rows_of_1", rows, {})):
            quantised = node("QuantizeLinear", "x s z", "q", domain="com.microsoft", **axis)
            restored = node("DequantizeLinear", "q s z", "y", domain="com.microsoft", **axis)
            title = f"com.microsoft::QuantizeLinear_{name}_{kind.__name__}"
            yield from cases(title, [quantised, restored], {"x": x}, constants, (17,), {"x": 2}, "q y")
        operator = node("DequantizeLinear", "x s", domain="com.microsoft")
        codes = {"x": integers("x", kind, 2, 3, 5)}
        title = f"com.microsoft::DequantizeLinear_plain_{kind.__name__}"
        yield from cases(title, [operator], codes, {"s": np.float32(0.3)}, (17,), {"x": 2})


def dynamic() -> Iterator[Case]:
    """Numbers, scale and zero point; of one sign, and all zero."""
    for name, x in (
        ("", floats("x", 3, 4)),
        ("_positive", np.abs(floats("x", 3, 4))),
        ("_zero", np.zeros((2, 3))),
    ):
        operator = node("DynamicQuantizeLinear", "x", "y s z")
        feeds = {"x": x.astype(np.float32)}
        yield from cases(f"DynamicQuantizeLinear{name}", [operator], feeds, None, (11,), {"x": 0}, "y s z")


def products() -> Iterator[Case]:
    """Integer products without and with zero points, short and so long that sums are split."""
    for left, right in ((np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)):
        for count in (6, 700):
            a = {"a": integers("a", left, 2, 3, count)}
            b = {"b": integers("b", right, count, 4)}
            name = f"MatMulInteger_{left.__name__}_{right.__name__}_{count}"
            yield from cases(name, [node("MatMulInteger", "a b")], a, b, (10,), {"a": 1})
            zeros = {"p": left(7), "q": right(3)}
            yield from cases(
                f"{name}_zeros", [node("MatMulInteger", "a b p q")], a, b | zeros, (10,), {"a": 1}
            )
    columns = {"b": integers("b", np.uint8, 6, 4), "p": np.uint8(7), "q": integers("q", np.uint8, 4)}
    operator = node("MatMulInteger", "a b p q")
    yield from cases(
        "MatMulInteger_columns", [operator], {"a": integers("a", np.uint8, 3, 6)}, columns, (10,), {"a": 0}
    )
    scaled = {
        "b": integers("b", np.uint8, 6, 4),
        **{name: np.float32(value) for name, value in zip("ste", (0.02, 0.03, 0.1))},
        **{name: np.uint8(value) for name, value in zip("pqr", (100, 120, 128))},
    }
    operator = node("QLinearMatMul", "a s p b t q e r")
    yield from cases(
        "QLinearMatMul", [operator], {"a": integers("a", np.uint8, 3, 6)}, scaled, (10, 21), {"a": 0}
    )


def convolutions() -> Iterator[Case]:
    """Padding is the zero point; strides, groups; quantised again, with a bias."""
    x = {"x": integers("x", np.uint8, 1, 4, 12)}
    w = {"w": integers("w", np.uint8, 6, 2, 3), "p": np.uint8(100), "q": np.uint8(120)}
    for strides in (1, 2):
        operator = node("ConvInteger", "x w p q", group=2, strides=[strides], pads=[2, 0])
        yield from cases(f"ConvInteger_{strides}", [operator], x, w, (10,), {"x": 2})
    yield from cases("ConvInteger_plain", [node("ConvInteger", "x w", group=2)], x, w, (10,), {"x": 2})
    quantized = {
        "w": integers("w", np.int8, 6, 4, 3),
        "s": np.float32(0.02),
        "p": np.uint8(100),
        "t": np.abs(floats("t", 6)) * 0.1 + 0.01,
        "q": np.zeros(6, np.int8),
        "e": np.float32(0.5),
        "r": np.uint8(128),
        "b": integers("b", np.int16, 6).astype(np.int32),
    }
    operator = node("QLinearConv", "x s p w t q e r b", pads=[1, 1])
    yield from cases("QLinearConv", [operator], x, quantized, (10,), {"x": 2})
    large = {"b": np.full(6, (1 << 24) + 1, np.int32), "e": np.float32(500), "t": np.full(6, 0.1, np.float32)}
    yield from cases("QLinearConv_large_bias", [operator], x, quantized | large, (10,), {"x": 2})


def arithmetic() -> Iterator[Case]:
    """Sums and products of codes, of two streams, of a stream and a constant."""
    for kind in BYTES:
        x, z = integers("x", kind, 2, 5, 3), integers("z", kind, 5, 3)
        scales = {"s": np.float32(0.5), "t": np.float32(0.25), "e": np.float32(2)}
        zeros = {"p": kind(3), "q": kind(7), "r": kind(100)}
        for op in ("QLinearAdd", "QLinearMul"):
            name = f"com.microsoft::{op}_{kind.__name__}"
            operator = node(op, "x s p z t q e r", domain="com.microsoft")
            yield from cases(name, [operator], {"x": x, "z": z}, scales | zeros, (17,), {"x": 1, "z": 0})
            row = {"z": z[:1].copy()}
            yield from cases(f"{name}_row", [operator], {"x": x}, scales | zeros | row, (17,), {"x": 1})


def activations() -> Iterator[Case]:
    """Functions of codes; onnxruntime 1.32 aborts if one of their zero points is left out."""
    for kind in BYTES:
        x = {"x": integers("x", kind, 2, 5, 3)}
        scales = {"s": np.float32(0.04), "e": np.float32(1 / 128)}
        zeros = {"p": kind(3), "r": kind(10)}
        for op, attributes in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.3})):
            name = f"com.microsoft::{op}_{kind.__name__}"
            operator = node(op, "x s p e r", domain="com.microsoft", **attributes)
            yield from cases(name, [operator], x, scales | zeros, (17,), {"x": 1})
        softmax = {"s": np.float32(0.04), "p": kind(3), "e": np.float32(1 / 255), "r": kind(10)}
        for opset, axis, stream in ((13, 1, 0), (13, -1, 1), (12, 1, 0)):
            operator = node("QLinearSoftmax", "x s p e r", domain="com.microsoft", opset=opset, axis=axis)
            name = f"com.microsoft::QLinearSoftmax_{kind.__name__}_{opset}_{axis}"
            yield from cases(name, [operator], x, softmax, (17,), {"x": stream})


def matrices() -> Iterator[Case]:
    """Products of matrices that onnxruntime's optimiser joins with what follows."""
    b = {"b": integers("b", np.int8, 6, 4), "t": np.abs(floats("t", 4)) * 0.1, "q": integers("q", np.int8, 4)}
    codes = {"a": integers("a", np.uint8, 5, 6)}
    zeros = {"s": np.float32(0.02), "p": np.uint8(100)}
    for name, inputs, constants in (
        ("plain", "a b s t", b),
        ("bias", "a b s t p q c", b | {"c": floats("c", 4)}),
    ):
        operator = node("MatMulIntegerToFloat", inputs, domain="com.microsoft")
        name = f"com.microsoft::MatMulIntegerToFloat_{name}"
        yield from cases(name, [operator], codes, constants | zeros, (17,), {"a": 0})
    third = {"c": integers("c", np.int16, 4).astype(np.int32)}
    result = {"e": np.float32(0.7), "r": np.uint8(128)}
    across = {**b, "b": np.ascontiguousarray(b["b"].T)}
    for name, inputs, constants, attributes in (
        ("floats", "a s p b t q c", b, {}),
        ("codes", "a s p b t q _ e r", b, {"alpha": 0.5}),
        ("transposed", "a s p b t q c e r", across, {"transB": 1}),
    ):
        operator = node("QGemm", inputs, domain="com.microsoft", **attributes)
        name = f"com.microsoft::QGemm_{name}"
        yield from cases(name, [operator], codes, constants | zeros | third | result, (17,), {"a": 0})
    for name, inputs in (("plain", "x b t"), ("bias", "x b t q c")):
        operator = node("DynamicQuantizeMatMul", inputs, domain="com.microsoft")
        name = f"com.microsoft::DynamicQuantizeMatMul_{name}"
        x = {"x": floats("x", 2, 3, 6)}
        yield from cases(name, [operator], x, b | {"c": floats("c", 4)}, (17,), {"x": 1})


def layers() -> Iterator[Case]:
    """Layers with quantised weights; one scale, or one for each gate; with the first state or without."""
    operands = "x w r b _ h c _ s z t q"
    for kind in BYTES:
        for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
            shape = (count,) if kind is np.uint8 else (count, 12)
            constants = {
                "w": integers("w", kind, count, 4, 12),
                "r": integers("r", kind, count, 3, 12),
                "b": floats("b", count, 24),
                "s": np.abs(floats("s", *shape)) * 0.01,
                "t": np.abs(floats("t", *shape)) * 0.01,
                **{name: np.full(shape, 128 if kind is np.uint8 else 0, kind) for name in "zq"},
            }
            states = {"h": floats("h", count, 1, 3) * 0.3, "c": floats("c", count, 1, 3)}
            for frames, inputs in ((5, operands), (1, operands.replace("h c", "_ _").replace("b", "_"))):
                operator = node(
                    "DynamicQuantizeLSTM",
                    inputs,
                    "y hidden cell",
                    domain="com.microsoft",
                    direction=direction,
                    hidden_size=3,
                )
                feeds = {"x": floats("x", frames, 1, 4)} | (states if frames > 1 else {})
                name = f"com.microsoft::DynamicQuantizeLSTM_{kind.__name__}_{direction}_{frames}"
                yield from cases(name, [operator], feeds, constants, (17,), {"x": 0}, "y hidden cell")


def joins() -> Iterator[Case]:
    """Codes with their own scales and zero points, of one stream and of two."""
    for kind in BYTES:
        x, z = integers("x", kind, 2, 5, 3), integers("z", kind, 2, 5, 4)
        scales = {"s": np.float32(0.5), "t": np.float32(0.25), "e": np.float32(0.4)}
        zeros = {"p": kind(3), "q": kind(7), "r": kind(100)}
        name = f"com.microsoft::QLinearConcat_{kind.__name__}"
        twice = node("QLinearConcat", "e r x s p x t q", domain="com.microsoft", axis=-1)
        yield from cases(f"{name}_twice", [twice], {"x": x}, scales | zeros, (17,), {"x": 1})
        both = node("QLinearConcat", "e r x s p z t q", domain="com.microsoft", axis=-1)
        yield from cases(name, [both], {"x": x, "z": z}, scales | zeros, (17,), {"x": 1, "z": 1})


def pools() -> Iterator[Case]:
    """Means over windows of time and over all frames of a channel; no mean is halfway between two codes."""
    for kind in BYTES:
        x = {"x": integers("x", kind, 2, 4, 12)}
        scales = {"s": np.float32(0.04), "e": np.float32(0.03)}
        zeros = {"p": kind(3), "r": kind(10)}
        for name, axis, attributes in (
            ("AveragePool", 2, {"kernel_shape": [3], "strides": [2], "pads": [2, 0]}),
            ("AveragePool_padded", 2, {"kernel_shape": [4], "count_include_pad": 1, "pads": [1, 2]}),
            ("GlobalAveragePool", 0, {}),
        ):
            op = f"QLinear{name.partition('_')[0]}"
            operator = node(op, "x s p e r", domain="com.microsoft", **attributes)
            name = f"com.microsoft::QLinear{name}_{kind.__name__}"
            yield from cases(name, [operator], x, scales | zeros, (17,), {"x": axis})
        maximum = node("MaxPool", "x", kernel_shape=[3], strides=[2], pads=[2, 0])
        yield from cases(f"MaxPool_{kind.__name__}", [maximum], x, opsets=(12, 22), stream={"x": 2})


ALL = (
    quantize,
    dequantize,
    quantisers_of_onnxruntime,
    dynamic,
    products,
    convolutions,
    arithmetic,
    activations,
    matrices,
    layers,
    joins,
    pools,
)
