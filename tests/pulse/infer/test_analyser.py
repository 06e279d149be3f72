"""Contradictions, nodes that cannot be translated, and what stays out of the way."""

import re

import pytest
from onnx import helper

from pulse.errors import FactError, LoadError
from pulse.loading.onnx_files import read_onnx
from tests.pulse.cases.build import floats, node
from tests.pulse.infer.partial_models import facts, inferred_facts, proto

WAY_OUT = "; give other shapes with inputs=, or export the model again"


def test_a_contradiction_names_the_node_and_both_facts() -> None:
    model = proto(
        [node("Relu", "x", "h"), node("Conv", "h w")],
        {"x": "1,3,?,f32"},
        {"y": "...,f32"},
        {"w": floats("w", 8, 4, 3)},
    )
    message = (
        "y (Conv, node Conv_y): h: 1,3,?,f32 and ?,4,?,f32 contradict each other: axis 1: 3 and 4 differ"
        + WAY_OUT
    )
    with pytest.raises(LoadError, match=f"^{re.escape(message)}$"):
        read_onnx(model).analyse()


def test_the_line_of_the_program_is_reported() -> None:
    product = node("MatMul", "x w")
    product.doc_string = 'File "net.py", line 7, in forward'
    model = proto([product], {"x": "?,3,f32"}, {"y": "...,f32"}, {"w": floats("w", 4, 2)})
    with pytest.raises(LoadError, match=r"^y \(MatMul, node MatMul_y, net.py line 7\): .*3 and 4 differ"):
        read_onnx(model).analyse()


def test_types_that_contradict_each_other_are_refused() -> None:
    model = proto([node("Add", "x z")], {"x": "?,f32", "z": "?,i64"}, {"y": "...,?"})
    with pytest.raises(
        LoadError, match=r"y \(Add, node Add_y\): .* contradict each other: types f32 and i64"
    ):
        read_onnx(model).infer()


def test_known_inputs_are_refused_by_the_translator() -> None:
    model = proto([node("MatMul", "x w")], {"x": "2,3,f32"}, {"y": "...,f32"}, {"w": floats("w", 4, 2)})
    with pytest.raises(FactError, match=r"y \(MatMul\).*reads x: 2,3,f32; w: 4,2,f32"):
        read_onnx(model).analyse()


def test_nothing_is_inferred_from_unsupported_operators() -> None:
    fused = helper.make_node("Fused", ["x"], ["h"], domain="com.example")
    model = proto([fused, node("Relu", "h")], {"x": "?,3,f32"}, {"y": "2,5,f32"})
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    assert facts(read_onnx(model)) == {"x": "?,3,f32", "h": "2,5,f32", "y": "2,5,f32"}


def test_nothing_is_assumed_on_the_way() -> None:
    nodes = [node("Add", "x z", "h"), node("MatMul", "h w")]
    model = read_onnx(
        proto(nodes, {"x": "?,T,f32", "z": "?,S,f32"}, {"y": "...,f32"}, {"w": floats("w", 4, 2)})
    )
    before = model.scope.assumptions
    inferred = facts(model)
    assert (inferred["x"], inferred["z"], inferred["y"]) == ("?,T,f32", "?,S,f32", "?,2,f32")
    assert model.scope.assumptions == before


def test_lines_show_inferred_facts() -> None:
    model = proto([node("MatMul", "x w")], {"x": "...,f32"}, {"y": "2,3,f32"}, {"w": floats("w", 4, 3)})
    assert read_onnx(model).lines() == [
        "model partial",
        "input x 2,4,f32",
        "w = Constant -> 4,3,f32",
        "y = MatMul(x, w) -> 2,3,f32",
        "output y y",
    ]


def test_an_input_whose_type_nothing_determines_is_refused() -> None:
    model = proto([node("Shape", "x")], {"x": "2,T,?"}, {"y": "...,i64"})
    with pytest.raises(LoadError, match=r"input x \(2,T,\?\): the file states no type"):
        read_onnx(model).analyse()
    assert str(read_onnx(model, {"x": "2,T,f16"}).analyse().inputs["x"]) == "2,T,f16"


def test_a_wire_that_is_read_twice_gives_half_of_a_join() -> None:
    assert (
        inferred_facts([node("Concat", "x x", axis=0)], {"x": "?,3,f32"}, {"y": "8,3,f32"})["x"] == "4,3,f32"
    )
