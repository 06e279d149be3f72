"""Models of several layers: with open time, with variables, with loops."""

import numpy as np

from tests.noise import normal_noise
from tests.pulse.tflite.builder import SubgraphBuilder, file_bytes
from tests.pulse.tflite.cases.case import RELU, VALID, X_SCALE, Y_SCALE, bias, i32, weights

FEATURES, HIDDEN = 8, 6
WINDOW = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}


def stack(kind: str = "float32", padding: int = VALID, stride: int = 1) -> bytes:
    """Two convolutions and a dense layer over [1, T, 1, features], T open; of codes a table at the end."""
    coded = kind == "int8"
    more = {"scale": [X_SCALE], "zero": [-7]} if coded else {}
    graph = SubgraphBuilder()
    x = graph.input((1, -1, 1, FEATURES), kind, **more)
    y = x
    for layer, (channels, span) in enumerate(((HIDDEN, 3), (HIDDEN, 2))):
        inside = FEATURES if layer == 0 else HIDDEN
        shape = (channels, span, 1, inside)
        fields = {
            **WINDOW,
            "Padding": padding,
            "StrideH": stride if layer == 0 else 1,
            "FusedActivationFunction": RELU,
        }
        if coded:
            w = weights(graph, shape, channels, 0, layer)
            inputs = [y, w, bias(graph, y, w, channels)]
        else:
            inputs = [
                y,
                graph.constant(normal_noise(*shape, seed=layer)),
                graph.constant(normal_noise(channels, seed=layer)),
            ]
        quantized = (0.04, -9) if coded else None
        y = graph.result(
            "CONV_2D", inputs, (1, -1, 1, channels), "Conv2DOptions", 3, kind, quantized, **fields
        )
    matrix = (
        weights(graph, (4, HIDDEN), None, 0) if kind != "float32" else graph.constant(normal_noise(4, HIDDEN))
    )
    inputs = [y, matrix, bias(graph, y, matrix, 4) if coded else graph.constant(normal_noise(4))]
    y = graph.result(
        "FULLY_CONNECTED",
        inputs,
        (1, -1, 1, 4),
        "FullyConnectedOptions",
        4,
        kind,
        (0.05, 2) if coded else None,
        KeepNumDims=True,
    )
    if coded:
        y = graph.result("LOGISTIC", [y], (1, -1, 1, 4), "", 2, kind, (1 / 256, -128))
    graph.outputs = [y]
    return file_bytes(graph, signature={"Inputs": {"sound": x}, "Outputs": {"scores": y}})


def averages() -> bytes:
    """The mean and the sum of 14 features of codes over [1, T, 14], T open, of which many fall on a half."""
    graph = SubgraphBuilder()
    x = graph.input((1, -1, 14), "int8", scale=[X_SCALE], zero=[3])
    graph.outputs = [
        graph.result(
            op,
            [x, graph.constant(i32(2))],
            (1, -1, 1),
            "ReducerOptions",
            2,
            "int8",
            (scale, 4),
            KeepDims=True,
        )
        for op, scale in (("MEAN", 0.3), ("SUM", 0.5))
    ]
    return file_bytes(graph)


def biased_convolution(bits: int) -> bytes:
    """A convolution of int16 codes over [1, T, 1, 16], T open, with a bias of this many bits."""
    graph = SubgraphBuilder()
    x = graph.input((1, -1, 1, 16), "int16", scale=[X_SCALE / 200], zero=[0])
    w = weights(graph, (5, 3, 1, 16), 5, 0)
    fields = {**WINDOW, "Padding": VALID}
    inputs = [x, w, bias(graph, x, w, 5, f"int{bits}")]
    graph.outputs = [
        graph.result(
            "CONV_2D", inputs, (1, -1, 1, 5), "Conv2DOptions", 3, "int16", (Y_SCALE / 20, 0), **fields
        )
    ]
    return file_bytes(graph)


