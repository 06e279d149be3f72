"""Reports of files, signatures and sizes, and of those that are not supported."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError, PulseWarning
from tests.noise import normal_noise
from tests.pulse.tflite.builder import SubgraphBuilder, file_bytes
from tests.pulse.tflite.layered_models import stack


def file_of_operator(kind: str, *more: int, options: str = "", **fields: int) -> bytes:
    """A file of one operator on [2, 5]."""
    graph = SubgraphBuilder()
    graph.outputs = [graph.result(kind, [graph.input((2, 5)), *more], (2, 5), options, **fields)]
    return file_bytes(graph)


def test_files_are_recognised_by_their_content(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(file_of_operator("TANH"))
    x = normal_noise(2, 5)
    for source in (path, str(path), file_of_operator("TANH")):
        (y,) = pulse.load(source).analyse().run({"x": x}).values()
        assert np.allclose(y, np.tanh(x))
    assert pulse.load(path).title == "model"


def test_signatures_are_chosen_by_name() -> None:
    graphs = [SubgraphBuilder("first"), SubgraphBuilder("second")]
    signatures = {}
    for number, (key, kind) in enumerate((("encode", "TANH"), ("decode", "LOGISTIC"))):
        g = graphs[number]
        g.outputs = [g.result(kind, [g.input((2, 5))], (2, 5))]
        signatures[key] = (number, {"Inputs": {f"to_{key}": 0}, "Outputs": {f"from_{key}": g.outputs[0]}})
    data = file_bytes(*graphs, signatures=signatures)
    with pytest.warns(PulseWarning, match="encode, decode"):
        assert list(pulse.load(data).model.inputs) == ["to_encode"]
    assert list(pulse.load(data, signature="decode").model.inputs) == ["to_decode"]
    with pytest.raises(LoadError, match="unknown signature 'other'; choose one of encode, decode"):
        pulse.load(data, signature="other")


def test_open_sizes_are_symbols_and_an_open_batch_is_one() -> None:
    graph = SubgraphBuilder()
    graph.outputs = [graph.result("TANH", [graph.input((-1, -1, 3, -1))], (-1, -1, 3, -1))]
    assert str(pulse.load(file_bytes(graph)).model.inputs["x"]) == "1,T,3,T1,f32"
    assert str(pulse.load(file_bytes(graph), inputs={"x": "2,S,3,4"}).model.inputs["x"]) == "2,S,3,4,f32"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(file_of_operator("TANH")[:200], "damaged", id="cut short"),
        pytest.param(b"\x10\0\0\0TFL3" + b"\0" * 8, "damaged", id="no tables"),
        pytest.param(file_of_operator("NO_SUCH_OPERATOR"), "CUSTOM NO_SUCH_OPERATOR", id="unknown operator"),
        pytest.param(
            file_of_operator("HASHTABLE_LOOKUP"), "not supported: HASHTABLE_LOOKUP", id="unsupported operator"
        ),
        pytest.param(file_of_operator("TANH", 7), "names one of", id="unknown code"),
    ],
)
def test_damage_is_named(data: bytes, words: str) -> None:
    with pytest.raises(LoadError, match=words):
        pulse.load(data).analyse()


def test_an_omitted_option_has_the_default_of_the_schema() -> None:
    """Beta of a softmax is 0: all values weigh the same."""
    typed = pulse.load(file_of_operator("SOFTMAX", options="SoftmaxOptions")).analyse()
    (y,) = typed.run(np.arange(10, dtype=np.float32).reshape(2, 5)).values()
    np.testing.assert_allclose(y, np.full((2, 5), 0.2), rtol=1e-6)


def test_data_after_the_end_is_refused() -> None:
    data = bytearray(stack())
    place = struct.unpack_from("<I", data)[0]
    struct.pack_into("<i", data, place, 1 << 30)
    with pytest.raises(LoadError, match="lies at byte"):
        pulse.load(bytes(data))


def test_a_variable_needs_a_handle() -> None:
    graph = SubgraphBuilder()
    graph.input((2, 5))
    graph.outputs = [graph.result("READ_VARIABLE", [0], (2, 5))]
    with pytest.raises(LoadError, match="has no variable"):
        pulse.load(file_bytes(graph))


def test_codes_need_a_scale() -> None:
    graph = SubgraphBuilder()
    x = graph.input((2, 5), "int8", scale=[0.1], zero=[0])
    graph.outputs = [graph.result("TANH", [x], (2, 5), "", 2, "int8")]
    with pytest.raises(LoadError, match="computes f32, but the file has INT8"):
        pulse.load(file_bytes(graph)).analyse()


def test_options_of_wrong_types_are_refused_by_name() -> None:
    wrong: Any = ["2,5"]
    with pytest.raises(LoadError, match="inputs must map names to shapes"):
        pulse.load(file_of_operator("TANH"), inputs=wrong)
    with pytest.raises(LoadError, match="constants must map names to values"):
        pulse.load(file_of_operator("TANH"), constants=wrong)
