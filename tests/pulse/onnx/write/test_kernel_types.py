"""Files load in onnxruntime, also with operators in types that ONNX allows and onnxruntime has no kernel for."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, defs, helper
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

import pulse
from pulse.facts import DTYPES, Array
from pulse.onnx.tensors import element_type
from pulse.onnx.write.kernel_types import WIDER_TYPES
from pulse.onnx.write.model import OPSETS, to_onnx
from pulse.onnx.write.sequence import START, sequence_model
from pulse.runtimes.onnx_runtimes import open_runtime
from tests.agreement import Expected
from tests.backends import BACKENDS
from tests.failed_cases import in_one_test
from tests.onnxruntime_sessions import open_session
from tests.pulse.cases.build import model, node, rng
from tests.pulse.onnx.write.file_proof import assert_file_streams, assert_model_streams
from tests.pulse.program.static_models import fixed_specs, static_model

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
NO_WIDER_TYPE = {
    "PRelu": INTEGERS,
    "Relu": ("i16", "i64"),
    **dict.fromkeys(
        ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceProd", "ReduceSumSquare"), ("u32",)
    ),
}
"""Types without a kernel in which an operator is not written, or has no wider type with the same results."""
READ_ONLY = (
    *("Attention", "BitCast", "Clip", "Col2Im", "DepthToSpace", "Einsum", "EyeLike", "Gemm", "GridSample"),
    *("NonZero", "OneHot", "QuantizeLinear", "Resize", "SpaceToDepth", "SplitToSequence", "Trilu", "Unique"),
)
"""Operators without kernels for some types that are never written."""


def types_without_kernel(op_type: str, opset: int) -> set[str]:
    """The bool and integer types that ONNX allows for an operator, but for which onnxruntime has no kernel."""
    schema: Any = defs.get_schema(op_type, opset)
    kernels = [
        kernel.type_constraints
        for kernel in get_all_opkernel_def()
        if (kernel.op_name, kernel.domain) == (op_type, "")
        and kernel.version_range[0] <= opset <= kernel.version_range[1]
    ]
    lacking: set[str] = set()
    for constraint in schema.type_constraints if kernels else ():
        name = constraint.type_param_str
        supported = {text for kernel in kernels for text in kernel.get(name, constraint.allowed_type_strs)}
        lacking |= {
            dtype
            for dtype in ("bool", *INTEGERS)
            if (text := f"tensor({np.dtype(DTYPES[dtype]).name})") in constraint.allowed_type_strs
            and text not in supported
        }
    return lacking


def versions() -> Iterator[tuple[str, int]]:
    """Each operator of ONNX, and the opsets in which it changed."""
    latest = min(OPSETS[-1], defs.onnx_opset_version())
    for op_type in sorted({schema.name for schema in defs.get_all_schemas() if not schema.domain}):
        if op_type in READ_ONLY:
            continue
        schemas = [
            (defs.get_schema(op_type, opset), opset)
            for opset in range(OPSETS[0], latest + 1)
            if defs.has(op_type, opset)
        ]
        for (before, _), (schema, opset) in pairwise([(None, 0), *schemas]):
            is_new = before is None or before.since_version != schema.since_version
            if is_new and not schema.deprecated:
                yield op_type, opset


def test_each_type_without_a_kernel_has_a_wider_one() -> None:
    """Except u64, of which no type is wider."""
    for op_type, opset in versions():
        wider = {name for name in DTYPES if element_type(DTYPES[name]) in WIDER_TYPES.get(op_type, {})}
        left = types_without_kernel(op_type, opset) - wider - {"u64"} - set(NO_WIDER_TYPE.get(op_type, ()))
        assert not left, (op_type, opset)


def draw(seed: str, dtype: str, *shape: int) -> Array:
    """Random numbers over the whole range of a type."""
    if dtype in ("bool", "f16"):
        return rng(seed).integers(0, 2, shape).astype(DTYPES[dtype])
    bounds = np.iinfo(DTYPES[dtype])
    return rng(seed).integers(bounds.min, bounds.max, shape, DTYPES[dtype], endpoint=True)


def operator_model(op_type: str, dtype: str) -> tuple[ModelProto, dict[str, Array]]:
    """A model of one operator in a type, with inputs."""
    feeds = {"x": draw(op_type, dtype, 3, 4)}
    constants: dict[str, Array] = {}
    match op_type:
        case "Where":
            feeds |= {"c": draw("c", "bool", 3, 4), "z": draw("z", dtype, 3, 4)}
            nodes = [node("Where", "c x z")]
        case "Max" | "Min":
            feeds["z"] = draw("z", dtype, 3, 4)
            nodes = [node(op_type, "x z x")]
        case "Pow":
            feeds = {"x": draw("x", "i32", 3, 4) & 15, "z": draw("z", dtype, 3, 4) & 7}
            nodes = [node("Pow", "x z")]
        case "CumSum":
            constants["axis"] = np.array(1)
            nodes = [node("CumSum", "x axis")]
        case "Pad":
            constants |= {"pads": np.array([0, 1, 0, 2]), "fill": draw("fill", dtype)}
            nodes = [node("Pad", "x pads fill")]
        case "TopK":
            constants["k"] = np.array([2])
            nodes = [node("TopK", "x k", "y i", axis=1)]
        case "ReduceSum":
            constants["axes"] = np.array([1])
            nodes = [node("ReduceSum", "x axes")]
        case "ArgMax" | "ArgMin":
            nodes = [node(op_type, "x", axis=1)]
        case _:
            nodes = [node(op_type, "x", axes=[1])]
    return model(nodes, feeds, constants, outputs="y i" if op_type == "TopK" else "y"), feeds


NAMES = {element_type(dtype): name for name, dtype in DTYPES.items() if name != "bf16"}
PAIRS = [(op_type, NAMES[code]) for op_type, types in WIDER_TYPES.items() for code in types]


@in_one_test(("op_type", "dtype"), PAIRS)
def test_an_operator_without_a_kernel_runs_in_onnxruntime(op_type: str, dtype: str) -> None:
    source, feeds = operator_model(op_type, dtype)
    typed = pulse.load(source, inputs=fixed_specs(feeds)).model.analyse()
    opened = open_runtime(to_onnx(static_model(typed), 17))
    assert not opened.load_error
    Expected(typed, feeds).assert_runtime_agrees(opened.run(feeds), op_type)


@in_one_test("op_type", [op_type for op_type in WIDER_TYPES if op_type != "Pow"])
def test_an_operator_of_f16_runs_in_onnxruntime(op_type: str) -> None:
    """onnxruntime itself inserts casts to f32."""
    source, feeds = operator_model(op_type, "f16")
    typed = pulse.load(source, inputs=fixed_specs(feeds)).model.analyse()
    opened = open_runtime(to_onnx(static_model(typed), 17))
    assert not opened.load_error
    Expected(typed, feeds).assert_runtime_agrees(opened.run(feeds), op_type)


@in_one_test("dtype", INTEGERS)
def test_activations_of_integers_run_in_onnxruntime(dtype: str) -> None:
    feeds = {"x": draw("x", dtype, 3, 4), "slope": draw("slope", dtype, 3, 4)}
    nodes = [node("Relu", "x", "r"), node("PRelu", "r slope", "y")]
    typed = pulse.load(model(nodes, feeds), inputs=fixed_specs(feeds)).model.analyse()
    opened = open_runtime(to_onnx(static_model(typed), 17))
    assert not opened.load_error
    Expected(typed, feeds).assert_runtime_agrees(opened.run(feeds), dtype)


@pytest.mark.parametrize("dtype", ["bool", "i8", "i16", "u16", "u32", "u64"])
def test_delayed_frames_of_any_type_stream_in_onnxruntime(dtype: str) -> None:
    """Frames before the first one are filled in, and the last pulse is cut."""
    pads = {"pads": np.array([0, 3, 0, 2]), "fill": draw("fill", dtype)}
    source = model([node("Pad", "x pads fill")], {"x": draw("x", dtype, 2, 9)}, pads, stream={"x": 1})
    typed = pulse.load(source).analyse()
    backends = ["numpy"] if dtype in ("u32", "u64") else BACKENDS  # of which the kernels have no Where
    proto = assert_file_streams(typed, typed.declutter().pulsify(pulse=4), backends=backends)
    assert "Where" in {node.op_type for node in proto.graph.node}
    assert not open_runtime(proto).load_error


def test_bodies_are_written_in_wider_types_too() -> None:
    body = helper.make_graph(
        [node("Max", "s x", "n"), node("Identity", "n", "o")],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.INT16, [2]) for name in "sx"],
        [helper.make_tensor_value_info(name, TensorProto.INT16, [2]) for name in "no"],
    )
    scan = node("Scan", "first frames", "last y", body=body, num_scan_inputs=1)
    feeds = {"frames": draw("frames", "i16", 9, 2)}
    source = model([scan], feeds, {"first": np.zeros(2, np.int16)}, stream={"frames": 0})
    proto = assert_model_streams(source, 4)
    assert not open_runtime(proto).load_error


@pytest.mark.parametrize("dtype", ["bool", "i16", "u64"])
def test_the_first_states_of_a_sequence_have_a_kernel(dtype: str) -> None:
    pads = {"pads": np.array([0, 3, 0, 0])}
    source = model([node("Pad", "x pads")], {"x": draw("x", dtype, 2, 9)}, pads, stream={"x": 1})
    written = sequence_model(pulse.load(source).pulsify(4).to_onnx()).proto
    assert START in {value.name for value in open_session(written).get_inputs()}