def convolution_with_variable(kind: str = "float32") -> bytes:
    """A convolution over a chunk of 2 frames after 3 frames that a variable keeps; CALL_ONCE gives the first ones."""
    coded = kind == "int8"
    more = {"scale": [X_SCALE], "zero": [-7]} if coded else {}
    same = (X_SCALE, -7) if coded else None
    begin = (np.arange(3 * FEATURES).reshape(1, 3, 1, FEATURES) - 9).astype(kind)
    first = SubgraphBuilder("first")
    handle = first.result("VAR_HANDLE", [], (), "VarHandleOptions", dtype="resource", SharedName="past")
    first.node("ASSIGN_VARIABLE", [handle, first.constant(begin, **more)], [])
    graph = SubgraphBuilder()
    x = graph.input((1, 2, 1, FEATURES), kind, **more)
    graph.node("CALL_ONCE", [], [], "CallOnceOptions", InitSubgraphIndex=1)
    handle = graph.result("VAR_HANDLE", [], (), "VarHandleOptions", dtype="resource", SharedName="past")
    past = graph.result("READ_VARIABLE", [handle], (1, 3, 1, FEATURES), dtype=kind, quantized=same)
    joined = graph.result(
        "CONCATENATION", [past, x], (1, 5, 1, FEATURES), "ConcatenationOptions", 2, kind, same, Axis=1
    )
    bounds = [graph.constant(i32(*bound)) for bound in ((0, -3, 0, 0), (0, 0, 0, 0), (1, 1, 1, 1))]
    newest = graph.result(
        "STRIDED_SLICE",
        [joined, *bounds],
        (1, 3, 1, FEATURES),
        "StridedSliceOptions",
        2,
        kind,
        same,
        BeginMask=13,
        EndMask=15,
    )
    graph.node("ASSIGN_VARIABLE", [handle, newest], [])
    shape, fields = (HIDDEN, 4, 1, FEATURES), {**WINDOW, "Padding": VALID}
    if coded:
        w = weights(graph, shape, HIDDEN, 0)
        inputs = [joined, w, bias(graph, joined, w, HIDDEN)]
    else:
        inputs = [joined, graph.constant(normal_noise(*shape)), graph.constant(normal_noise(HIDDEN))]
    y = graph.result(
        "CONV_2D", inputs, (1, 2, 1, HIDDEN), "Conv2DOptions", 3, kind, (0.07, 3) if coded else None, **fields
    )
    graph.outputs = [y]
    return file_bytes(graph, first, signature={"Inputs": {"chunk": x}, "Outputs": {"scores": y}})


def blocks(kind: str = "float32", image: bool = False) -> bytes:
    """A dilated convolution as Keras converts it: SPACE_TO_BATCH_ND, CONV_2D, BATCH_TO_SPACE_ND, over open time.

    image   over [1, T, 1, features] in place of [1, T, features]
    """
    coded, span, size = kind == "int8", 3, 2
    same = {"scale": [X_SCALE], "zero": [-7]} if coded else {}
    form, quantization_out = ((X_SCALE, -7), (0.06, 4)) if coded else (None, None)
    graph, middle = SubgraphBuilder(), [1] if image else []
    x = graph.input((1, -1, *middle, FEATURES), kind, **same)
    rank = 3 + image
    before = [[0, 0] for _ in range(rank)]
    before[1][0] = (span - 1) * size
    y = graph.result(
        "PAD", [x, graph.constant(before, "int32")], (1, -1, *middle, FEATURES), "PadOptions", 1, kind, form
    )
    length = graph.result("SHAPE", [y], (rank,), "ShapeOptions", dtype="int32", OutType=2)
    bounds = [graph.constant(i32(bound)) for bound in (1, 2, 1)]
    frames = graph.result("STRIDED_SLICE", [length, *bounds], (1,), "StridedSliceOptions", dtype="int32")
    rest = graph.result(
        "FLOOR_MOD", [frames, graph.constant(i32(size))], (1,), "FloorModOptions", dtype="int32"
    )
    more = [
        graph.constant(np.zeros((1, 1), np.int32)),
        graph.result("RESHAPE", [rest, graph.constant(i32(1, 1))], (1, 1), dtype="int32"),
    ]
    pads = graph.result("CONCATENATION", more, (1, 2), "ConcatenationOptions", dtype="int32", Axis=1)
    if image:
        none = graph.constant(np.zeros((1, 2), np.int32))
        pads = graph.result(
            "CONCATENATION", [pads, none], (2, 2), "ConcatenationOptions", dtype="int32", Axis=0
        )
    sizes = graph.constant(i32(size, 1) if image else i32(size))
    y = graph.result("SPACE_TO_BATCH_ND", [y, sizes, pads], (size, -1, *middle, FEATURES), "", 1, kind, form)
    if not image:
        y = graph.result(
            "EXPAND_DIMS",
            [y, graph.constant(np.int32(-3))],
            (size, 1, -1, FEATURES),
            "ExpandDimsOptions",
            1,
            kind,
            form,
        )
    shape = (HIDDEN, span, 1, FEATURES) if image else (HIDDEN, 1, span, FEATURES)
    if coded:
        w = weights(graph, shape, HIDDEN, 0)
        inputs = [y, w, bias(graph, y, w, HIDDEN)]
    else:
        inputs = [y, graph.constant(normal_noise(*shape)), graph.constant(normal_noise(HIDDEN))]
    made_shape = (size, -1, 1, HIDDEN) if image else (size, 1, -1, HIDDEN)
    y = graph.result(
        "CONV_2D", inputs, made_shape, "Conv2DOptions", 3, kind, quantization_out, **WINDOW, Padding=VALID
    )
    if not image:
        y = graph.result(
            "RESHAPE",
            [y, graph.constant(i32(size, -1, HIDDEN))],
            (size, -1, HIDDEN),
            "ReshapeOptions",
            1,
            kind,
            quantization_out,
        )
    graph.outputs = [
        graph.result(
            "BATCH_TO_SPACE_ND", [y, sizes, pads], (1, -1, *middle, HIDDEN), "", 1, kind, quantization_out
        )
    ]
    return file_bytes(graph)


