"""A refusal names the place in the user's program the node comes from, as far as the file states it."""

import onnx
import pytest
from onnx import TensorProto, helper

import pulse


def model_with(**extra: str) -> onnx.ModelProto:
    node = helper.make_node("ReduceMean", ["x"], ["y"], name="/encoder/pool", axes=[2])
    node.doc_string = extra.get("doc_string", "")
    if "stack_trace" in extra:
        entry = node.metadata_props.add()
        entry.key, entry.value = "pkg.torch.onnx.stack_trace", extra["stack_trace"]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "T"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])


@pytest.mark.parametrize("key", ["doc_string", "stack_trace"])
def test_a_refusal_names_the_line(key: str) -> None:
    trace = 'File "train.py", line 3, in <module>\n  File "encoder.py", line 12, in forward\n    x.mean(-1)'
    typed = pulse.load(model_with(**{key: trace})).analyse().declutter()
    with pytest.raises(pulse.PulsifyError, match=r"node /encoder/pool, encoder.py line 12") as caught:
        typed.pulsify()
    assert caught.value.refusals[0].origin == "node /encoder/pool, encoder.py line 12"


def test_without_a_trace_the_node_is_named() -> None:
    with pytest.raises(pulse.PulsifyError, match="node /encoder/pool"):
        pulse.load(model_with()).analyse().pulsify()


def test_a_dim_that_must_be_a_number_names_the_node() -> None:
    q = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2, 8, "T"]) for name in "qkv"]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Attention", ["q", "k", "v"], ["y"])], "g", q, [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)])
    with pytest.raises(pulse.LoadError, match=r"y \(Attention\): .*T.*inputs="):
        pulse.load(proto).analyse()


@pytest.mark.parametrize("name", ["é", "テ", "min", "time axis", "time-axis", "T"])
def test_symbols_may_have_any_name(name: str) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, name])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert len(pulse.load(proto).analyse().symbols) == 1


def test_dims_named_by_expressions_become_expressions() -> None:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim])
        for name, dim in (("w", "2*T"), ("x", "T"), ("z", "T-1"), ("v", "time-axis"))
    ]
    nodes = [helper.make_node("Concat", ["w", "x", "z", "v"], ["y"], axis=0)]
    y = helper.make_empty_tensor_value_info("y")
    proto = helper.make_model(
        helper.make_graph(nodes, "g", inputs, [y]), opset_imports=[helper.make_opsetid("", 17)]
    )
    typed = pulse.load(proto).analyse()
    assert [str(fact.shape[0]) for fact in typed.inputs.values()] == ["2*T", "T", "T-1", "time_axis"]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(None, id="none"),
        pytest.param(3, id="number"),
        pytest.param([], id="list"),
        pytest.param(object(), id="object"),
    ],
)
def test_content_other_than_a_model_is_refused(source: object) -> None:
    with pytest.raises(pulse.LoadError, match="give a path"):
        pulse.load(source)  # type: ignore[arg-type]


@pytest.mark.parametrize("inputs", ["x", {"x": 3}, 5])
def test_inputs_other_than_shapes_are_refused(inputs: object) -> None:
    with pytest.raises(pulse.LoadError, match="must map names to shapes"):
        pulse.load(model_with(), inputs=inputs)  # type: ignore[arg-type]
