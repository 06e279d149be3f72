"""Sessions do what TensorFlow's do: pruning, feeding, effects in order, variables that stay."""

from pathlib import Path

import numpy as np
import pytest

from pulse import tensorflow
from pulse.errors import InputError, LoadError
from pulse.tensorflow import Session
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, I32, GraphDefBuilder, Shape
from tests.pulse.tensorflow.variables import counter


def open_session(builder: GraphDefBuilder) -> Session:
    return tensorflow.load(builder.data).session()


@pytest.mark.parametrize("resource", [False, True])
def test_variables_are_read_before_they_are_assigned(resource: bool) -> None:
    session = open_session(counter(resource))
    assert not session.run("known")
    with pytest.raises(InputError, match=r"a .*has no value yet"):
        session.run("before")
    assert session.run([], targets=["init"]) == []
    assert session.run("known")
    values = [int(session.run(name)) for name in ("read", "before", "once", "read", "twice", "read")]
    assert values == [0, 0, 1, 1, 3, 3]
    both = session.run(["before", "once"])
    assert [int(value) for value in both] == [3, 4]


def test_targets_run_and_give_nothing() -> None:
    session = open_session(counter(True))
    assert session.run((), targets=["init"]) == []
    assert session.run((), targets=["add"]) == []
    assert session.run("add") is None
    assert int(session.run("read")) == 2


def test_variables_are_reset_saved_and_restored(tmp_path: Path) -> None:
    session = open_session(counter(False))
    session.reset()
    assert session.initialisers == ["init"]
    assert int(session.run("twice")) == 2
    session.save(tmp_path / "kept.npz")
    session.reset()
    assert int(session.run("read")) == 0
    session.restore(tmp_path / "kept.npz")
    assert int(session.run("read")) == 2
    session.restore({"a": 7})
    assert session.variables["a"] == 7


def test_variables_of_other_names_shapes_or_files_are_refused(tmp_path: Path) -> None:
    session = open_session(counter(False))
    with pytest.raises(InputError, match=r"unknown variable '.*'; choose one of a"):
        session.restore({"b": 1})
    with pytest.raises(InputError, match="does not fit"):
        session.restore({"a": [1, 2]})
    (tmp_path / "none.npz").write_bytes(b"nothing")
    with pytest.raises(LoadError, match="neither"):
        session.restore(tmp_path / "none.npz")


def test_each_session_has_variables_of_its_own() -> None:
    model = tensorflow.load(counter(True).data)
    first, second = model.session(), model.session()
    first.reset()
    second.reset()
    first.run("once")
    assert (int(first.run("read")), int(second.run("read"))) == (1, 0)


def layers() -> GraphDefBuilder:
    builder = GraphDefBuilder()
    builder.place("x", -1, 2)
    builder.place("other", -1, 2)
    builder.const("w", normal_noise(2, 3))
    builder.node("conv", "MatMul", "x", "w", T=F32)
    builder.node("relu", "Relu", "conv", T=F32)
    builder.node("both", "AddV2", "x", "other", T=F32)
    builder.node("shape", "Shape", "conv", T=F32, out_type=I32)
    builder.node("more", "Greater", "relu", "conv", T=F32)
    return builder


def test_any_tensor_is_fed_or_fetched_and_the_rest_does_not_run() -> None:
    session, x = open_session(layers()), normal_noise(4, 2)
    np.testing.assert_allclose(session.run("conv:0", {"x:0": x}), x @ normal_noise(2, 3), rtol=1e-6)
    assert session.run("relu", {"conv": [[-1.0, 2.0, 0.5]]}).tolist() == [[0, 2, 0.5]]
    assert session.run("x", {"x": x}).tolist() == x.tolist()
    assert session.nodes_of(["relu"]) == ["x", "w", "conv", "relu"]
    assert session.nodes_of(["relu"], ["conv"]) == ["relu"]
    shape = session.run("shape", {"x": x})
    assert shape.tolist() == [4, 3]
    assert shape.dtype == np.int32
    assert session.run("more", {"x": x}).dtype == np.bool_


def test_plans_are_kept_by_feeds_fetches_and_targets() -> None:
    session, x = open_session(layers()), normal_noise(4, 2)
    session.run(["both", "relu"], {"x": x, "other": x})
    session.run(["relu", "both"], {"other": x, "x": normal_noise(3, 2)[:4].repeat(2, 0)[:4]})
    session.run(["relu", "both"], {"other": normal_noise(9, 2), "x": normal_noise(9, 2)})
    assert session.cache_info()[:2] == (2, 1)
    session.run("relu", {"x": x})
    assert session.cache_info()[:2] == (2, 2)


