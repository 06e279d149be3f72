"""The shared TensorFlow graphs: equal to what TensorFlow computed, offline and streamed.

``python -m pytest tests/conformance/test_tensorflow.py -v`` says which there are, and what becomes of each.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import PulseError
from pulse.facts import Array
from tests.agreement import assert_close
from tests.noise import normal_noise
from tests.shared import SHARED_FOLDER, shared_path

FOLDER = SHARED_FOLDER / "tensorflow"
MAX_DIFFERENCE = 1e-5
"""Tolerance, relative to the largest value."""
OTHERS = ("tf1_stateful_step", "dtln_savedmodel_ref")
SOUND = "decoded_sample_data"
GRAPHS = sorted(
    path.stem for path in FOLDER.glob("*.npz") if path.stem not in OTHERS and not path.stem.startswith("kws_")
)
WHOLE = {
    "pad_conv_prelu_gap": "a mean over time needs the whole stream",
    "lstm_unrolled4": "no input has a symbolic dim",
    "lstm_step_explicit_state": "name all states",
}
"""Graphs that cannot stream without more words, and why."""


def graph(name: str) -> Path:
    return shared_path("tensorflow") / f"{name}.pb"


def pairs(name: str) -> list[tuple[dict[str, Array], dict[str, Array]]]:
    """Inputs and outputs for each of two lengths."""
    stored = np.load(FOLDER / f"{name}.npz")
    cases: list[tuple[dict[str, Array], dict[str, Array]]] = []
    for case in "01":
        sides: list[dict[str, Array]] = []
        for side in ("in", "out"):
            keys = [key for key in stored.files if key.startswith(f"{case}/{side}")]
            sides.append({key.split("/", 2)[2]: stored[key] for key in keys})
        if sides[0]:
            cases.append((sides[0], sides[1]))
    return cases


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_agrees_with_tensorflow(name: str) -> None:
    typed = pulse.load(graph(name)).model.analyse()
    for feeds, expected in pairs(name):
        outputs = typed.run(feeds, list(expected))
        for output, array in expected.items():
            assert_close(outputs[output], array, share=MAX_DIFFERENCE)


@pytest.mark.parametrize("lengths", [(5, 80, 161), pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [name for name in GRAPHS if name not in WHOLE])
def test_a_graph_streams(name: str, lengths: tuple[int, ...] | None) -> None:
    """At some lengths; in the slow run at all that a proof takes by itself."""
    pulse.verify(graph(name), lengths=lengths).require()


@pytest.mark.parametrize("name", WHOLE)
def test_a_graph_that_cannot_stream_is_refused(name: str) -> None:
    with pytest.raises(PulseError, match=WHOLE[name]):
        pulse.verify(graph(name))


@pytest.mark.parametrize("name", ["kws_DS_CNN_S", "kws_GRU_S"])
def test_speech_commands_agrees_with_its_stored_outputs(name: str) -> None:
    """Spectrum and cepstrum are in the file, after a decoder of audio files, whose outputs are the inputs."""
    stored = np.load(shared_path("tensorflow") / f"{name}.npz")
    constants = {f"{SOUND}:1": int(stored["in/sample_rate"])}
    typed = pulse.load(graph(name), constants=constants).model.analyse()
    outputs = ["AudioSpectrogram", "Mfcc", "labels_softmax"]
    results = typed.run({SOUND: stored[f"in/{SOUND}"]}, outputs)
    for output in outputs:
        assert_close(results[output], stored[f"out/{output}"], share=MAX_DIFFERENCE)
    longer = pulse.tensorflow.load(graph(name), {SOUND: "T,1"}, constants, outputs=["Mfcc"])
    pulse.verify(longer).require()


def test_a_cell_with_input_states_streams_once_they_are_named() -> None:
    typed = pulse.load(graph("lstm_step_explicit_state")).model.analyse()
    states = {"h": "Identity_1", "c": "Identity_2"}
    chunking = pulse.Chunking(states=states, axes={"x": 0, "Identity": 0})
    program = pulse.stream(pulse.load(graph("lstm_step_explicit_state"), chunking=chunking))
    state, carried = program.spawn(), {"h": np.zeros((1, 5), np.float32), "c": np.zeros((1, 5), np.float32)}
    for x in normal_noise(5, 1, 4):
        expected = typed.run({"x": x, **carried})
        carried = {name: expected[output] for name, output in states.items()}
        assert_close(state.step(x)["Identity"], expected["Identity"], share=MAX_DIFFERENCE)


def seed_values(scope: str, names: tuple[str, ...]) -> list[int]:
    model = pulse.tensorflow.load(shared_path("tensorflow") / "seed_variable_example.unfrozen.pb")
    session = model.session()
    session.run((), targets=[f"{scope}/init"])
    return [int(session.run(f"{scope}/{name}")) for name in names]


def test_the_example_of_variables_runs() -> None:
    a, b, c, d, e = "a", "Identity", "AssignAdd", "Identity_1", "AssignAdd_1"
    assert seed_values("vFalse", (a, b, c, a, b, d, a, b, e, a, b)) == [0, 0, 1, 1, 1, 2, 2, 2, 4, 4, 4]
    a, c, e = "a/Read/ReadVariableOp", "ReadVariableOp", "ReadVariableOp_1"
    assert seed_values("vTrue", (a, b, c, a, b, d, a, b, e, a, b)) == [0, 0, 1, 1, 1, 2, 2, 2, 4, 4, 4]


def test_a_step_assigns_its_variable_in_streams_and_sessions() -> None:
    stored = np.load(shared_path("tensorflow") / "tf1_stateful_step.npz")
    axes = {"input": 0, "output": 0}
    state = pulse.stream(
        pulse.load(graph("tf1_stateful_step"), chunking=pulse.Chunking(axes=axes, initial={"state": 0}))
    ).spawn()
    session = pulse.tensorflow.load(graph("tf1_stateful_step")).session()
    session.restore({"state": np.zeros((1, 3))})
    for x, expected in zip(stored["input:0"], stored["output:0"]):
        assert_close(state.step(x)["output"], expected, share=MAX_DIFFERENCE)
        assert_close(session.run("output:0", {"input:0": x}), expected, share=MAX_DIFFERENCE)


def dtln() -> tuple[Path, Any]:
    folder = shared_path("tensorflow") / "dtln_saved_model"
    return folder, np.load(shared_path("tensorflow") / "dtln_savedmodel_ref.npz")


def test_dtln_streams_from_its_saved_model() -> None:
    folder, stored = dtln()
    state = pulse.stream(folder).spawn()
    blocks = [state.step(block[None])["conv1d_1"].ravel() for block in stored["input_1"]]
    assert_close(np.stack(blocks), stored["conv1d_1"], atol=1e-5)


def test_a_session_of_dtln_gives_its_stored_outputs() -> None:
    folder, stored = dtln()
    session = pulse.tensorflow.load(folder).session()
    for block, expected in zip(stored["input_1"][:10], stored["conv1d_1"]):
        assert_close(
            session.call({"input_1": block[None]})["conv1d_1"].ravel(), expected, share=MAX_DIFFERENCE
        )


def test_every_graph_is_tried() -> None:
    shared_path("tensorflow")
    assert len(GRAPHS) >= 17