def frames_of_samples() -> bytes:
    """Frames of 16 samples, every 8, as TensorFlow's STFT has them: gathered by a range; their spectra."""
    graph = SubgraphBuilder()
    x = graph.input((1, -1))
    sizes = graph.result("SHAPE", [x], (2,), "ShapeOptions", dtype="int32", OutType=2)
    bounds = [graph.constant(i32(bound)) for bound in (1, 2, 1)]
    length = graph.result(
        "STRIDED_SLICE", [sizes, *bounds], (), "StridedSliceOptions", dtype="int32", ShrinkAxisMask=1
    )

    def whole(kind: str, options: str, a: int, b: int) -> int:
        return graph.result(kind, [a, graph.constant(np.int32(b))], (), options, dtype="int32")

    def row(numbers: list[int]) -> int:
        return graph.result(
            "PACK", numbers, (len(numbers),), "PackOptions", dtype="int32", ValuesCount=len(numbers)
        )

    eight, unit = graph.constant(np.int32(8)), graph.constant(np.int32(1))
    hops = whole("FLOOR_DIV", "FloorDivOptions", length, 8)
    used = row([unit, whole("MUL", "MulOptions", hops, 8)])
    cut = graph.result("SLICE", [x, graph.constant(i32(0, 0)), used], (1, -1), "SliceOptions")
    parts = graph.result("RESHAPE", [cut, row([unit, hops, eight])], (1, -1, 8), "ReshapeOptions")
    frames = whole("MAXIMUM", "MaximumMinimumOptions", whole("SUB", "SubOptions", hops, 1), 0)
    numbers = graph.result(
        "RANGE", [graph.constant(np.int32(0)), frames, unit], (-1,), "RangeOptions", dtype="int32"
    )
    column = graph.result("RESHAPE", [numbers, row([frames, unit])], (-1, 1), "ReshapeOptions", dtype="int32")
    places = graph.result(
        "ADD", [column, graph.constant(np.array([[0, 1]], np.int32))], (-1, 2), "AddOptions", dtype="int32"
    )
    gathered = graph.result("GATHER", [parts, places], (1, -1, 2, 8), "GatherOptions", Axis=1)
    wide = graph.result(
        "RESHAPE",
        [gathered, row([unit, frames, unit, graph.constant(np.int32(16))])],
        (1, -1, 1, 16),
        "ReshapeOptions",
    )
    turned = graph.result(
        "RFFT2D", [wide, graph.constant(i32(1, 16))], (1, -1, 1, 9), "Rfft2dOptions", dtype="complex64"
    )
    graph.outputs = [graph.result("COMPLEX_ABS", [turned], (1, -1, 1, 9))]
    return file_bytes(graph)


