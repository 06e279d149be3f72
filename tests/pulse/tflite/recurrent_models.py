"""Models with recurrent layers of TFLite: float and quantised LSTM and RNN, and an unrolled one."""

from typing import Any

import numpy as np

from tests.noise import normal_noise
from tests.pulse.tflite.builder import SubgraphBuilder, file_bytes
from tests.pulse.tflite.cases.case import X_SCALE, bias, weights
from tests.pulse.tflite.layered_models import FEATURES, HIDDEN, i32


def recurrent(
    kind: str, frames: int = 4, stored: str = "float32", clip: float = 0.0, asymmetric: bool = False
) -> bytes:
    """UNIDIRECTIONAL_SEQUENCE_LSTM or _RNN over [1, frames, features]; -1 leaves the frames open.

    stored  the type of the weights
    """
    graph = SubgraphBuilder()
    x = graph.input((1, frames, FEATURES))

    def weight(*shape: int) -> int:
        value = normal_noise(*shape, seed=len(graph.tensors)) * np.float32(0.4)
        if stored == "float32" or len(shape) == 1:
            return graph.constant(value)
        return graph.constant(
            np.clip(np.rint(value * 80), -127, 127).astype(stored), scale=[1 / 80], zero=[0]
        )

    h = [graph.tensor((1, HIDDEN), "float32", name, variable=True) for name in ("h", "c")]
    fields: dict[str, Any] = {"AsymmetricQuantizeInputs": asymmetric}
    if kind == "lstm":
        w, r, b = (
            [weight(*shape) for _ in range(4)] for shape in ((HIDDEN, FEATURES), (HIDDEN, HIDDEN), (HIDDEN,))
        )
        inputs = [x, *w, *r, -1, -1, -1, *b, -1, -1, *h, -1, -1, -1, -1]
        name, options = "UNIDIRECTIONAL_SEQUENCE_LSTM", "UnidirectionalSequenceLSTMOptions"
        fields["CellClip"] = clip
    else:
        inputs = [x, weight(HIDDEN, FEATURES), weight(HIDDEN, HIDDEN), weight(HIDDEN), h[0]]
        name, options = "UNIDIRECTIONAL_SEQUENCE_RNN", "SequenceRNNOptions"
    y = graph.result(
        name, inputs, (1, frames, HIDDEN), options, FusedActivationFunction=4, TimeMajor=False, **fields
    )
    graph.outputs = [y]
    return file_bytes(graph)


def recurrent_codes(frames: int = 4, clip: float = 0.0, cell_bits: int = 11) -> bytes:
    """An LSTM of int8 codes whose cell is int16 in steps of 2**-cell_bits."""
    graph, h_form, x_zero = SubgraphBuilder(), {"scale": [0.0061], "zero": [18]}, 15
    x = graph.input((1, frames, FEATURES), "int8", scale=[X_SCALE], zero=[x_zero])

    def weight(shape: tuple[int, ...]) -> int:
        return weights(graph, shape, None, 0, len(graph.tensors))

    w = [weight((HIDDEN, FEATURES)) for _ in range(4)]
    r = [weight((HIDDEN, HIDDEN)) for _ in range(4)]
    b = [bias(graph, x, matrix, HIDDEN) for matrix in w]
    h = graph.tensor((1, HIDDEN), "int8", "h", variable=True, **h_form)
    c = graph.tensor((1, HIDDEN), "int16", "c", variable=True, scale=[2.0**-cell_bits], zero=[0])
    inner = [graph.tensor((0,), "float32") for _ in range(4)] + [graph.tensor((0,), "int8", **h_form)]
    y = graph.result(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [x, *w, *r, -1, -1, -1, *b, -1, -1, h, c, -1, -1, -1, -1],
        (1, frames, HIDDEN),
        "UnidirectionalSequenceLSTMOptions",
        3,
        "int8",
        (0.0061, 18),
        FusedActivationFunction=4,
        CellClip=clip,
    )
    graph.operators[-1].inner = inner
    graph.outputs = [y]
    return file_bytes(graph)


