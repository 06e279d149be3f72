"""Variables that are changed in part, in branches, or in ways that are not supported: kept or refused, never lost."""

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import BOOL, F32, I32, Call, GraphDefBuilder, Shape, Type

RESOURCE = Type("resource")


def buffer_graph(op: str, *inputs: str, resource: bool = True, **attributes: int) -> GraphDefBuilder:
    """A buffer of 3 rows and x, one frame of 2: the operator changes the buffer, then y is the buffer's sum and x."""
    builder = GraphDefBuilder()
    builder.place("x", 1, 2)
    builder.const("zeros", np.zeros((3, 2)))
    for name, value in {
        "row": [1],
        "place": [[1]],
        "a": [0, 0],
        "b": [1, 0],
        "step": [1, 1],
        "axis": 0,
    }.items():
        builder.const(name, value, np.int32)
    shape = Shape((3, 2))
    if resource:
        builder.node("v", "VarHandleOp", dtype=F32, shape=shape, shared_name="v")
        builder.node("set", "AssignVariableOp", "v", "zeros", dtype=F32)
    else:
        builder.node("v", "VariableV2", dtype=F32, shape=shape)
        builder.node("set", "Assign", "v", "zeros", T=F32)
    builder.node("init", "NoOp", "^set")
    builder.node("change", op, "v", *inputs, dtype=F32, T=F32, Tindices=I32, Index=I32, **attributes)
    read = "ReadVariableOp" if resource else "Identity"
    builder.node("after", read, "v", "^change", dtype=F32, T=F32)
    builder.node("sum", "Sum", "after", "axis", T=F32, Tidx=I32, keep_dims=True)
    builder.node("y", "AddV2", "sum", "x", T=F32)
    return builder


