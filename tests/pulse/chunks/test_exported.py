"""A file that was written in pulses is the same stream again."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pulse
from pulse.chunks.exported_streams import reopen_stream
from pulse.errors import InputError, LoadError, PulseError, PulsifyError
from pulse.facts import Array
from pulse.metadata import StreamMetadata
from pulse.models import PulsedModel
from streaming import Session
from tests.backends import BACKENDS
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.recurrent import weights
from tests.pulse.onnx.write.file_proof import read_metadata


def late_layer() -> PulsedModel:
    """A convolution that looks ahead, then a GRU whose last state is an output, at half the rate."""
    stored = {name: value for name, value in weights("GRU", 1, 3, 2).items() if name != "p"}
    stored["kernel"] = floats("kernel", 2, 2, 3) * 0.5
    nodes = [
        node("Conv", "x kernel", "seen", pads=[1, 1], strides=[2]),
        node("Transpose", "seen", "rows", perm=[2, 0, 1]),
        node("GRU", "rows w r b", "y h", hidden_size=3),
    ]
    source = model(nodes, {"x": floats("x", 1, 2, 9)}, stored, 17, {"x": 2}, "y h")
    return pulse.load(source).analyse().declutter().pulsify(pulse=4)


def push_blocks(session: Session, x: Array, sizes: list[int]) -> dict[str, Array]:
    """All that a session gives for blocks of some sizes."""
    pieces = []
    start = 0
    for size in sizes:
        pieces.append(session.push(x[:, :, start : start + size])["y"])
        start += size
    rest = session.flush()
    return {"y": np.concatenate([*pieces, rest["y"]]), "h": rest["h"]}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_session_of_the_file_is_that_of_the_model(backend: str, tmp_path: Path) -> None:
    """They have equal ports, and equal outputs for blocks, a flush, a snapshot in the middle and a reset."""
    original = late_layer()
    original.save(tmp_path / "out.onnx")
    program = pulse.stream(tmp_path / "out.onnx", backend=backend)
    for mine, theirs in zip((*program.inputs, *program.outputs), (*original.inputs, *original.outputs)):
        assert replace(mine, length=theirs.length) == theirs
        assert str(mine.length) == str(theirs.length)  # whose symbols are of two models
    x, sizes = floats("sound", 1, 2, 27), [3, 9, 0, 1, 10, 4]
    references = push_blocks(Session(original.compile(backend)), x, sizes)
    session = Session(program)
    for _ in range(2):
        outputs = push_blocks(session, x, sizes)
        for name, expected in references.items():
            np.testing.assert_allclose(outputs[name], expected, 1e-5, 1e-6)
        session.reset()
    first = session.push(x[:, :, :10])["y"]
    saved = session.snapshot()
    other = Session(program)
    other.restore(saved)
    rest = [other.push(x[:, :, 10:])["y"], other.flush()["y"]]
    np.testing.assert_allclose(np.concatenate([first, *rest]), references["y"], 1e-5, 1e-6)


def test_loading_in_steps_gives_what_the_file_holds(tmp_path: Path) -> None:
    """Load, analyse, declutter, pulsify: the last one gives what the file holds."""
    original = late_layer()
    original.save(tmp_path / "out.onnx")
    typed = pulse.load(tmp_path / "out.onnx").analyse().declutter()
    back = typed.pulsify("T", 4)
    assert [str(port) for port in back.outputs] == [str(port) for port in original.outputs]
    assert {register.name for register in back.registers} == {
        s.input for s in read_metadata(original.to_onnx()).states
    }
    with pytest.raises(PulsifyError, match="pulse 8: out was written for pulses of 4 frames"):
        typed.pulsify(pulse=8)
    with pytest.raises(PulsifyError, match="symbol S: out counts its frames by T"):
        typed.pulsify("S")


def test_states_of_an_exported_file_cannot_be_overridden(tmp_path: Path) -> None:
    late_layer().save(tmp_path / "out.onnx")
    with pytest.raises(PulsifyError, match="was written in pulses, so its states"):
        pulse.stream(pulse.load(tmp_path / "out.onnx", chunking=pulse.Chunking({"h": "h.next"})))


def test_a_file_that_is_written_again_is_the_same_stream() -> None:
    """A file that was read back can leave once more."""
    first = late_layer().to_onnx()
    again = pulse.load(first).analyse().declutter().pulsify().to_onnx()
    first_metadata, second_metadata = read_metadata(first), read_metadata(again)
    assert (first_metadata.inputs, first_metadata.outputs, first_metadata.awaits, first_metadata.end) == (
        second_metadata.inputs,
        second_metadata.outputs,
        second_metadata.awaits,
        second_metadata.end,
    )
    assert {state.input for state in first_metadata.states} == {
        state.input for state in second_metadata.states
    }


def test_a_file_without_states_is_proved() -> None:
    """Two inputs, and nothing that a pulse leaves for the next: its stream is compared at all lengths."""
    source = model(
        [node("Sub", "a b", "y")],
        {name: floats(name, 1, 9) for name in ("a", "b")},
        {},
        17,
        {"a": 1, "b": 1},
        "y",
    )
    written = pulse.load(source).pulsify(4).to_onnx()
    assert not read_metadata(written).states
    report = pulse.verify(written)
    assert report.outcome == "equal"
    assert not report.skipped


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"h.next"', '"nothing"', "h.next"),
        ('"length": "T"', '"length": "T +"', "cannot be read"),
        ('"rate": "1"', '"rate": "3/2"', "the metadata states 6 frames"),
        ('"axis": 2', '"axis": 7', "the metadata states"),
        ('"name": "x"', '"name": "z"', "names the input z, which the file does not have"),
    ],
)
def test_metadata_that_does_not_fit_is_refused(old: str, new: str, message: str) -> None:
    """A LoadError, whatever the file says."""
    proto = late_layer().to_onnx()
    for entry in proto.metadata_props:
        if entry.key in ("pulse_inputs", "pulse_outputs"):
            entry.value = entry.value.replace(old, new)
        if entry.key == "pulse_states" and old == '"h.next"':
            entry.value = entry.value.replace('.next"', '.nothing"')
    typed = pulse.load(proto).analyse()
    with pytest.raises(
        LoadError, match=message if old != '"h.next"' else "names the output .*, which the file does not have"
    ):
        typed.pulsify()


def test_a_register_of_the_wrong_shape_is_refused() -> None:
    proto = late_layer().to_onnx()
    metadata = read_metadata(proto)
    broken = StreamMetadata(
        **{
            **vars(metadata),
            "states": (
                *metadata.states[1:],
                metadata.states[0].of(metadata.states[0].input, metadata.states[0].output, np.ones(7)),
            ),
        }
    )
    typed = pulse.load(proto).analyse()
    typed.metadata.update(broken.dump())
    with pytest.raises(PulseError, match="register pulses is read as i64 and initially 7,f64"):
        typed.pulsify()


def test_a_file_that_was_not_exported_is_refused() -> None:
    with pytest.raises(LoadError, match="does not describe a pulsed model"):
        reopen_stream(late_layer().typed)


def test_the_end_is_given_once() -> None:
    """After the flush the stream is over."""
    proto = late_layer().to_onnx()
    state = pulse.load(proto).analyse().declutter().pulsify().compile("numpy").spawn()
    state.flush({"x": floats("x", 1, 2, 3)})
    with pytest.raises(InputError, match="the stream has ended"):
        state.step(floats("x", 1, 2, 4))
