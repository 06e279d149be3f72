"""``pulse.load`` takes whatever says what a model is, and everything else takes what it gives."""

import sys
from collections.abc import Callable
from dataclasses import fields
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import pulse
from pulse.facts import Array
from pulse.loading import format_registry
from pulse.loading.format_registry import Content, Format
from pulse.program.whole_stream import stream_whole
from pulse.recipes.model_stages import OPTIONS
from pulse.support.wording import CHUNKING_PARAMETERS
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.chunks.models import build, loop, pieces
from tests.pulse.recipes.recipe_files import spectral

Shapes = dict[str, list[int | str]]


def sum_and_product(inputs: Shapes) -> ModelProto:
    """Y is the sum of all inputs, z their product."""
    names = " ".join(inputs)
    nodes = [node("Sum", names, "y"), node("Mul", " ".join([*inputs, *inputs][:2]), "z")]
    return build(nodes, inputs, {"y": ["?"] * 2, "z": ["?"] * 2})


def test_every_source_of_one_model_gives_the_same_stream(tmp_path: Path) -> None:
    """A path, text, bytes, a proto; the model that was read, analysed, pulsified, compiled; what load gave."""
    proto, path = (
        models.build([node("Neg", "x", "y")], {"x": [1, "T"]}, {"y": [1, "T"]}),
        tmp_path / "neg.onnx",
    )
    onnx.save(proto, path)
    loaded = pulse.load(path)
    pulsed = loaded.pulsify(4)
    stages = [
        loaded,
        loaded.model,
        loaded.analyse(),
        loaded.decluttered_model,
        pulsed,
        pulsed.compile("numpy"),
    ]
    for source in (path, str(path), path.read_bytes(), proto, *stages):
        program = pulse.stream(source, 4, backend="numpy")
        x = normal_noise(1, 9)
        np.testing.assert_array_equal(stream_whole(program, {"x": x})["y"], -x)
        assert pulse.verify(source, 4, lengths=[5], backend="numpy").equal
        np.testing.assert_array_equal(pulse.chain(source).run(x)["y"], -x)
    with pytest.raises(
        pulse.PulsifyError, match="pulse 3: neg is in pulses of 4 frames; give the model before"
    ):
        pulse.stream(pulsed, 3)


def test_a_recipe_is_known_by_its_content(tmp_path: Path) -> None:
    """The content decides: a recipe may have any name, and a model may end in .toml."""
    path = spectral(tmp_path)
    other = path.rename(tmp_path / "recipe.txt")
    assert list(pulse.load(other).analyse().inputs) == list(
        pulse.stream(other, backend="numpy").model.typed.inputs
    )
    with pytest.raises(pulse.LoadError, match="not an ONNX model"):
        pulse.load(b"rate = 3")


def test_a_format_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that is added is read by every call, and recognised by its bytes."""
    negated = models.build([node("Neg", "x", "y")], {"x": [1, "T"]}, {"y": [1, "T"]})
    row = Format("words", lambda content: content.head == b"neg", lambda *_: pulse.load(negated).model)
    monkeypatch.setattr(format_registry, "FORMATS", [row])
    (tmp_path / "model.bin").write_bytes(b"neg")
    for source in (tmp_path / "model.bin", b"neg"):
        assert pulse.stream(source, backend="numpy").pulse == 1
    assert format_registry.find_format(Content.of(tmp_path / "gone")).name == "ONNX"


@pytest.fixture
def torch_module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of a stand-in for PyTorch."""

    class Module:
        def __call__(self) -> None: ...

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(nn=SimpleNamespace(Module=Module)))  # pyright: ignore[reportArgumentType]
    return Module()


@pytest.mark.parametrize("call", [pulse.load, pulse.stream, pulse.chain])
def test_a_pytorch_module_needs_from_torch(call: Callable[[Any], object], torch_module: Any) -> None:
    """The error names the call that takes one."""
    with pytest.raises(
        pulse.InputError, match=r"Module is a PyTorch module.*pulse\.from_torch\(module, example"
    ):
        call(torch_module)


def test_verify_needs_an_example_of_a_module(torch_module: Any) -> None:
    with pytest.raises(
        pulse.InputError, match=r"Module, a module, needs an input of it: verify\(module, example=x"
    ):
        pulse.verify(torch_module)


def test_options_of_reading_are_refused_for_a_loaded_model() -> None:
    """Its outputs, time and chunks may be chosen; how its file is read may not."""
    loaded = pulse.load(models.swapped_states())
    assert [port.name for port in pulse.load(loaded, outputs=["y"]).pulsify().outputs] == ["y"]
    with pytest.raises(
        pulse.LoadError, match="constants= is an option for reading a file, but chunks has already been read"
    ):
        pulse.load(loaded, constants={"x": 1})
    with pytest.raises(pulse.LoadError, match="is already in pulses; omit outputs="):
        pulse.load(loaded.pulsify(), outputs=["y"])
    with pytest.raises(pulse.LoadError, match=r"chunking must be a pulse\.Chunking, not dict"):
        pulse.load(models.gru(), chunking={"states": {}})  # pyright: ignore[reportArgumentType]


