"""Recurrent layers in TensorFlow's forms: functions, single nodes, lists and arrays."""

import numpy as np

from pulse.facts import Array
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import BOOL, F32, I32, Call, GraphDefBuilder, Type

VARIANT, RESOURCE = Type("variant"), Type("resource")
W, U = normal_noise(4, 3), normal_noise(3, 3, seed=1)


def expected_states(x: Array) -> Array:
    """H = tanh(x w + h u), of [time, batch, features]."""
    h, frames = np.zeros((1, 3), np.float32), list[Array]()
    for frame in x:
        h = np.tanh(frame @ W + h @ U)
        frames.append(h)
    return np.stack(frames) if frames else np.zeros((0, 1, 3), np.float32)


def start(shape: tuple[int, ...] = (-1, 1, 4)) -> GraphDefBuilder:
    """The parts that all forms have: x [time, batch, features] and its length."""
    builder = GraphDefBuilder()
    builder.place("x", *shape)
    for name, value in {"none": 0, "one": [1], "zero": [0], "element": [1, 3], "step": 1}.items():
        builder.const(name, value, np.int32)
    builder.const("w", W)
    builder.const("u", U)
    builder.const("h", np.zeros((1, 3)))
    builder.node("shape", "Shape", "x", T=F32, out_type=I32)
    builder.node("time", "StridedSlice", "shape", "zero", "one", "one", T=I32, Index=I32, shrink_axis_mask=1)
    return builder


def functional(shape: tuple[int, ...] = (-1, 1, 4)) -> GraphDefBuilder:
    """A functional While over tensor lists."""
    builder = start(shape)
    builder.node("list", "TensorListFromTensor", "x", "element", element_dtype=F32, shape_type=I32)
    builder.node("made", "TensorListReserve", "element", "time", element_dtype=F32, shape_type=I32)
    arguments = [
        ("i", I32),
        ("n", I32),
        ("out", VARIANT),
        ("h", F32),
        ("list", VARIANT),
        ("w", F32),
        ("u", F32),
    ]
    builder.function("cond", arguments, [("less", "Less", ("i", "n"), {"T": I32})], {"go": "less:z:0"})
    builder.function(
        "body",
        arguments,
        [
            ("element", "Const", (), {"dtype": I32, "value": np.array([1, 4], np.int32)}),
            ("one", "Const", (), {"dtype": I32, "value": np.array(1, np.int32)}),
            ("frame", "TensorListGetItem", ("list", "i", "element:output:0"), {"element_dtype": F32}),
            ("xw", "MatMul", ("frame:item:0", "w"), {"T": F32}),
            ("hu", "MatMul", ("h", "u"), {"T": F32}),
            ("sum", "AddV2", ("xw:product:0", "hu:product:0"), {"T": F32}),
            ("new", "Tanh", ("sum:z:0",), {"T": F32}),
            ("write", "TensorListSetItem", ("out", "i", "new:y:0"), {"element_dtype": F32}),
            ("next", "AddV2", ("i", "one:output:0"), {"T": I32}),
        ],
        {
            "a": "next:z:0",
            "b": "n",
            "c": "write:output_handle:0",
            "d": "new:y:0",
            "e": "list",
            "f": "w",
            "g": "u",
        },
    )
    inputs = ("none", "time", "made", "h", "list", "w", "u")
    builder.node("while", "While", *inputs, cond=Call("cond"), body=Call("body"))
    builder.node("frames", "TensorListStack", "while:2", "element", element_dtype=F32)
    builder.node("y", "Identity", "frames", T=F32)
    builder.node("last", "Identity", "while:3", T=F32)
    return builder