def unfused_layer(
    frames: int = -1, first: int = 0, inclusive: bool = False, max_frames: int | None = None
) -> bytes:
    """A recurrent layer as Keras converts one: WHILE over frames that are gathered, and a list of results.

    first       the first frame; the results before it are 0
    inclusive   the limit is the last frame instead of the length
    max_frames  another limit; the results from there on are 0
    """
    cond, body = SubgraphBuilder("cond"), SubgraphBuilder("body")
    shapes = {
        "time": (),
        "list": (frames, 1, HIDDEN),
        "h": (1, HIDDEN),
        "limit": (),
        "x": (frames, 1, FEATURES),
    }
    whole = ("time", "limit")

    def ports(graph: SubgraphBuilder) -> dict[str, int]:
        return {k: graph.input(shape, "int32" if k in whole else "float32", k) for k, shape in shapes.items()}

    p = ports(cond)
    comparison = ("LESS_EQUAL", "LessEqualOptions") if inclusive else ("LESS", "LessOptions")
    limits = [p["limit"]] + ([] if max_frames is None else [cond.constant(np.int32(max_frames))])
    parts = [
        cond.result(comparison[0], [p["time"], limit], (), comparison[1], dtype="bool") for limit in limits
    ]
    both = len(parts) > 1
    cond.outputs = [
        cond.result("LOGICAL_AND", parts, (), "LogicalAndOptions", dtype="bool") if both else parts[0]
    ]
    p = ports(body)
    frame = body.result("GATHER", [p["x"], p["time"]], (1, FEATURES), "GatherOptions")
    parts = [
        body.result(
            "FULLY_CONNECTED",
            [x, body.constant(normal_noise(HIDDEN, size, seed=size)), -1],
            (1, HIDDEN),
            "FullyConnectedOptions",
        )
        for x, size in ((frame, FEATURES), (p["h"], HIDDEN))
    ]
    after = body.result("TANH", [body.result("ADD", parts, (1, HIDDEN), "AddOptions")], (1, HIDDEN))
    unit = body.constant(i32(1))
    more = body.result("ADD", [p["time"], body.constant(np.int32(1))], (), "AddOptions", dtype="int32")
    index, next_index = (
        body.result("RESHAPE", [position, unit], (1,), "ReshapeOptions", dtype="int32")
        for position in (p["time"], more)
    )
    to = body.result(
        "CONCATENATION",
        [index, body.constant(i32(-1, -1))],
        (3,),
        "ConcatenationOptions",
        dtype="int32",
        Axis=0,
    )
    since = body.result(
        "CONCATENATION",
        [next_index, body.constant(i32(0, 0))],
        (3,),
        "ConcatenationOptions",
        dtype="int32",
        Axis=0,
    )
    left = body.result("SLICE", [p["list"], body.constant(i32(0, 0, 0)), to], (-1, 1, HIDDEN), "SliceOptions")
    right = body.result(
        "SLICE", [p["list"], since, body.constant(i32(-1, -1, -1))], (-1, 1, HIDDEN), "SliceOptions"
    )
    row = body.result("EXPAND_DIMS", [after, body.constant(np.int32(0))], (1, 1, HIDDEN), "ExpandDimsOptions")
    joined = body.result(
        "CONCATENATION", [left, row, right], (frames, 1, HIDDEN), "ConcatenationOptions", Axis=0
    )
    body.outputs = [more, joined, after, p["limit"], p["x"]]
    main = SubgraphBuilder()
    x = main.input((1, frames, FEATURES))
    turned = main.result(
        "TRANSPOSE", [x, main.constant(i32(1, 0, 2))], (frames, 1, FEATURES), "TransposeOptions"
    )
    sizes = main.result("SHAPE", [turned], (3,), "ShapeOptions", dtype="int32", OutType=2)
    bounds = [main.constant(i32(bound)) for bound in (0, 1, 1)]
    length = main.result(
        "STRIDED_SLICE", [sizes, *bounds], (), "StridedSliceOptions", dtype="int32", ShrinkAxisMask=1
    )
    count = main.result("RESHAPE", [length, main.constant(i32(1))], (1,), "ReshapeOptions", dtype="int32")
    shape = main.result(
        "CONCATENATION",
        [count, main.constant(i32(1, HIDDEN))],
        (3,),
        "ConcatenationOptions",
        dtype="int32",
        Axis=0,
    )
    empty = main.result("FILL", [shape, main.constant(np.float32(0))], (frames, 1, HIDDEN))
    if inclusive:
        one = main.constant(np.int32(1))
        length = main.result("SUB", [length, one], (), "SubOptions", dtype="int32")
    inputs = [
        main.constant(np.int32(first)),
        empty,
        main.constant(np.zeros((1, HIDDEN), np.float32)),
        length,
        turned,
    ]
    outputs = [main.tensor(shapes[k], "int32" if k in whole else "float32") for k in shapes]
    main.node("WHILE", inputs, outputs, "WhileOptions", CondSubgraphIndex=1, BodySubgraphIndex=2)
    main.outputs = [
        main.result(
            "TRANSPOSE", [outputs[1], main.constant(i32(1, 0, 2))], (1, frames, HIDDEN), "TransposeOptions"
        )
    ]
    return file_bytes(main, cond, body)