def looped_gru(x: Array) -> Array:
    """The output of ``models.gru``, called for one frame at a time."""
    states = {"h": ("hn", np.zeros((1, 1, 3), np.float32))}
    parts = loop(models.gru(), [{"x": piece} for piece in pieces(x, 1, 1)], states)
    return np.concatenate([part["y"] for part in parts], 1)


def test_a_model_of_chunks_is_detected() -> None:
    loaded = pulse.load(models.gru())
    assert loaded.defines_pulse
    assert loaded.chunks is not None
    assert ("state", "h -> hn, by name") in loaded.detections()


def test_a_model_of_chunks_takes_every_step_without_options() -> None:
    loaded, x = pulse.load(models.gru()), normal_noise(1, 7, 4)
    expected = looped_gru(x)
    np.testing.assert_allclose(loaded.analyse().run(x)["y"], expected, 1e-5, 1e-6)
    program = loaded.analyse().declutter().pulsify(pulse=2).compile("numpy")
    np.testing.assert_allclose(stream_whole(program, {"x": x})["y"], expected, 1e-5, 1e-6)
    assert pulse.verify(loaded, 3, lengths=[7], backend="numpy").require().equal


def test_a_model_of_chunks_of_any_length_needs_a_pulse() -> None:
    x = normal_noise(1, 6, 4)
    length = pulse.load(models.gru("time"))
    with pytest.raises(pulse.PulsifyError, match=r"takes chunks of any length .* with pulse="):
        length.analyse()
    for chosen in (length.with_pulse(2), pulse.load(length, chunking=pulse.Chunking(pulse=2))):
        np.testing.assert_allclose(chosen.analyse().run(x)["y"], looped_gru(x), 1e-5, 1e-6)
    assert length.pulsify(2).pulse == 2
    assert length.with_pulse(2).with_pulse(5).pulsify().pulse == 2


@pytest.mark.parametrize(
    ("inputs", "counted"),
    [
        ({"x": ["batch", "time"]}, "batch"),
        ({"x": ["N", "frames"]}, "N"),
        ({"x": ["B", "L"], "gain": ["B", 1]}, "B"),
        ({"x": ["batch_size", "n"]}, None),  # both names say that they count streams
        ({"x": ["time", "batch"]}, None),  # it does not lead
        ({"x": ["mics", "time"]}, None),  # its name does not say so
        ({"x": ["N", 4], "g": ["T", 4]}, None),  # time of the one, or streams
    ],
)
def test_a_symbol_that_counts_streams_is_one(inputs: Shapes, counted: str | None) -> None:
    """The symbol is 1 and reported, in models from a file and in Python; if it may be time, the user decides."""
    model = pulse.load(sum_and_product(inputs)).model
    for source in (sum_and_product(inputs), model, model.analyse()):
        loaded = pulse.load(source)
        if counted is None:
            assert loaded.sizes == {}
            with pytest.raises(pulse.PulseError, match=r"2 symbols .*symbol=, .*sizes, as in inputs="):
                loaded.pulsify()
            continue
        assert loaded.sizes == {counted: 1}
        assert loaded.pulsify(4).sizes == {counted: 1}
        (line,) = loaded.detections()
        assert line[1].startswith(f"{counted} = 1")
        assert pulse.verify(source, 3, lengths=[7], backend="numpy").require().equal
        assert counted not in {symbol.name for symbol in loaded.analyse().symbols}


def test_the_time_symbol_of_the_user_wins() -> None:
    """A name is no more than a name: ``symbol`` wins, and so does one symbol alone."""
    loaded = pulse.load(sum_and_product({"x": ["N", "T"]}), {"x": "N,2"}, symbol="N")
    assert loaded.sizes == {}
    assert loaded.pulsify().symbol.name == "N"
    assert pulse.load(sum_and_product({"x": ["batch", 3]})).pulsify().symbol.name == "batch"
    both = pulse.load(sum_and_product({"x": ["N", "T"]}), symbol="T")
    assert both.sizes == {"N": 1}
    assert both.pulsify().inputs[0].shape == (1, 1)


def test_symbols_keep_their_assumptions() -> None:
    """The length that stays keeps its assumptions; nothing stays of the one that became a number."""
    typed = pulse.load(sum_and_product({"x": ["batch", "T"]}), {"x": "batch,2*T"}).analyse()
    assert {symbol.name for test in typed.scope.assumptions for symbol in test.symbols} <= {"T"}
    assert [symbol.name for symbol in typed.symbols] == ["T"]


def test_the_lists_of_model_options_agree() -> None:
    """The options of ``pulse.load`` and ``Chunking`` have the names that errors spell and recipes use."""
    chunking = {field.name for field in fields(pulse.Chunking)}
    assert chunking - {"pulse"} == set(CHUNKING_PARAMETERS)
    parameters = set(signature(pulse.load).parameters) - {"source", "chunking", "ignore_value_info", "budget"}
    assert set(OPTIONS) == chunking | parameters