def lowered_loop() -> GraphDefBuilder:
    """The same as single nodes, with arrays."""
    builder = start()
    frame = {"frame_name": "loop"}
    builder.node("x_array", "TensorArrayV3", "time", dtype=F32)
    builder.node("range", "Range", "none", "time", "step", Tidx=I32)
    builder.node("filled", "TensorArrayScatterV3", "x_array", "range", "x", "x_array:1", T=F32)
    builder.node("y_array", "TensorArrayV3", "time", dtype=F32)
    for name, first, type_ in (("i", "none", I32), ("h", "h", F32), ("out", "y_array:1", F32)):
        builder.node(f"loop/enter_{name}", "Enter", first, T=type_, is_constant=False, **frame)
        builder.node(f"loop/{name}", "Merge", f"loop/enter_{name}", f"loop/next_{name}", T=type_, N=2)
        builder.node(f"loop/switch_{name}", "Switch", f"loop/{name}", "loop/go", T=type_)
        builder.node(f"loop/own_{name}", "Identity", f"loop/switch_{name}:1", T=type_)
        builder.node(f"loop/exit_{name}", "Exit", f"loop/switch_{name}", T=type_)
    constants = {"time": I32, "x_array": RESOURCE, "y_array": RESOURCE, "filled": F32, "w": F32, "u": F32}
    for name, type_ in constants.items():
        builder.node(f"loop/{name}", "Enter", name, T=type_, is_constant=True, **frame)
    builder.node("loop/less", "Less", "loop/i", "loop/time", T=I32)
    builder.node("loop/go", "LoopCond", "loop/less")
    builder.node("loop/frame", "TensorArrayReadV3", "loop/x_array", "loop/own_i", "loop/filled", dtype=F32)
    builder.node("loop/xw", "MatMul", "loop/frame", "loop/w", T=F32)
    builder.node("loop/hu", "MatMul", "loop/own_h", "loop/u", T=F32)
    builder.node("loop/sum", "AddV2", "loop/xw", "loop/hu", T=F32)
    builder.node("loop/new", "Tanh", "loop/sum", T=F32)
    writing = ("loop/y_array", "loop/own_i", "loop/new", "loop/own_out")
    builder.node("loop/write", "TensorArrayWriteV3", *writing, T=F32)
    builder.node("loop/one", "Const", "^loop/own_i", dtype=I32, value=np.array(1, np.int32))
    builder.node("loop/more", "AddV2", "loop/own_i", "loop/one", T=I32)
    for name, source, type_ in (("i", "more", I32), ("h", "new", F32), ("out", "write", F32)):
        builder.node(f"loop/next_{name}", "NextIteration", f"loop/{source}", T=type_)
    builder.node("frames", "TensorArrayGatherV3", "y_array", "range", "loop/exit_out", dtype=F32)
    builder.node("y", "Identity", "frames", "^loop/exit_i", T=F32)
    return builder


def doubling_loop(limit: float) -> GraphDefBuilder:
    """Doubled until the sum is above a limit: how often depends on data."""
    builder = GraphDefBuilder()
    builder.place("x", 3)
    builder.const("limit", limit)
    arguments = [("x", F32), ("limit", F32)]
    zero = ("axes", "Const", (), {"dtype": I32, "value": np.array([0], np.int32)})
    total = ("sum", "Sum", ("x", "axes:output:0"), {"T": F32, "Tidx": I32})
    less = ("less", "Less", ("sum:output:0", "limit"), {"T": F32})
    builder.function("cond", arguments, [zero, total, less], {"go": "less:z:0"})
    builder.function(
        "body", arguments, [("more", "AddV2", ("x", "x"), {"T": F32})], {"a": "more:z:0", "b": "limit"}
    )
    builder.node("while", "StatelessWhile", "x", "limit", cond=Call("cond"), body=Call("body"))
    builder.node("y", "Identity", "while", T=F32)
    return builder


def counting_loop(first: str) -> GraphDefBuilder:
    """The sum of i, from 3 (``three``) or the last three frames (``late``) to the number of frames."""
    builder = start()
    builder.const("three", 3, np.int32)
    builder.node("late", "Sub", "time", "three", T=I32)
    builder.function(
        "body",
        [("i", I32), ("n", I32), ("h", F32)],
        [
            ("one", "Const", (), {"dtype": I32, "value": np.array(1, np.int32)}),
            ("number", "Cast", ("i",), {"SrcT": I32, "DstT": F32}),
            ("new", "AddV2", ("h", "number:y:0"), {"T": F32}),
            ("next", "AddV2", ("i", "one:output:0"), {"T": I32}),
        ],
        {"a": "next:z:0", "b": "n", "c": "new:z:0"},
    )
    less = ("less", "Less", ("i", "n"), {"T": I32})
    builder.function("cond", [("i", I32), ("n", I32), ("h", F32)], [less], {"go": "less:z:0"})
    builder.node("while", "While", first, "time", "h", cond=Call("cond"), body=Call("body"))
    builder.node("y", "Identity", "while:2", T=F32)
    return builder


