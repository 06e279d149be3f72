"""The shared .tflite files, call by call and streamed, against the results of LiteRT that lie beside them."""

import numpy as np
import pytest

import pulse
from pulse.facts import Array
from tests.pulse.tflite.litert import assert_agrees_with_litert
from tests.shared import shared_path

CALLS = 24
NAMES = ("dtln_1", "dtln_2", "dtln_quant_1", "hey_mycroft", "okay_nabu_v2", "vad_v2")
STREAMED = ("dtln_1", "dtln_2", "dtln_quant_1", "okay_nabu_v2", "vad_v2")
TWINS = {"hey_mycroft": "tflite/hey_mycroft.onnx", "dtln_1": "models/dtln_1.onnx"}


def stored_calls(name: str, side: str) -> list[list[Array]]:
    """The inputs or outputs of LiteRT in each call, in the order of the names."""
    arrays = np.load(shared_path("tflite") / f"{name}.npz")
    names = sorted(key.split("/", 1)[1] for key in arrays.files if key.startswith(f"0/{side}/"))
    return [[arrays[f"{call}/{key}"] for key in names] for call in range(CALLS)]


@pytest.mark.parametrize("name", NAMES)
def test_each_call_agrees_with_litert(name: str) -> None:
    model = pulse.load(shared_path("tflite") / f"{name}.tflite").model
    typed = model.analyse()
    states = {variable.input: variable.initial for variable in model.variables}
    fed = [port for port in typed.inputs if port not in states]
    for inputs, outputs in zip(stored_calls(name, "in"), stored_calls(name, "out"), strict=True):
        results = typed.run({**dict(zip(sorted(fed), inputs, strict=True)), **states})
        states = {variable.input: results[variable.output] for variable in model.variables}
        names = sorted(set(results) - {variable.output for variable in model.variables})
        for output, expected in zip(names, outputs, strict=True):
            assert_agrees_with_litert(results[output], expected, name)


@pytest.mark.parametrize("name", STREAMED)
def test_the_stream_agrees_with_litert(name: str) -> None:
    state = pulse.stream(shared_path("tflite") / f"{name}.tflite").spawn()
    for inputs, outputs in zip(stored_calls(name, "in"), stored_calls(name, "out"), strict=True):
        assert_agrees_with_litert(next(iter(state.step(inputs[0]).values())), outputs[0], name)


@pytest.mark.slow  # the stream of each equals LiteRT's above
@pytest.mark.parametrize("name", STREAMED)
def test_the_stream_is_proved(name: str) -> None:
    pulse.verify(shared_path("tflite") / f"{name}.tflite").require()


@pytest.mark.parametrize("name", TWINS)
def test_agrees_with_the_onnx_model(name: str) -> None:
    ours = pulse.load(shared_path("tflite") / f"{name}.tflite").model.analyse()
    twin_path = shared_path(TWINS[name])
    inputs_of_twin = (
        dict.fromkeys(pulse.load(twin_path).model.inputs, "1,29,13") if name == "hey_mycroft" else None
    )
    twin = pulse.load(twin_path, inputs=inputs_of_twin).model.analyse()
    for inputs in stored_calls(name, "in"):
        results = ours.run(dict(zip(ours.inputs, inputs, strict=True)))
        expected = twin.run(dict(zip(twin.inputs, inputs, strict=True)))
        for result, other in zip(results.values(), expected.values(), strict=True):
            assert_agrees_with_litert(result, other.reshape(result.shape), name)