@pytest.mark.parametrize(
    ("fetch", "feeds", "reason"),
    [
        ("both", {"x": [[1, 2]]}, r"other \(Placeholder\): it is not fed"),
        ("nothing", {}, "model has no node of this name"),
        ("relu", {"nobody": 1}, "model has no node of this name"),
        ("relu", {"x": [1.0, 2.0, 3.0]}, r"shape \[3\] does not fit \[None, 2\]"),
        ("relu", {"x": "text"}, "is not of type f32"),
        ("conv:3", {"x": [[1, 2]]}, "outputs conv:.* are not supported"),
        ("conv:x:y", {}, "is not the name of a tensor"),
    ],
)
def test_errors_name_the_node(fetch: str, feeds: dict[str, object], reason: str) -> None:
    with pytest.raises((InputError, LoadError), match=reason):
        open_session(layers()).run(fetch, feeds)


def test_the_graph_grows_and_variables_stay() -> None:
    session = open_session(counter(True))
    session.reset()
    session.run("once")
    more = GraphDefBuilder()
    more.const("ten", 10, np.int32)
    more.node("product", "Mul", "once", "ten", T=I32)
    session.extend(more.data)
    assert int(session.run("product")) == 20
    with pytest.raises(LoadError, match="ten: the graph has a node of this name"):
        session.extend(more.data)


def test_control_edges_order_effects() -> None:
    """An output that waits for an assignment reads what it assigned; one that does not, what was there before."""
    builder = GraphDefBuilder()
    builder.place("x", 2)
    builder.node("v", "VarHandleOp", dtype=F32, shape=Shape((2,)))
    builder.node("old", "ReadVariableOp", "v", dtype=F32)
    builder.node("sum", "AddV2", "old", "x", T=F32)
    builder.node("store", "AssignVariableOp", "v", "sum", dtype=F32)
    builder.node("wait", "NoOp", "^store")
    builder.node("new", "ReadVariableOp", "v", "^wait", dtype=F32)
    session = open_session(builder)
    session.restore({"v": [1, 2]})
    old, new = session.run(["old", "new"], {"x": [10, 20]})
    assert old.tolist() == [1, 2]
    assert new.tolist() == [11, 22]
    with pytest.raises(InputError, match="handle of a variable"):
        session.run("v")


def sums() -> GraphDefBuilder:
    """The sum of x and y is half, the sum of half and z is whole; a variable counts."""
    builder = counter(True)
    for name in ("x", "y", "z"):
        builder.place(name, 2)
    builder.node("half", "AddV2", "x", "y", T=F32)
    builder.node("whole", "AddV2", "half", "z", T=F32)
    return builder


def test_tensors_are_watched() -> None:
    session = open_session(sums())
    feeds = {"x": [1, 2], "y": [3, 4], "z": [5, 6]}
    assert session.run("whole", feeds, watch=["half:0", "x"]).tolist() == [9, 12]
    assert {name: array.tolist() for name, array in session.watched.items()} == {
        "half:0": [4, 6],
        "x": [1, 2],
    }
    assert session.run("half", feeds, watch=["half"]).tolist() == session.watched["half"].tolist()
    session.run("whole", feeds)
    assert not session.watched


def test_a_run_takes_its_feeds_in_parts() -> None:
    session = open_session(sums())
    session.reset()
    part = session.partial_run(["half", "whole:0"], ["x", "y:0", "z"], ["add"])
    with pytest.raises(InputError, match="fetch none: model has no node"):
        session.partial_run(["none"])
    assert part.run("half:0", {"x": [1, 2], "y": [3, 4]}, ["add"]).tolist() == [4, 6]
    with pytest.raises(InputError, match=r"target add: .*has run already"):
        part.run((), {}, ["add"])
    with pytest.raises(InputError, match=r"feed x: .*fed already"):
        part.run("whole", {"x": [1, 2]})
    with pytest.raises(InputError, match=r"fetch half: .*given already"):
        part.run("half")
    assert part.run(["whole"], {"z": [5, 6]})[0].tolist() == [9, 12]
    assert int(session.run("read")) == 1


def test_prevented_feeds_and_fetches_are_refused() -> None:
    session = open_session(sums())
    session.prevent_feeding("half:0")
    session.prevent_fetching("half")
    with pytest.raises(InputError, match="feed half: prevent_feeding"):
        session.run("whole", {"half": [1, 2], "z": [5, 6]})
    with pytest.raises(InputError, match="fetch half: prevent_fetching"):
        session.run("half", {"x": [1, 2], "y": [5, 6]})
    assert session.run("whole", {"x": [1, 2], "y": [3, 4], "z": [5, 6]}).tolist() == [9, 12]
    with pytest.raises(InputError, match="no node"):
        session.prevent_feeding("none")
