"""Claims of a file about wires that its graph determines: checked, used where inputs are unknown, else ignored."""

import re
import warnings

import onnx
import pytest

from pulse.errors import LoadError, PulseWarning
from pulse.loading.onnx_files import read_onnx
from tests.pulse.cases.build import floats, node
from tests.pulse.infer.partial_models import facts, proto
from tests.shared import shared_path

NODES = [node("Conv", "x w", "h"), node("Relu", "h", "r"), node("Transpose", "r", "y", perm=[0, 2, 1])]
STORED = {"w": floats("w", 8, 4, 3)}
GIVEN = "1,4,T,f32"
IGNORED = "shapes that the file states do not hold and are ignored: "
SILENCE = "; ignore_value_info=True ignores all of them silently"


@pytest.mark.parametrize(
    ("wire", "claim", "contradiction"),
    [
        ("y", "1,98,8,f32", "y is 1,T-2,8,f32, not 1,98,8,f32"),  # a length that was baked in
        ("h", "1,7,?,f32", "h is 1,8,T-2,f32, not 1,7,?,f32"),
        ("r", "1,8,f32", "r is 1,8,T-2,f32, not 1,8,f32"),
        ("r", "1,8,?,i64", "r is 1,8,T-2,f32, not 1,8,?,i64"),
    ],
)
def test_wrong_claims_are_ignored_with_a_warning(wire: str, claim: str, contradiction: str) -> None:
    claims = {wire: claim}
    model = proto(NODES, {"x": GIVEN}, {"y": claims.pop("y", "...,f32")}, STORED, claims)
    with pytest.warns(
        PulseWarning, match=f"^{re.escape(f'partial: {IGNORED}{contradiction}{SILENCE}')}$"
    ) as caught:
        typed = read_onnx(model).analyse()
    assert len(caught) == 1
    assert str(typed.outputs["y"]) == "1,T-2,8,f32"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert str(read_onnx(model, ignore_value_info=True).analyse().outputs["y"]) == "1,T-2,8,f32"


def test_one_warning_for_a_model_lists_a_few() -> None:
    nodes = [node("Relu", "x" if step == 0 else f"h{step}", f"h{step + 1}") for step in range(6)]
    model = proto(
        nodes, {"x": "T,f32"}, {"h6": "9,f32"}, value_info={f"h{step}": "9,f32" for step in range(1, 6)}
    )
    with pytest.warns(
        PulseWarning, match=r"h1 is T,f32, not 9,f32; h2 .*; h3 .*; and 3 more; ignore_value_info=True"
    ) as caught:
        read_onnx(model).analyse()
    assert len(caught) == 1


@pytest.mark.parametrize("claim", ["1,?,8,f32", "B,frames,8,f32", "...,f32", "1,T,8,f32", "1,?,8,?"])
def test_names_and_gaps_never_contradict(claim: str) -> None:
    model = proto(NODES, {"x": GIVEN}, {"y": claim}, STORED, {"h": "1,C,T,f32"})
    assert str(read_onnx(model).analyse().outputs["y"]) == "1,T-2,8,f32"


def test_integers_of_any_width_agree() -> None:
    nodes = [node("Shape", "x", "s"), node("Cast", "s", "c", to=6), node("Add", "c c")]
    model = proto(nodes, {"x": GIVEN}, {"y": "3,i32"}, value_info={"c": "3,i32"})
    assert read_onnx(model).analyse().outputs["y"].shape == (3,)


def test_a_number_that_the_caller_frees_is_not_a_claim() -> None:
    model = proto(NODES, {"x": "1,4,100,f32"}, {"y": "1,98,8,f32"}, STORED, {"h": "1,8,98,f32"})
    assert str(read_onnx(model).analyse().outputs["y"]) == "1,98,8,f32"
    assert str(read_onnx(model, {"x": GIVEN}).analyse().outputs["y"]) == "1,T-2,8,f32"


def test_claims_count_where_an_input_is_not_known() -> None:
    model = proto(NODES, {"x": "...,f32"}, {"y": "...,f32"}, STORED, {"h": "1,8,10,f32"})
    assert facts(read_onnx(model))["x"] == "1,4,12,f32"
    assert facts(read_onnx(model, ignore_value_info=True))["x"] == "?,4,?,f32"


def test_known_sizes_stay_as_the_input_states_them() -> None:
    nodes = [node("Add", "x z", "h"), node("Relu", "h")]
    model = proto(nodes, {"x": "batch,T,f32", "z": "N,?,f32"}, {"y": "4,?,f32"})
    inferred = facts(read_onnx(model))
    assert (inferred["x"], inferred["z"]) == ("batch,T,f32", "N,?,f32")