def branches(else_op: str = "Square") -> GraphDefBuilder:
    """A choice as single nodes, and one as functions, of which the second applies ``else_op``."""
    builder = GraphDefBuilder()
    builder.place("x", -1, 2)
    builder.place("flag", dtype=BOOL)
    builder.node("switch", "Switch", "x", "flag", T=F32)
    builder.node("no", "Neg", "switch", T=F32)
    builder.node("yes", "Exp", "switch:1", T=F32)
    builder.node("either", "Merge", "no", "yes", T=F32, N=2)
    for name, op in (("then", "Abs"), ("else", else_op)):
        builder.function(name, [("a", F32)], [("b", op, ("a",), {"T": F32})], {"c": "b:y:0"})
    builder.node("if", "If", "flag", "either", then_branch=Call("then"), else_branch=Call("else"))
    builder.node("y", "Identity", "if", T=F32)
    return builder


def slicing_loop(last: bool, stride: int = 1) -> GraphDefBuilder:
    """A loop that takes ``x[::stride, i]``; its list has all sums, or the last one only."""
    builder = GraphDefBuilder()
    builder.place("x", 1, -1, 3)
    for name, value in {"none": 0, "one": [1], "two": [2], "single": 1, "element": [1, 3]}.items():
        builder.const(name, value, np.int32)
    builder.const("h", np.zeros((1, 3)))
    builder.node("shape", "Shape", "x", T=F32, out_type=I32)
    builder.node("time", "StridedSlice", "shape", "one", "two", "one", T=I32, Index=I32, shrink_axis_mask=1)
    count, place = ("single", "zero:output:0") if last else ("time", "i")
    builder.node("made", "TensorListReserve", "element", count, element_dtype=F32, shape_type=I32)
    arguments = [("i", I32), ("n", I32), ("out", VARIANT), ("h", F32), ("x", F32)]
    builder.function("cond", arguments, [("more", "Greater", ("n", "i"), {"T": I32})], {"go": "more:z:0"})
    pack = {"N": 2, "axis": 0, "T": I32}
    masks = {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2, "T": F32, "Index": I32}
    zero = ("zero", "Const", (), {"dtype": I32, "value": np.array(0, np.int32)})
    builder.function(
        "body",
        arguments,
        [
            zero,
            ("one", "Const", (), {"dtype": I32, "value": np.array(1, np.int32)}),
            ("ones", "Const", (), {"dtype": I32, "value": np.array([stride, 1], np.int32)}),
            ("next", "AddV2", ("i", "one:output:0"), {"T": I32}),
            ("begin", "Pack", ("zero:output:0", "i"), pack),
            ("end", "Pack", ("zero:output:0", "next:z:0"), pack),
            ("frame", "StridedSlice", ("x", "begin:output:0", "end:output:0", "ones:output:0"), masks),
            ("new", "AddV2", ("frame:output:0", "h"), {"T": F32}),
            ("write", "TensorListSetItem", ("out", place, "new:z:0"), {"element_dtype": F32}),
        ],
        {"a": "next:z:0", "b": "n", "c": "write:output_handle:0", "d": "new:z:0", "e": "x"},
    )
    builder.node("while", "While", "none", "time", "made", "h", "x", cond=Call("cond"), body=Call("body"))
    builder.node("frames", "TensorListStack", "while:2", "element", element_dtype=F32)
    builder.node("y", "Identity", "frames", T=F32)
    return builder


