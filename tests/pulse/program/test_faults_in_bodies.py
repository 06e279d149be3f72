"""Values without a result inside scans, and in models of chunks."""

import numpy as np
import pytest
from onnx import GraphProto

import pulse
from pulse import Chunking
from pulse.errors import FaultError
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import stream_whole
from pulse.pulsify.driver import pulsify
from tests.backends import BACKENDS
from tests.pulse.cases.build import model, node
from tests.pulse.cases.scan import body
from tests.pulse.program.faulty_models import F32, ROWS, programs, table


def table_lookup_body() -> GraphProto:
    """A row of a table for each frame; the state is the frame."""
    return body(
        [node("Identity", "x_in", "s_out"), node("Gather", "table x_in", "y_out")], "s_in x_in", "s_out y_out"
    )


@pytest.mark.parametrize("final", [True, False])
def test_faults_in_scans_are_counted(final: bool) -> None:
    """Faults in a body are those of its frames of the stream; a final state is looked at in the last pulse."""
    x, constants = np.arange(7), {"table": table(ROWS, 3), "s": np.array(0), "taps": np.ones((1, 1, 3), F32)}
    nodes = [
        node("Cast", "x", "real", to=1),
        node("Reshape", "real flat", "deep"),
        node("Conv", "deep taps", "sums", pads=[0, 2]),
        node("Reshape", "sums row", "thin"),
        node("Div", "thin three", "mean"),
        node("Cast", "mean", "index", to=7),
        node("Scan", "s index", "last rows", body=table_lookup_body(), num_scan_inputs=1),
        node("Gather", "table last", "final"),
    ]
    constants |= {"flat": np.array([1, 1, -1]), "row": np.array([-1]), "three": np.array(3, F32)}
    small = {**constants, "table": table(ROWS, 3)[: ROWS if final else 2 * ROWS]}
    proto = model(nodes, {"x": x}, small, 17, {"x": 0}, "final" if final else "rows")
    typed = pulse.load(proto).analyse()
    for count in (2, 7, 8, 11):
        x = np.arange(count) * 7 % 6
        expected = typed.run({"x": x})
        wrong = np.where(np.arange(count) >= count - 1, 3 * ROWS + 1, x)
        for program in programs(typed, 1, 4):
            for name, values in stream_whole(program, {"x": x}).items():
                np.testing.assert_array_equal(values, expected[name])
            with pytest.raises(FaultError, match=r"final|y_out") as error:
                stream_whole(program, {"x": wrong})
            nodes_of = {fault.node for fault in error.value.faults}
            assert nodes_of <= {"final", "last/y_out"}
            assert nodes_of
        with pytest.raises(FaultError, match=r"final|y_out"):
            typed.run({"x": wrong})


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_node_of_a_body_has_one_count_for_every_pulse(backend: str) -> None:
    """Each node of a body has one count, whatever the pulse; offline the first frame that fails is named."""
    proto = model(
        [node("Scan", "s x", "last rows", body=table_lookup_body(), num_scan_inputs=1)],
        {"x": np.arange(7)},
        {"table": table(ROWS, 3), "s": np.array(0)},
        17,
        {"x": 0},
        "rows",
    )
    typed = pulse.load(proto).analyse()
    x = np.array([1, 2, -8, 3, 90, 0, 91])
    with pytest.raises(FaultError, match="y_out"):
        typed.run({"x": x})
    for frames in (1, 2, 4):
        state = compile_model(pulsify(typed, pulse=frames), backend).spawn()
        state.stops_at_faults = False
        for first in range(0, 7 // frames * frames, frames):
            state.step(x[first : first + frames])
        state.flush(x[7 // frames * frames :])
        assert [(fault.node, fault.count) for fault in state.faults] == [("last/y_out", 3)]


def test_frames_cut_off_before_a_scan_cause_no_faults() -> None:
    """A body never sees a frame that may turn out not to exist."""
    x, constants = np.arange(9), {"table": table(ROWS, 3), "s": np.array(0)}
    constants |= {name: np.array([value]) for name, value in (("zero", 0), ("end", -2))}
    nodes = [
        node("Slice", "x zero end zero", "cut"),
        node("Scan", "s cut", "last rows", body=table_lookup_body(), num_scan_inputs=1),
    ]
    typed = pulse.load(model(nodes, {"x": x}, constants, 17, {"x": 0}, "rows")).analyse()
    for count in (3, 8, 9, 12):
        x = np.arange(count) % ROWS
        x[-2:] = 100
        expected = typed.run({"x": x})["rows"]
        for program in programs(typed, 1, 4):
            np.testing.assert_array_equal(stream_whole(program, {"x": x})["rows"], expected)
        x[-3] = 100
        for program in programs(typed, 1, 4):
            with pytest.raises(FaultError, match="y_out"):
                stream_whole(program, {"x": x})


@pytest.mark.parametrize("backend", BACKENDS)
def test_faults_in_chunks_are_counted(backend: str) -> None:
    """All values of a chunk model count, also in the padded last chunk: the author's loop fails there."""
    nodes = [
        node("Gather", "table x", "rows"),
        node("Div", "x state", "quotient"),
        node("Add", "state one", "next"),
    ]
    constants = {"table": table(ROWS, 3)[1:], "one": np.array(1)}
    feeds = {"x": np.arange(4), "state": np.array(0)}
    proto = model(nodes, feeds, constants, 17, None, "rows quotient next")
    chunking = Chunking({"state": "next"}, axes={"x": 0}, initial={"state": np.array(1)})
    state = pulse.stream(pulse.load(proto, chunking=chunking), backend=backend).spawn()
    state.step(np.array([1, 2, 3, 4]))
    with pytest.raises(FaultError, match=r"rows .*1 value"):
        state.step(np.array([1, 2, 3, 6]))
    chunking = Chunking({"state": "next"}, axes={"x": 0})
    state = pulse.stream(pulse.load(proto, chunking=chunking), backend=backend).spawn()
    with pytest.raises(FaultError, match=r"quotient .*0"):
        state.step(np.array([1, 2, 3, 4]))
