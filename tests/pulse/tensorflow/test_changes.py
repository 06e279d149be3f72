"""Variables that are changed in part, in branches, or in ways that are not covered: kept or refused, never lost."""

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError
from tests.pulse.tensorflow.graphs import BOOL, F32, I32, Call, Shape, Sketch, Type, filled

RESOURCE = Type("resource")


def buffered(op: str, *inputs: str, resource: bool = True, **attributes: int) -> Sketch:
    """A buffer of 3 rows and x, one frame of 2: the operator changes the buffer, then y is the buffer's sum and x."""
    sketch = Sketch()
    sketch.place("x", 1, 2)
    sketch.const("zeros", np.zeros((3, 2)))
    for name, value in {
        "row": [1],
        "place": [[1]],
        "a": [0, 0],
        "b": [1, 0],
        "step": [1, 1],
        "axis": 0,
    }.items():
        sketch.const(name, value, np.int32)
    shape = Shape((3, 2))
    if resource:
        sketch.node("v", "VarHandleOp", dtype=F32, shape=shape, shared_name="v")
        sketch.node("set", "AssignVariableOp", "v", "zeros", dtype=F32)
    else:
        sketch.node("v", "VariableV2", dtype=F32, shape=shape)
        sketch.node("set", "Assign", "v", "zeros", T=F32)
    sketch.node("init", "NoOp", "^set")
    sketch.node("change", op, "v", *inputs, dtype=F32, T=F32, Tindices=I32, Index=I32, **attributes)
    read = "ReadVariableOp" if resource else "Identity"
    sketch.node("after", read, "v", "^change", dtype=F32, T=F32)
    sketch.node("sum", "Sum", "after", "axis", T=F32, Tidx=I32, keep_dims=True)
    sketch.node("y", "AddV2", "sum", "x", T=F32)
    return sketch


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
    (op, *inputs), how, rows, what = CASES[name]
    if name == "a_row":
        how = {**how}
        inputs = [*inputs[:3], "flat"]
    sketch = buffered(op, *inputs, **how)
    sketch.const("two", [2], np.int32)
    sketch.node("flat", "Reshape", "x", "two", T=F32, Tshape=I32)
    session = pulse.tensorflow.load(sketch.data).session()
    session.reset()
    chunking = pulse.Chunking(axes={"x": 0, "y": 0}, initial={"v": 0})
    state = pulse.stream(pulse.load(sketch.data, outputs=["y"], chunking=chunking), backend="numpy").spawn()
    buffer = np.zeros((3, 2), np.float32)
    for seed in range(3):
        x = filled(1, 2, seed=seed)
        chosen = np.array(rows, bool)
        buffer[chosen] = x + (buffer[chosen] if what == "add" else 0)
        expected = buffer.sum(0, keepdims=True) + x
        np.testing.assert_allclose(session.run("y", {"x": x}), expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(state.step(x)["y"], expected, rtol=1e-6, atol=1e-6)


def test_a_change_that_is_not_covered_is_refused() -> None:
    with pytest.raises(LoadError, match=r"change \(ResourceScatterMul\): it changes a variable in a way"):
        pulse.load(buffered("ResourceScatterMul", "row", "x").data)


def test_a_branch_that_assigns_is_refused_where_nobody_reads_what_it_gives() -> None:
    sketch = buffered("ResourceScatterUpdate", "row", "x")
    for node in sketch.proto.node:
        if node.name == "after":
            node.input[1] = "^branch"
    sketch.const("go", True, np.bool_)
    assign = ("set", "AssignVariableOp", ("v", "zeros"), {"dtype": F32})
    arguments = [("v", RESOURCE), ("zeros", F32)]
    sketch.function("yes", arguments, [assign], {"out": "zeros"}, ["set"])
    sketch.function("no", arguments, [], {"out": "zeros"})
    branches = {"then_branch": Call("yes"), "else_branch": Call("no")}
    sketch.node("branch", "If", "go", "v", "zeros", Tcond=BOOL, **branches)
    with pytest.raises(LoadError, match=r"set \(AssignVariableOp\): a loop or branch assigns a variable"):
        pulse.load(sketch.data)


def test_an_assignment_behind_a_switch_is_refused() -> None:
    sketch = buffered("AssignVariableOp", "taken:1")
    sketch.const("go", True, np.bool_)
    sketch.node("taken", "Switch", "zeros", "go", T=F32)
    with pytest.raises(LoadError, match=r"change \(AssignVariableOp\): a branch assigns a variable"):
        pulse.load(sketch.data)


def test_an_assignment_of_what_branches_give_is_kept() -> None:
    sketch = buffered("AssignVariableOp", "merged")
    sketch.place("go", dtype=BOOL)
    sketch.const("ones", np.ones((3, 2)))
    for name in ("zeros", "ones"):
        sketch.node(f"{name}/switch", "Switch", name, "go", T=F32)
    sketch.node("merged", "Merge", "zeros/switch", "ones/switch:1", T=F32, N=2)
    session = pulse.tensorflow.load(sketch.data).session()
    x = filled(1, 2)
    for go in (True, False):
        np.testing.assert_allclose(session.run("y", {"x": x, "go": go}), x + 3 * go, rtol=1e-6)


def test_what_restores_and_what_updates_does_not_initialise() -> None:
    sketch = buffered("ResourceScatterAdd", "row", "x")
    sketch.node("update", "NoOp", "^change")
    sketch.node("assign", "AssignVariableOp", "v", "save/restore", dtype=F32)
    sketch.node("save/file", "Placeholder", dtype=Type("string"))
    sketch.node("save/restore", "RestoreV2", "save/file", "save/file", "save/file")
    sketch.node("save/write", "SaveV2", "save/file", "save/file", "save/file", "after")
    sketch.node("save/all", "NoOp", "^assign")
    model = pulse.tensorflow.load(sketch.data)
    assert list(model.graph.output_names) == ["y", "v.next"]
    session = model.session()
    assert session.initialisers == ["init"]
    session.reset()
    assert not session.variables["v"].any()