def scaled_by_variable() -> bytes:
    """A variable that is read and never assigned, times a chunk."""
    first, graph = SubgraphBuilder("first"), SubgraphBuilder()
    handle = first.result("VAR_HANDLE", [], (), "VarHandleOptions", dtype="resource", SharedName="gain")
    first.node("ASSIGN_VARIABLE", [handle, first.constant(normal_noise(1, FEATURES))], [])
    x = graph.input((1, FEATURES))
    graph.node("CALL_ONCE", [], [], "CallOnceOptions", InitSubgraphIndex=1)
    handle = graph.result("VAR_HANDLE", [], (), "VarHandleOptions", dtype="resource", SharedName="gain")
    gain = graph.result("READ_VARIABLE", [handle], (1, FEATURES))
    graph.outputs = [graph.result("MUL", [x, gain], (1, FEATURES), "MulOptions")]
    return file_bytes(graph, first)


def counting_loop(limit: int | None = 5, layers: int = 1) -> bytes:
    """WHILE i < limit: h = tanh(h + x), in several layers; the limit is stored, or an input if ``limit`` is None."""
    cond, body = SubgraphBuilder("cond"), SubgraphBuilder("body")
    scalar = ((), "int32")
    ports = [
        cond.input(*scalar, name="i"),
        cond.input(*scalar, name="n"),
        *(cond.input((1, 4), name=k) for k in "hx"),
    ]
    cond.outputs = [cond.result("LESS", ports[:2], (), "LessOptions", dtype="bool")]
    i, n, h, x = (
        body.input(*scalar, name="i"),
        body.input(*scalar, name="n"),
        *(body.input((1, 4), name=k) for k in "hx"),
    )
    more = body.result("ADD", [i, body.constant(np.int32(1))], (), "AddOptions", dtype="int32")
    for _ in range(layers):
        h = body.result("TANH", [body.result("ADD", [h, x], (1, 4), "AddOptions")], (1, 4))
    body.outputs = [more, n, h, x]
    graph = SubgraphBuilder()
    x = graph.input((1, 4))
    limit_tensor = graph.input((), "int32", "limit") if limit is None else graph.constant(np.int32(limit))
    inputs = [graph.constant(np.int32(0)), limit_tensor, graph.constant(np.zeros((1, 4), np.float32)), x]
    outputs = [
        graph.tensor((), "int32"),
        graph.tensor((), "int32"),
        graph.tensor((1, 4)),
        graph.tensor((1, 4)),
    ]
    graph.node("WHILE", inputs, outputs, "WhileOptions", CondSubgraphIndex=1, BodySubgraphIndex=2)
    graph.outputs = [outputs[2]]
    return file_bytes(graph, cond, body)


def filter_bank(kind: str = "float32", rank: int = 2, asymmetric: bool = False) -> bytes:
    """SVDF of 8 features, 6 filters in units of ``rank``, a memory of 5 frames; a hybrid has stored codes."""
    filters, size, units = 6, 5, 6 // rank
    graph = SubgraphBuilder()
    if kind == "int8":
        x = graph.input((1, FEATURES), kind, scale=[X_SCALE], zero=[-7])
        features = graph.constant(
            np.clip(normal_noise(filters, FEATURES) * 50, -127, 127).astype(np.int8), scale=[0.01], zero=[0]
        )
        time = graph.constant((normal_noise(filters, size) * 3000).astype(np.int16), scale=[1e-4], zero=[0])
        memory = graph.tensor((1, filters * size), "int16", "memory", variable=True, scale=[2e-4], zero=[0])
        offset = graph.constant((normal_noise(units) * 1000).astype(np.int32), scale=[2e-8], zero=[0])
        y = graph.result(
            "SVDF",
            [x, features, time, offset, memory],
            (1, units),
            "SVDFOptions",
            3,
            kind,
            (0.004, -100),
            Rank=rank,
            FusedActivationFunction=RELU,
        )
    else:
        x = graph.input((1, FEATURES))
        stored = [
            graph.constant(normal_noise(*shape)) for shape in ((filters, FEATURES), (filters, size), (units,))
        ]
        if kind == "hybrid":
            for place, shape in enumerate(((filters, FEATURES), (filters, size))):
                codes = np.clip(np.rint(normal_noise(*shape) * 50), -127, 127).astype(np.int8)
                stored[place] = graph.constant(codes, scale=[0.02], zero=[0])
        memory = graph.tensor((1, filters * size), "float32", "memory", variable=True)
        y = graph.result(
            "SVDF",
            [x, *stored, memory],
            (1, units),
            "SVDFOptions",
            Rank=rank,
            FusedActivationFunction=RELU,
            AsymmetricQuantizeInputs=asymmetric,
        )
    graph.outputs = [y]
    return file_bytes(graph)