def test_claims_that_contradict_the_graph_are_dropped() -> None:
    model = proto(NODES, {"x": "1,?,?,f32"}, {"y": "1,98,8,f32"}, STORED, {"h": "1,9,?,f32"})
    claims = r"^partial: shapes that the file states contradict its graph and are ignored: h \(Conv, .*: 8 and 9 differ"
    with pytest.warns(PulseWarning, match=claims) as caught:
        assert facts(read_onnx(model))["x"] == "1,4,?,f32"
    assert len(caught) == 1


def test_claims_are_ignored_where_weights_determine_sizes() -> None:
    model = proto(NODES, {"x": "1,?,T,f32"}, {"y": "1,98,8,f32"}, STORED)
    with pytest.warns(PulseWarning, match=re.escape("y is 1,T-2,8,f32, not 1,98,8,f32")):
        assert str(read_onnx(model).analyse().inputs["x"]) == GIVEN


def test_shared_models_state_nothing_wrong() -> None:
    """A warning would fail this test."""
    for path in sorted(shared_path("models").glob("*.onnx")):
        vad = "sr" in read_onnx(path).inputs
        fixed = {"inputs": {"input": "1,576", "state": "2,1,128"}, "constants": {"sr": 16000}} if vad else {}
        assert read_onnx(path, **fixed).analyse().outputs


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("fastenhancer_b_spec", ["1,257,1,2", "1,24,36", "1,24,36", "1,24,36"]),
        ("dtln_1", ["1,1,257", "1,?,128,?"]),
        ("fireredvad_stream", ["?,?,80"]),
        ("silero_vad_16k_static", ["1,?", "?,1,128"]),
        ("swift_f0", ["1,?"]),
    ],
)
def test_inputs_of_shared_models_are_inferred(name: str, shapes: list[str]) -> None:
    """Their weights and outputs give most of the inputs' sizes, and never a wrong one."""
    model = onnx.load(shared_path("models") / f"{name}.onnx")
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    assert [str(fact) for fact in read_onnx(model).infer().inputs.values()] == [
        f"{dims},f32" for dims in shapes
    ]


@pytest.mark.parametrize(
    ("fact_given", "named", "fact_inferred"),
    [
        ("1,?,4,f32", "1,S,4,f32", "1,S,4,f32"),
        ("B,?,4,f32", "B,S,4,f32", "B,S,4,f32"),
        ("...,f32", "1,S,4,f32", "1,S,4,f32"),
        ("1,T,4,f32", "1,S,4,f32", "1,T,4,f32"),  # a size that has a name keeps it
    ],
)
def test_a_name_that_only_an_output_has_reaches_the_input(
    fact_given: str, named: str, fact_inferred: str
) -> None:
    model = proto([node("Relu", "x", "y")], {"x": fact_given}, {"y": named})
    typed = read_onnx(model).analyse()
    assert str(typed.inputs["x"]) == str(typed.outputs["y"]) == fact_inferred
    if fact_inferred != fact_given:
        with pytest.raises(LoadError, match="input x"):
            read_onnx(model, ignore_value_info=True).analyse()


@pytest.mark.parametrize(
    ("nodes", "named"),
    [
        ([node("Conv", "x w", "y", strides=[2])], "1,8,S,f32"),  # two lengths of x give one S
        ([node("Conv", "x w", "y")], "1,S,S,f32"),  # 8 and S are not one
    ],
    ids=["two lengths of x", "channels and frames"],
)
def test_a_name_without_a_size_leaves_it_open(nodes: list[onnx.NodeProto], named: str) -> None:
    model = proto(nodes, {"x": "1,4,?,f32"}, {"y": named}, STORED)
    with pytest.raises(LoadError, match=r"input x \(1,4,\?,f32\): the file states no size for axis 2; give"):
        read_onnx(model).analyse()


@pytest.mark.parametrize(
    ("stated", "example"), [("?,4,?,f32", "1,4,T"), ("1,4,?,f32", "1,4,T"), ("?,4,100,f32", "T,4,100")]
)
def test_a_refusal_gives_an_example_for_missing_sizes(stated: str, example: str) -> None:
    """An unknown first axis counts streams, if another one can be time."""
    model = proto([node("Relu", "x", "y")], {"x": stated}, {"y": "...,f32"}, {})
    with pytest.raises(LoadError, match=re.escape(f'inputs={{"x": "{example}"}}')):
        read_onnx(model).analyse()