def indexed_loop(frames: str) -> GraphDefBuilder:
    """A loop over x [T, 3] whose steps take ``x[i] - x[i - 1]``, ``x[2 * i]``, the sum of a window, or misplace it."""
    builder = GraphDefBuilder()
    builder.place("x", -1, 3)
    constants = {"none": 0, "one": [1], "zero": [0], "element": -1, "single": 1, "pair": 2}
    for name, value in constants.items():
        builder.const(name, value, np.int32)
    builder.node("shape", "Shape", "x", T=F32, out_type=I32)
    builder.node("time", "StridedSlice", "shape", "zero", "one", "one", T=I32, Index=I32, shrink_axis_mask=1)
    builder.node("less", "Sub", "time", "single", T=I32)
    builder.node("inner", "Sub", "time", "pair", T=I32)
    builder.node("half", "FloorDiv", "time", "pair", T=I32)
    first, count, limit = {
        "previous": ("single", "less", "time"),
        "second": ("none", "half", "half"),
        "window": ("none", "inner", "inner"),
        "misplaced": ("none", "time", "time"),
    }[frames]
    builder.node("made", "TensorListReserve", "element", count, element_dtype=F32, shape_type=I32)
    arguments = [("i", I32), ("n", I32), ("out", VARIANT), ("x", F32)]
    builder.function("cond", arguments, [("less", "Less", ("i", "n"), {"T": I32})], {"go": "less:z:0"})

    def const(name: str, value: int | list[int]) -> tuple[str, str, tuple[()], dict[str, object]]:
        return name, "Const", (), {"dtype": I32, "value": np.array(value, np.int32)}

    def item(name: str, place: str) -> list[tuple[str, str, tuple[str, ...], dict[str, object]]]:
        """The nodes of ``x[place]``."""
        pack, masks = {"N": 1, "axis": 0, "T": I32}, {"shrink_axis_mask": 1, "T": F32, "Index": I32}
        bounds = (f"{name}_begin:output:0", f"{name}_end:output:0", "ones:output:0")
        return [
            (f"{name}_next", "AddV2", (place, "step:output:0"), {"T": I32}),
            (f"{name}_begin", "Pack", (place,), pack),
            (f"{name}_end", "Pack", (f"{name}_next:z:0",), pack),
            (name, "StridedSlice", ("x", *bounds), masks),
        ]

    pack = {"N": 1, "axis": 0, "T": I32}
    nodes = {
        "previous": [
            ("before", "Sub", ("i", "step:output:0"), {"T": I32}),
            *item("own", "i"),
            *item("other", "before:z:0"),
            ("y", "Sub", ("own:output:0", "other:output:0"), {"T": F32}),
        ],
        "second": [
            ("twice", "Mul", ("two:output:0", "i"), {"T": I32}),
            *item("own", "twice:z:0"),
            ("y", "Sub", ("own:output:0", "nothing:output:0"), {"T": F32}),
        ],
        "window": [
            ("last", "AddV2", ("i", "three:output:0"), {"T": I32}),
            ("begin", "Pack", ("i",), pack),
            ("end", "Pack", ("last:z:0",), pack),
            (
                "frames",
                "StridedSlice",
                ("x", "begin:output:0", "end:output:0", "ones:output:0"),
                {"T": F32, "Index": I32},
            ),
            ("y", "Sum", ("frames:output:0", "axis:output:0"), {"T": F32, "Tidx": I32}),
        ],
        "misplaced": [
            ("place", "FloorMod", ("step:output:0", "i"), {"T": I32}),
            *item("own", "i"),
            ("y", "Sub", ("own:output:0", "nothing:output:0"), {"T": F32}),
        ],
    }[frames]
    place = {"previous": "before:z:0", "misplaced": "place:z:0"}.get(frames, "i")
    result = "y:output:0" if frames == "window" else "y:z:0"
    builder.function(
        "body",
        arguments,
        [
            *(const("step", 1), const("two", 2), const("three", 3), const("ones", [1]), const("axis", [0])),
            ("nothing", "Const", (), {"dtype": F32, "value": np.array(0, np.float32)}),
            *nodes,
            ("write", "TensorListSetItem", ("out", place, result), {"element_dtype": F32}),
            ("next", "AddV2", ("i", "step:output:0"), {"T": I32}),
        ],
        {"a": "next:z:0", "b": "n", "c": "write:output_handle:0", "d": "x"},
    )
    builder.node("while", "While", first, limit, "made", "x", cond=Call("cond"), body=Call("body"))
    builder.node("frames", "TensorListStack", "while:2", "element", element_dtype=F32)
    builder.node("y", "Identity", "frames", T=F32)
    return builder


def mapped_indices(bound: int = 1) -> GraphDefBuilder:
    """The frames of x [T, 3] by all indices, bounded as tf.vectorized_map writes them."""
    builder = GraphDefBuilder()
    builder.place("x", -1, 3)
    constants = {"none": 0, "one": [1], "zero": [0], "axes": [0], "step": 1, "bound": bound, "axis": 0}
    for name, value in constants.items():
        builder.const(name, value, np.int32)
    builder.node("shape", "Shape", "x", T=F32, out_type=I32)
    builder.node("time", "StridedSlice", "shape", "zero", "one", "one", T=I32, Index=I32, shrink_axis_mask=1)
    builder.node("times", "Pack", "time", N=1, axis=0, T=I32)
    builder.node("longest", "Max", "times", "axes", T=I32, Tidx=I32)
    builder.node("indices", "Range", "none", "longest", "step", Tidx=I32)
    builder.node("several", "Greater", "time", "bound", T=I32)
    builder.node("bounded", "SelectV2", "several", "indices", "none", T=I32)
    builder.node("frames", "GatherV2", "x", "bounded", "axis", Tparams=F32, Tindices=I32, Taxis=I32)
    builder.node("y", "Tanh", "frames", T=F32)
    return builder
