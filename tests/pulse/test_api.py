"""The few calls that most users need, from a file to sound."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pulse
from pulse.errors import CompileError, PulseError, PulsifyError
from pulse.program.program import Program, require_program
from pulse.program.whole_stream import run_whole

F = np.float32


def proto() -> onnx.ModelProto:
    """X [1, 2, T] -> conv of 3 taps -> y; and relu of it -> z."""
    w = np.random.default_rng(0).standard_normal((2, 2, 3)).astype(F)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1, 1]),
            helper.make_node("Relu", ["y"], ["z"], name="relu"),
        ],
        "api",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, "T"])],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, "T"]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 2, "T"]),
        ],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("kind", ["proto", "bytes", "path", "text"])
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_stream_takes_every_source(tmp_path: Path, kind: str, backend: str) -> None:
    """A ModelProto, bytes, a path as Path or text; equal to offline."""
    model, path = proto(), tmp_path / "model.onnx"
    onnx.save(model, path)
    source = {"proto": model, "bytes": model.SerializeToString(), "path": path, "text": str(path)}[kind]
    program = pulse.stream(source, pulse=4, backend=backend)
    assert isinstance(program, Program)
    assert require_program(program) is program
    assert (program.backend, program.pulse) == (backend, 4)
    x = np.random.default_rng(1).standard_normal((1, 2, 11)).astype(F)
    offline = pulse.load(model).analyse().run(x)
    for name, streamed in run_whole(program.spawn(), {"x": x}, np.nan)[0].items():
        np.testing.assert_allclose(streamed, offline[name], 1e-4, 1e-5)


def test_stream_keeps_the_outputs_that_are_asked_for() -> None:
    """The outputs may be inner wires; an unknown one is refused by name."""
    assert [port.name for port in pulse.load(proto(), outputs=["z"]).pulsify().outputs] == ["z"]
    with pytest.raises(PulseError, match="unknown wire 'nothing'"):
        pulse.stream(pulse.load(proto(), outputs=["nothing"]))


def test_stream_finds_pulse_and_symbol_and_passes_the_rest_on() -> None:
    """The smallest pulse; align; prepare; a symbol of another name."""
    prepared: list[str] = []
    program = pulse.stream(proto(), prepare=prepared.extend)
    assert program.pulse == 1
    assert prepared
    assert pulse.stream(pulse.load(proto(), symbol="T"), align=True, backend="numpy").outputs[0].delay == 1
    assert pulse.load(proto(), {"x": "1,2,U"}).pulsify().symbol.name == "U"
    with pytest.raises(PulseError, match="unknown symbol 'W'"):
        pulse.stream(pulse.load(proto(), symbol="W"))
    with pytest.raises(PulsifyError, match="pulse=0"):
        pulse.stream(proto(), pulse=0)
    with pytest.raises(CompileError, match="no backend"):
        pulse.stream(proto(), backend="tpu")
    with pytest.raises(PulseError, match="no input has a symbolic dim"):
        pulse.stream(pulse.load(proto(), {"x": "1,2,40"}))


@pytest.mark.parametrize(
    "make",
    [
        proto,
        lambda: proto().SerializeToString(),
        lambda: pulse.load(proto()),
        lambda: pulse.load(proto()).analyse(),
    ],
    ids=["proto", "bytes", "Model", "TypedModel"],
)
def test_verify_takes_every_stage(make: Callable[[], Any]) -> None:
    report = pulse.verify(make(), pulse=3, lengths=[2, 7])
    assert report.equal
    assert report.lengths == (2, 7)
    assert report.model.pulse == 3


def test_verify_tries_the_given_backend() -> None:
    assert pulse.verify(pulse.load(proto(), symbol="T"), backend="numpy").backends == ("numpy",)


def test_verify_hands_out_the_programs_that_it_prepares() -> None:
    prepared: list[str] = []
    assert pulse.verify(pulse.load(proto()), pulse=3, lengths=[7], prepare=prepared.extend).equal
    assert prepared


def test_a_pulsed_model_in_place_of_a_program_is_refused() -> None:
    """The error says how to get one."""
    with pytest.raises(
        PulseError, match=r"expected a Program, got PulsedModel; use model.pulsify\(…\).compile"
    ):
        require_program(pulse.load(proto()).analyse().pulsify())


def test_ports_convert_to_text_and_to_data() -> None:
    """The text is for users, the data for tools."""
    model = pulse.load(proto()).analyse().pulsify(pulse=4)
    assert str(model.port("z")) == "z: 1,2,4,f32, axis 2, delay 1, rate 1, length T"
    assert model.port("x").as_dict() == {
        "name": "x",
        "shape": [1, 2, 4],
        "dtype": "f32",
        "axis": 2,
        "delay_frames": 0,
        "rate": "1",
        "length": "T",
    }
    with pytest.raises(PulsifyError, match="unknown input or output 'q'"):
        model.port("q")


def test_names_of_the_package_are_listed_and_exist() -> None:
    assert set(pulse.__all__) <= set(dir(pulse))
    assert all(getattr(pulse, name) is not None for name in pulse.__all__)
    assert callable(pulse.chain)


def test_unknown_names_of_the_package_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pulse.nothing
