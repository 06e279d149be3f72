"""Loops become scans, however they are written, and stream."""

from collections.abc import Callable

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError, PulsifyError
from pulse.facts import Array
from pulse.ops.control import Loop
from pulse.ops.scan import Scan
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import GraphDefBuilder
from tests.pulse.tensorflow.loops import (
    branches,
    counting_loop,
    doubling_loop,
    expected_states,
    functional,
    indexed_loop,
    lowered_loop,
    mapped_indices,
    slicing_loop,
)

FORMS = {"functional": functional, "lowered": lowered_loop}


@pytest.mark.parametrize("form", FORMS)
def test_a_recurrent_layer_is_a_scan(form: str) -> None:
    typed = pulse.load(FORMS[form]().data).model.analyse()
    assert [node.op for node in typed.graph.nodes if isinstance(node.op, Scan)]
    for frames in (0, 1, 7):
        x = normal_noise(frames, 1, 4)
        np.testing.assert_allclose(typed.run(x)["y"], expected_states(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_loop_streams(form: str) -> None:
    model = pulse.load(FORMS[form]().data).model.analyse().with_outputs(["y"])
    pulse.verify(model, pulse=24).require()
    pulse.verify(model, pulse=24, lengths=(1, 23, 24, 75), backend="numpy").require()


def test_the_last_state_is_an_output() -> None:
    x = normal_noise(5, 1, 4)
    outputs = pulse.load(functional().data).model.analyse().run(x)
    np.testing.assert_allclose(outputs["last"], expected_states(x)[-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("frames", [0, 1, 4])
def test_iterations_whose_number_is_known_are_unrolled(frames: int) -> None:
    typed = pulse.load(functional((frames, 1, 4)).data).model.analyse()
    assert not [node.op for node in typed.graph.nodes if isinstance(node.op, Scan | Loop)]
    x = normal_noise(frames, 1, 4)
    np.testing.assert_allclose(typed.run(x)["y"], expected_states(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("first", "scans", "total"), [("three", 1, 18), ("late", 0, 15)])
def test_the_number_of_an_iteration_may_be_read(first: str, scans: int, total: int) -> None:
    typed = pulse.load(counting_loop(first).data).model.analyse()
    assert sum(isinstance(node.op, Scan) for node in typed.graph.nodes) == scans
    assert typed.run(np.zeros((7, 1, 4), np.float32))["y"].tolist() == [[total] * 3]


def test_a_loop_that_data_ends_runs_offline() -> None:
    typed = pulse.load(doubling_loop(100.0).data).model.analyse()
    x = np.float32([1, 2, 3])
    assert typed.run(x)["y"].tolist() == [32, 64, 96]


@pytest.mark.parametrize("flag", [False, True])
def test_branches_are_chosen(flag: bool) -> None:
    x = normal_noise(3, 2)
    either = np.exp(x) if flag else -x
    expected = np.abs(either) if flag else either**2
    typed = pulse.load(branches().data).model.analyse()
    np.testing.assert_allclose(typed.run({"x": x, "flag": np.array(flag)})["y"], expected, rtol=1e-6)
    chosen = pulse.load(branches().data, constants={"flag": flag}).model.analyse()
    np.testing.assert_allclose(chosen.run({"x": x})["y"], expected, rtol=1e-6)


LATE_BRANCHES = {
    "Rank": "and the branches differ: .*; give inputs fixed sizes or values",
    "Multinomial": "so both branches are needed, and the else_branch does not load: .*Multinomial.*; give inputs",
}


@pytest.mark.parametrize("else_op", LATE_BRANCHES)
def test_branches_of_a_condition_known_late_must_agree(else_op: str) -> None:
    reason = rf"if \(If\): its condition flag is only known while running, {LATE_BRANCHES[else_op]}"
    with pytest.raises(LoadError, match=reason):
        pulse.load(branches(else_op).data).model.analyse()


def drop_node(drop: str) -> Callable[[GraphDefBuilder], bytes]:
    def spoilt(builder: GraphDefBuilder) -> bytes:
        nodes = [node for node in builder.proto.node if node.name != drop]
        del builder.proto.node[:]
        builder.proto.node.extend(nodes)
        return builder.data

    return spoilt


@pytest.mark.parametrize("drop", ["loop/go", "loop/next_h", "loop/switch_out", "loop/i"])
def test_loops_that_are_not_whole_are_refused(drop: str) -> None:
    with pytest.raises(LoadError, match=f"reads '{drop}', but no node has this name"):
        pulse.load(drop_node(drop)(lowered_loop())).model.analyse()


def test_a_loop_that_assigns_a_variable_is_refused_by_the_node() -> None:
    builder = doubling_loop(10.0)
    body = next(function for function in builder.proto.library.function if function.signature.name == "body")
    node = body.node_def.add(name="store", op="AssignVariableOp")
    node.input.extend(["limit", "x"])
    body.control_ret["store"] = "store"
    with pytest.raises(LoadError, match=r"store \(AssignVariableOp\): a loop assigns a variable"):
        pulse.load(builder.data).model.analyse()


def test_strides_beside_an_index_that_is_computed_are_refused() -> None:
    with pytest.raises(LoadError, match="its strides are not 1"):
        pulse.load(slicing_loop(False, stride=2).data).model.analyse()


@pytest.mark.parametrize("last", [False, True])
def test_a_loop_may_slice_its_input_and_keep_the_last_result(last: bool) -> None:
    typed = pulse.load(slicing_loop(last).data).model.analyse()
    assert [node.op for node in typed.graph.nodes if isinstance(node.op, Scan)]
    x = normal_noise(1, 6, 3)
    sums = x.cumsum(1).transpose(1, 0, 2)
    np.testing.assert_allclose(typed.run(x)["y"], sums[-1:] if last else sums, rtol=1e-5, atol=1e-5)
    pulse.verify(typed, pulse=16, backend="numpy").require()


INDEXED: dict[str, Callable[[Array], Array]] = {
    "previous": lambda x: x[1:] - x[:-1],
    "second": lambda x: x[: len(x) // 2 * 2 : 2],
    "window": lambda x: x[:-2] + x[1:-1] + x[2:],
}


@pytest.mark.parametrize("frames", INDEXED)
def test_a_loop_may_take_frames_by_computed_indices(frames: str) -> None:
    typed = pulse.load(indexed_loop(frames).data).model.analyse().with_outputs(["y"])
    assert [node.op for node in typed.graph.nodes if isinstance(node.op, Scan)]
    for count in (2, 7, 8):
        x = normal_noise(count, 3)
        np.testing.assert_allclose(typed.run(x)["y"], INDEXED[frames](x), rtol=1e-5, atol=1e-6)
    pulse.verify(typed, pulse=4, backend="numpy").require()


def test_a_list_that_is_written_out_of_order_is_refused() -> None:
    with pytest.raises(
        LoadError, match=r"while \(While\): .*write element t in iteration t, as in array.write"
    ):
        pulse.load(indexed_loop("misplaced").data).model.analyse()


def test_all_indices_of_a_vectorized_map_are_frames() -> None:
    typed = pulse.load(mapped_indices().data).model.analyse()
    for count in (0, 1, 7):
        x = normal_noise(count, 3)
        np.testing.assert_allclose(typed.run(x)["y"], np.tanh(x), rtol=1e-5, atol=1e-6)
    pulse.verify(typed, pulse=4, backend="numpy").require()


def test_indices_that_a_longer_stream_selects_are_no_frames() -> None:
    typed = pulse.load(mapped_indices(bound=4).data).model.analyse()
    with pytest.raises(PulsifyError, match="its value depends on the length of the stream"):
        typed.with_outputs(["y"]).pulsify(pulse=4)