CASES = {
    "rows": (("ResourceScatterUpdate", "row", "x"), {}, [0, 1, 0], "set"),
    "rows_added": (("ResourceScatterAdd", "row", "x"), {}, [0, 1, 0], "add"),
    "rows_of_a_reference": (("ScatterAdd", "row", "x"), {"resource": False}, [0, 1, 0], "add"),
    "places": (("ResourceScatterNdUpdate", "place", "x"), {}, [0, 1, 0], "set"),
    "places_added": (("ResourceScatterNdAdd", "place", "x"), {}, [0, 1, 0], "add"),
    "slices": (
        ("ResourceStridedSliceAssign", "a", "b", "step", "x"),
        {"begin_mask": 2, "end_mask": 2},
        [1, 0, 0],
        "set",
    ),
    "slices_of_a_reference": (
        ("StridedSliceAssign", "row", "row", "row", "x"),
        {"resource": False, "end_mask": 1},
        [0, 1, 1],
        "set",
    ),
    "a_row": (
        ("ResourceStridedSliceAssign", "row", "row", "row", "x"),
        {"shrink_axis_mask": 1},
        [0, 1, 0],
        "set",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_parts_of_a_variable_are_changed(name: str) -> None:
    (op, *inputs), how, rows, change = CASES[name]
    if name == "a_row":
        how = {**how}
        inputs = [*inputs[:3], "flat"]
    builder = buffer_graph(op, *inputs, **how)
    builder.const("two", [2], np.int32)
    builder.node("flat", "Reshape", "x", "two", T=F32, Tshape=I32)
    session = pulse.tensorflow.load(builder.data).session()
    session.reset()
    chunking = pulse.Chunking(axes={"x": 0, "y": 0}, initial={"v": 0})
    state = pulse.stream(pulse.load(builder.data, outputs=["y"], chunking=chunking), backend="numpy").spawn()
    buffer = np.zeros((3, 2), np.float32)
    for seed in range(3):
        x = normal_noise(1, 2, seed=seed)
        chosen = np.array(rows, bool)
        buffer[chosen] = x + (buffer[chosen] if change == "add" else 0)
        expected = buffer.sum(0, keepdims=True) + x
        np.testing.assert_allclose(session.run("y", {"x": x}), expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(state.step(x)["y"], expected, rtol=1e-6, atol=1e-6)


def test_a_change_that_is_not_supported_is_refused() -> None:
    with pytest.raises(LoadError, match=r"change \(ResourceScatterMul\): it changes a variable in a way"):
        pulse.load(buffer_graph("ResourceScatterMul", "row", "x").data)


def branch_graph(go: bool | None = None, deep: bool = False) -> GraphDefBuilder:
    """A buffer v: where go, x becomes its row 1 and the branch gives its sum; else v becomes w, and x is given."""
    builder = buffer_graph("ResourceScatterUpdate", "row", "x")
    nodes = {node.name: node for node in builder.proto.node}
    nodes["after"].input[1] = "^branch"
    nodes["y"].input[0] = "sum"
    nodes["y"].input[1] = "branch"
    builder.proto.node.remove(nodes["change"])
    if go is None:
        builder.place("go", dtype=BOOL)
    else:
        builder.const("go", go, np.bool_)
    builder.const("w", normal_noise(3, 2))
    arguments = [("v", RESOURCE), ("w", F32), ("x", F32), ("row", I32), ("axis", I32)]
    read = {"dtype": F32}
    body = [
        ("put", "ResourceScatterUpdate", ("v", "row", "x"), {"dtype": F32, "Tindices": I32}),
        ("late", "ReadVariableOp", ("v", "^put"), read),
        ("total", "Sum", ("late:value:0", "axis"), {"T": F32, "Tidx": I32, "keep_dims": True}),
    ]
    builder.function("yes", arguments, body, {"out": "total:output:0"}, ["put"])
    builder.function("no", arguments, [("set", "AssignVariableOp", ("v", "w"), read)], {"out": "x"}, ["set"])
    branches = {"then_branch": Call("yes"), "else_branch": Call("no")}
    inputs = ("v", "w", "x", "row", "axis")
    if deep:
        builder.function("deep_no", [*arguments, ("go", BOOL)], [], {"out": "x"})
        inner = ("inner", "If", ("go", *inputs), {"Tcond": BOOL, **branches})
        builder.function("deep", [*arguments, ("go", BOOL)], [inner], {"out": "inner:output:0"}, ["inner"])
        builder.const("true", True, np.bool_)
        branches = {"then_branch": Call("deep"), "else_branch": Call("deep_no")}
        builder.node("branch", "If", "true", *inputs, "go", Tcond=BOOL, **branches)
    else:
        builder.node("branch", "If", "go", *inputs, Tcond=BOOL, **branches)
    return builder


@pytest.mark.parametrize("deep", [False, True])
def test_branches_assign_variables(deep: bool) -> None:
    """The variable holds what the branch that is taken gives it, after the branch and in the next call."""
    session = pulse.tensorflow.load(branch_graph(deep=deep).data).session()
    session.reset()
    buffer = np.zeros((3, 2), np.float32)
    for seed, go in enumerate((True, False, True, True, False)):
        x = normal_noise(1, 2, seed=seed)
        if go:
            buffer[1] = x
        else:
            buffer = normal_noise(3, 2)
        total = buffer.sum(0, keepdims=True)
        np.testing.assert_allclose(
            session.run("y", {"x": x, "go": go}), total + (total if go else x), rtol=1e-5
        )
        np.testing.assert_array_equal(session.variables["v"], buffer)
    assert "branch" in session.nodes_of(["y"])


@pytest.mark.parametrize("go", [True, False])
def test_branches_that_assign_stream(go: bool) -> None:
    chunking = pulse.Chunking(axes={"x": 0, "y": 0}, initial={"v": 0})
    opened = pulse.load(branch_graph(go).data, chunking=chunking)
    assert list(opened.model.graph.output_names) == ["y", "v.next"]
    state = pulse.stream(opened).spawn()
    buffer = np.zeros((3, 2), np.float32)
    for seed in range(3):
        x = normal_noise(1, 2, seed=seed)
        buffer = np.stack([buffer[0], x[0], buffer[2]]) if go else normal_noise(3, 2)
        total = buffer.sum(0, keepdims=True)
        np.testing.assert_allclose(state.step(x)["y"], total + (total if go else x), rtol=1e-5, atol=1e-6)


def test_a_choice_of_assignments_streams() -> None:
    """The condition is an input of the stream, too: a number for each frame."""
    builder = branch_graph()
    builder.proto.node.remove(next(node for node in builder.proto.node if node.name == "go"))
    builder.const("zero", 0)
    builder.const("both", [0, 1], np.int32)
    builder.node("total", "Sum", "x", "both", T=F32, Tidx=I32)
    builder.node("go", "Greater", "total", "zero", T=F32)
    chunking = pulse.Chunking(axes={"x": 0, "y": 0}, initial={"v": 0})
    pulse.verify(pulse.load(builder.data, chunking=chunking)).require()
    state = pulse.stream(pulse.load(builder.data, chunking=chunking)).spawn()
    session = pulse.tensorflow.load(builder.data).session()
    session.reset()
    signs: set[bool] = set()
    for seed in range(6):
        x = normal_noise(1, 2, seed=seed)
        signs.add(bool(x.sum() > 0))
        np.testing.assert_allclose(state.step(x)["y"], session.run("y", {"x": x}), rtol=1e-5, atol=1e-6)
    assert len(signs) == 2


def test_branches_whose_variable_is_unsure_are_refused() -> None:
    twice = branch_graph(True)
    node = next(node for node in twice.proto.node if node.name == "branch")
    node.input[2] = "v"
    with pytest.raises(
        LoadError, match=r"branch \(If\): the variable that a branch assigns, its argument 0, is"
    ):
        pulse.load(twice.data)
    inside = branch_graph(True)
    function = next(
        candidate for candidate in inside.proto.library.function if candidate.signature.name == "no"
    )
    function.node_def.add(name="own", op="VarHandleOp")
    function.node_def[0].input[0] = "own:resource:0"
    with pytest.raises(
        LoadError, match=r"set \(AssignVariableOp\): a loop assigns a variable, or a branch one"
    ):
        pulse.load(inside.data)


def test_a_loop_that_assigns_is_refused() -> None:
    builder = branch_graph(True)
    node = next(node for node in builder.proto.node if node.name == "branch")
    node.op = "While"
    del node.attr["then_branch"], node.attr["else_branch"]
    node.attr["cond"].func.name = node.attr["body"].func.name = "no"
    with pytest.raises(
        LoadError, match=r"set \(AssignVariableOp\): a loop assigns a variable, or a branch one"
    ):
        pulse.load(builder.data)


def test_an_assignment_after_a_switch_is_refused() -> None:
    builder = buffer_graph("AssignVariableOp", "taken:1")
    builder.const("go", True, np.bool_)
    builder.node("taken", "Switch", "zeros", "go", T=F32)
    with pytest.raises(LoadError, match=r"change \(AssignVariableOp\): a Switch decides whether it assigns"):
        pulse.load(builder.data)


@pytest.mark.parametrize("go", [True, False])
def test_an_assignment_of_results_of_branches_is_kept(go: bool) -> None:
    builder = buffer_graph("AssignVariableOp", "merged")
    builder.place("go", dtype=BOOL)
    builder.const("ones", np.ones((3, 2)))
    for name in ("zeros", "ones"):
        builder.node(f"{name}/switch", "Switch", name, "go", T=F32)
    builder.node("merged", "Merge", "zeros/switch", "ones/switch:1", T=F32, N=2)
    session = pulse.tensorflow.load(builder.data).session()
    x = normal_noise(1, 2)
    np.testing.assert_allclose(session.run("y", {"x": x, "go": go}), x + 3 * go, rtol=1e-6)


def test_restoring_and_updating_do_not_initialise() -> None:
    builder = buffer_graph("ResourceScatterAdd", "row", "x")
    builder.node("update", "NoOp", "^change")
    builder.node("assign", "AssignVariableOp", "v", "save/restore", dtype=F32)
    builder.node("save/file", "Placeholder", dtype=Type("string"))
    builder.node("save/restore", "RestoreV2", "save/file", "save/file", "save/file")
    builder.node("save/write", "SaveV2", "save/file", "save/file", "save/file", "after")
    builder.node("save/all", "NoOp", "^assign")
    model = pulse.tensorflow.load(builder.data)
    assert list(model.graph.output_names) == ["y", "v.next"]
    session = model.session()
    assert session.initialisers == ["init"]
    session.reset()
    assert not session.variables["v"].any()
