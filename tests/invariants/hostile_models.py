"""Hostile files by name, which random mutations would hardly produce."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.pulse.cases.build import node

F = TensorProto.FLOAT
HUGE = (1 << 40, (1 << 63) - 1, 1 << 31, -1, -(1 << 63))


def model(
    nodes: Sequence[NodeProto],
    constants: dict[str, Any] | None = None,
    shape: Sequence[int | str] = (1, 2, "T"),
    functions: Sequence[FunctionProto] = (),
    initializers: Sequence[TensorProto] = (),
    opset: int = 17,
) -> ModelProto:
    """Return a model whose graph reads x and writes y."""
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(
        list(nodes),
        "hostile",
        [helper.make_tensor_value_info("x", F, list(shape))],
        [helper.make_empty_tensor_value_info("y")],
        [*stored, *initializers],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=list(functions))


def giants() -> Iterator[tuple[str, ModelProto]]:
    """Small files that ask for large tensors."""
    for size in HUGE:
        for axes in (1, 3):
            sizes = np.array([size] * axes, np.int64)
            filled = node("ConstantOfShape", "s", "c")
            yield f"filled_{size}_{axes}", model([filled, node("Add", "x c")], {"s": sizes})
            yield f"expand_{size}_{axes}", model([node("Expand", "x s")], {"s": sizes})
        three = np.array([1, 1, size], np.int64)
        yield f"tile_{size}", model([node("Tile", "x s")], {"s": three})
        yield f"pad_{size}", model([node("Pad", "x s")], {"s": np.array([0, 0, size, 0, 0, size])})
        yield (
            f"pad_edge_{size}",
            model([node("Pad", "x s", mode="edge")], {"s": np.array([0, 0, size, 0, 0, 0])}),
        )
        yield f"resize_{size}", model([node("Resize", "x _ _ s", opset=1)], {"s": three})
        scales = np.array([1, 1, float(size)], np.float32)
        yield f"scale_{size}", model([node("Resize", "x _ s")], {"s": scales})
        yield f"reshape_{size}", model([node("Reshape", "x s")], {"s": three})
        ends = {"a": np.int64(0), "b": np.int64(size), "d": np.int64(1)}
        cast = [node("Range", "a b d", "r"), node("Cast", "r", "f", to=F)]
        yield f"range_{size}", model([*cast, node("Add", "x f")], ends)
        yield (
            f"range_f32_{size}",
            model(
                [node("Range", "a b d", "r"), node("Add", "x r")], {k: np.float32(v) for k, v in ends.items()}
            ),
        )
        yield f"hann_{size}", model([node("HannWindow", "b", "w"), node("Mul", "x w")], ends)
        stft = {"b": np.int64(size), "h": np.int64(1)}
        yield f"stft_{size}", model([node("STFT", "x h _ b")], stft, (1, "T", 1))
        yield f"dft_{size}", model([node("DFT", "x b", axis=1)], stft, (1, 5, "T", 1))
        yield f"topk_{size}", model([node("TopK", "x k", "y i")], {"k": np.array([size])})
        yield (
            f"one_hot_{size}",
            model(
                [node("Cast", "x", "i", to=TensorProto.INT64), node("OneHot", "i d v", axis=-1)],
                {"d": np.int64(size), "v": np.array([0.0, 1.0], np.float32)},
            ),
        )
        yield f"input_{size}", model([node("Trilu", "x")], {}, (1, size, "T"))
        yield f"input_fixed_{size}", model([node("Relu", "x")], {}, (1, size, size))
        w = np.ones((1, 2, 3), np.float32)
        for name in ("strides", "dilations", "group", "pads"):
            value: Any = size if name == "group" else [size] * (2 if name == "pads" else 1)
            for op in ("Conv", "ConvTranspose"):
                yield f"{op}_{name}_{size}", model([node(op, "x w", **{name: value})], {"w": w})
        yield f"pool_{size}", model([node("AveragePool", "x", kernel_shape=[size])])


def growing_shapes() -> Iterator[tuple[str, ModelProto]]:
    """Shape arithmetic that grows with every node."""
    begin = [node("Shape", "x", "s0"), node("Cast", "x", "y", to=F)]
    for op in ("Mul", "Add"):
        steps = [node(op, f"s{k} s{k}", f"s{k + 1}") for k in range(200)]
        yield f"doubled_{op}", model([*begin[:1], *steps, node("Expand", "x s200")])
    constants = {"one": np.array([1], np.int64), "two": np.array([2], np.int64)}
    for op in ("Min", "Max", "Div"):
        steps = []
        for k in range(400):
            steps.append(node("Add", f"s{k} one", f"a{k}"))
            steps.append(node(op, f"a{k} {'two' if op == 'Div' else 's0'}", f"s{k + 1}"))
        yield f"nested_{op}", model([*begin[:1], *steps, node("Expand", "x s400")], constants)
    unsqueezed = [node("Unsqueeze", f"{'x' if k == 0 else f'u{k}'} zero", f"u{k + 1}") for k in range(100)]
    yield "rank", model([*unsqueezed, node("Relu", "u100")], {"zero": np.array([0], np.int64)})
    long = [node("Relu", f"{'x' if k == 0 else f'r{k}'}", f"r{k + 1}") for k in range(3000)]
    yield "long_chain", model([*long, node("Relu", "r3000")])
    for depth in (50, 10_000):
        yield f"brackets_{depth}", model([node("Relu", "x")], {}, (1, 2, "(" * depth + "T" + ")" * depth))
        yield f"signs_{depth}", model([node("Relu", "x")], {}, (1, 2, "-" * depth + "T"))
        yield f"powers_{depth}", model([node("Relu", "x")], {}, (1, 2, "*".join(["(T+U+V)"] * depth)))
    yield "digits", model([node("Relu", "x")], {}, (1, 2, "9" * 10_000))


def functions() -> Iterator[tuple[str, ModelProto]]:
    """Functions that call themselves, each other, or too often."""

    def function(name: str, calls: Sequence[str], inputs: Sequence[str] = ("a",)) -> FunctionProto:
        inner = ["a", *(f"v{k}" for k in range(len(calls) - 1)), "b"]
        body = [
            helper.make_node(call, [before], [after], domain="own" if call.startswith("F") else "")
            for call, before, after in zip(calls, inner, inner[1:])
        ]
        return helper.make_function(
            "own",
            name,
            list(inputs),
            ["b"],
            body,
            [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)],
        )

    def call_of_functions(*protos: FunctionProto) -> ModelProto:
        return model([helper.make_node(protos[0].name, ["x"], ["y"], domain="own")], functions=protos)

    yield "function_itself", call_of_functions(function("F", ["F"]))
    yield (
        "function_circle",
        call_of_functions(function("F", ["F1"]), function("F1", ["F2"]), function("F2", ["F"])),
    )
    yield (
        "function_double",
        call_of_functions(*(function(f"F{k}", [f"F{k + 1}"] * 2 if k < 40 else ["Relu"]) for k in range(41))),
    )
    yield (
        "function_deep",
        call_of_functions(*(function(f"F{k}", [f"F{k + 1}"] if k < 900 else ["Relu"]) for k in range(901))),
    )
    yield "function_twice", call_of_functions(function("F", ["Relu"]), function("F", ["Exp"]))
    yield "function_inputs", call_of_functions(function("F", ["Relu"], ("a", "a", "c")))
    yield "function_missing", call_of_functions(function("F", ["F9"]))
    broken = call_of_functions(function("F", ["Relu"]))
    broken.functions[0].output[0] = "nothing"
    yield "function_output", broken


def unfolding_nodes() -> Iterator[tuple[str, ModelProto]]:
    """Few nodes that stand for many iterations, nodes or numbers."""
    single, many = np.ones(1, np.float32), np.array(10**6)
    constants = {"one": single, "many": many, "first": np.zeros(1, np.float32), "yes": np.array(True)}
    for inner, outer in ((10**6, 10**6), (1000, 1000), (100, 10**6)):
        iterations = {"inner": np.array(inner), "outer": np.array(outer)}
        deep = counting_loop(
            [node("Loop", "inner yes v", "w", body=counting_loop([node("Add", "v one", "w")]))]
        )
        looped = node("Loop", "outer yes first", "r", body=deep)
        yield f"loops_{outer}_{inner}", model([looped, node("Add", "x r")], constants | iterations)
    ends = counting_loop([node("Add", "v one", "w"), node("Less", "w far", "go")], "go")
    far = {"far": np.full(1, 1e9, np.float32)}
    yield (
        "loop_stops_late",
        model([node("Loop", "_ yes first", "r", body=ends), node("Add", "x r")], constants | far),
    )
    once = node("Loop", "many yes first", "l", body=ends)
    yield "loop_in_scan", model([once, node("Add", "x l")], constants | far)
    steps = [node("MatMul", f"a{k} b{k}", f"m{k}") for k in range(8)]
    steps += [
        node("MatMul", f"{'x' if k == 0 else f'p{k}'} m{k}", "y" if k == 7 else f"p{k + 1}") for k in range(8)
    ]
    sides = {f"{side}{k}": np.ones(shape, np.float32) for k in range(8) for side, shape in SIDES.items()}
    yield "eight_products", model(steps, sides, ("T", 8000))
    wide = [node("Expand", "one size", "wide"), *(node("Add", "wide one", f"w{k}") for k in range(40))]
    folded = [*wide, *(node("ReduceSum", f"w{k}", f"s{k}", keepdims=0) for k in range(40))]
    total = node("Sum", " ".join(["x", *(f"s{k}" for k in range(40))]))
    yield "forty_constants", model([*folded, total], constants | {"size": np.array([1 << 22])})
    spread = [node("Expand", "one size", "wide"), node("Conv", "wide taps", "c"), node("Add", "x c")]
    wide_taps = {"size": np.array([1, 1, 1 << 21]), "taps": np.ones((1, 1, 1 << 20), np.float32)}
    yield "long_convolution", model(spread, constants | wide_taps)


SIDES = {"a": (8000, 1), "b": (1, 8000)}


def counting_loop(inner: Sequence[NodeProto], condition: str = "c1") -> GraphProto:
    """The body of a loop over one number, from v to w."""
    ports = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("v", F, [1]),
    ]
    outs = [helper.make_empty_tensor_value_info(name) for name in (condition, "w")]
    return helper.make_graph([node("Identity", "c", "c1"), *inner], "iteration", ports, outs)


def nested_bodies() -> Iterator[tuple[str, ModelProto]]:
    """Bodies inside of bodies, as deep as a file can have them."""
    for op in ("Scan", "If", "Loop"):
        yield f"nested_{op}", nested_model(op, 30)


def nested_model(op: str, depth: int) -> ModelProto:
    body = helper.make_graph(
        [node("Relu", "s", "s1"), node("Relu", "f", "g")], "body", *_scan_ports("s", "f")
    )
    body_graph: GraphProto = body
    flat = helper.make_graph([node("Relu", "x", "z")], "flat", [], [helper.make_empty_tensor_value_info("z")])
    for level in range(depth):
        if op == "Scan":
            inner = [
                node("Unsqueeze", "f zero", "column"),
                node("Scan", "s column", "s1 rows", body=body_graph, num_scan_inputs=1),
                node("Squeeze", "rows zero", "g"),
            ]
            body_graph = helper.make_graph(inner, f"level{level}", *_scan_ports("s", "f"))
        elif op == "If":
            choice = node("If", "yes", "z", then_branch=body_graph if level else flat, else_branch=flat)
            body_graph = helper.make_graph([choice], f"level{level}", [], list(flat.output))
        else:
            ports = [
                helper.make_tensor_value_info("i", TensorProto.INT64, []),
                helper.make_tensor_value_info("c", TensorProto.BOOL, []),
                helper.make_tensor_value_info("v", F, [1, 2, "T"]),
            ]
            outs = [helper.make_empty_tensor_value_info(name) for name in ("c1", "v1")]
            step = (
                node("Relu", "v", "v1") if level == 0 else node("Loop", "many yes v", "v1", body=body_graph)
            )
            body_graph = helper.make_graph([node("Identity", "c", "c1"), step], f"level{level}", ports, outs)
    constants = {"zero": np.array([0], np.int64), "yes": np.array(True), "many": np.array(1000, np.int64)}
    if op == "Scan":
        constants["first"] = np.zeros(2, np.float32)
        return model(
            [node("Scan", "first x", "last y", body=body_graph, num_scan_inputs=1)], constants, ("T", 2)
        )
    if op == "If":
        return model([node("If", "yes", "y", then_branch=body_graph, else_branch=flat)], constants)
    return model([node("Loop", "many yes x", "y", body=body_graph)], constants)


def _scan_ports(*names: str) -> tuple[list[Any], list[Any]]:
    ports = [helper.make_tensor_value_info(name, F, [2]) for name in names]
    return ports, [helper.make_empty_tensor_value_info(name) for name in ("s1", "g")]


def wrong_names() -> Iterator[tuple[str, ModelProto]]:
    """Names that mean something elsewhere, twice, in circles, or nowhere."""
    for number, name in enumerate(("a\0b", "a\nb", "☃", "n" * 100_000, "\x1b[31m", "%s{}", "")):
        yield (
            f"name_{number}",
            model([node("Relu", "x", "m"), helper.make_node("Exp", ["m"], ["y"], name=name)]),
        )
        proto = model([helper.make_node("Relu", ["x"], [name]), helper.make_node("Exp", [name], ["y"])])
        yield f"wire_{number}", proto
        proto = model([node("Relu", "x")], {}, (1, 2, name or "T"))
        proto.graph.input[0].name = proto.graph.node[0].input[0] = name
        yield f"input_name_{number}", proto
    yield "twice", model([node("Relu", "x"), node("Exp", "x")])
    yield "circle", model([node("Add", "x z"), node("Relu", "y", "z")])
    yield "itself", model([node("Add", "x y")])
    yield "nowhere", model([node("Add", "x z")])
    same = model([node("Relu", "x")])
    same.graph.output.append(same.graph.output[0])
    yield "output_twice", same
    same = model([node("Relu", "x")])
    same.graph.input.append(same.graph.input[0])
    yield "input_twice", same
    yield (
        "initializer_twice",
        model([node("Relu", "x")], {}, initializers=[numpy_helper.from_array(np.ones(1), "w")] * 2),
    )


def wrong_data() -> Iterator[tuple[str, ModelProto]]:
    """Tensors whose shape, type and data do not fit."""
    for number, (dims, size) in enumerate(
        ((([1 << 40]), 4), ([-1], 4), ([2, 2], 3), ([0, 1 << 62], 0), ([1] * 100, 4), ([1 << 32, 1 << 32], 0))
    ):
        for kind in (
            F,
            TensorProto.INT64,
            TensorProto.STRING,
            TensorProto.FLOAT8E4M3FN,
            TensorProto.INT4,
            TensorProto.COMPLEX64,
            0,
            77,
        ):
            tensor = TensorProto(name="w", dims=dims, raw_data=b"\0" * size)
            tensor.data_type = kind
            yield f"tensor_{number}_{kind}", model([node("Add", "x w")], initializers=[tensor])
    for number, value in enumerate((float("nan"), float("inf"), -1e38)):
        yield (
            f"epsilon_{number}",
            model([node("LayerNormalization", "x w", epsilon=value)], {"w": np.ones(1, np.float32)}),
        )
        yield f"scale_{number}", model([node("Resize", "x _ s")], {"s": np.array([1, 1, value], np.float32)})
        yield (
            f"range_{number}",
            model(
                [node("Range", "a b a", "r"), node("Add", "x r")],
                {"a": np.float32(1), "b": np.float32(value)},
            ),
        )
        yield (
            f"mel_{number}",
            model(
                [node("MelWeightMatrix", "n n n v v", "w"), node("MatMul", "x w")],
                {"n": np.int64(9), "v": np.float32(value)},
            ),
        )


FAMILIES: tuple[Callable[[], Iterator[tuple[str, ModelProto]]], ...] = (
    giants,
    growing_shapes,
    functions,
    unfolding_nodes,
    nested_bodies,
    wrong_names,
    wrong_data,
)


def write_all(folder: Path) -> None:
    """Write all hostile models to ``folder``, and data in and around it that some of them point to."""
    folder.mkdir(parents=True)
    for family in FAMILIES:
        for name, proto in family():
            (folder / f"{name}.onnx").write_bytes(proto.SerializeToString())
    outside = folder.parent / "secret.bin"
    outside.write_bytes(np.ones(6, np.float32).tobytes())
    (folder / "link.bin").symlink_to(outside)
    (folder / "inside.bin").write_bytes(np.ones(6, np.float32).tobytes())
    (folder / "loop.bin").symlink_to("loop.bin")
    os.mkfifo(folder / "pipe.bin")
    locations = {
        "good": ("inside.bin", "0", "24"), "missing": ("no.bin", "0", "24"), "up": ("../secret.bin", "0", "24"),
        "absolute": (str(outside), "0", "24"), "link": ("link.bin", "0", "24"), "loop": ("loop.bin", "0", "24"),
        "pipe": ("pipe.bin", "0", "24"), "device": ("/dev/zero", "0", "24"), "folder": (".", "0", "24"),
        "nul": ("a\0b", "0", "24"), "long": ("n" * 5000, "0", "24"), "behind": ("inside.bin", "4", "24"),
        "far": ("inside.bin", str(1 << 62), "24"), "negative": ("inside.bin", "-4", "24"),
        "short": ("inside.bin", "0", "20"), "huge": ("inside.bin", "0", str(1 << 62)),
        "words": ("inside.bin", "zero", "²"),
    }  # fmt: skip
    for name, entries in locations.items():
        tensor = TensorProto(name="w", dims=[2, 3], data_type=F, data_location=TensorProto.EXTERNAL)
        for key, value in zip(("location", "offset", "length"), entries):
            tensor.external_data.add(key=key, value=value)
        (folder / f"data_{name}.onnx").write_bytes(
            model([node("MatMul", "x w")], {}, ("T", 2), initializers=[tensor]).SerializeToString()
        )
    os.mkfifo(folder / "a_pipe.onnx")
    (folder / "a_folder.onnx").mkdir()
    (folder / "a_device.onnx").symlink_to("/dev/zero")
    with (folder / "zeros.onnx").open("wb") as file:
        file.truncate(3 << 30)
    with (folder / "zeros_behind.onnx").open("wb") as file:
        file.write(model([node("Relu", "x")]).SerializeToString())
        file.truncate(3 << 30)
