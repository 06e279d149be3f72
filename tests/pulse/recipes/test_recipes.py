"""Recipes: what they make is what their stages give one after the other, and it streams."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pulse
from pulse import Stage, front
from pulse.program.whole_stream import stream_whole
from pulse.recipes.recipe_model import recipe_model
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.recipes.recipe_files import (
    BINS,
    gain,
    mask_model,
    save_model,
    spectral,
    write_masked,
    write_recipe,
)

SOUND = [normal_noise(1, frames, seed=frames) for frames in (9, 40, 203)]


def assert_recipe_equals(path: Path, expected: pulse.TypedModel) -> None:
    """Fail unless a recipe gives what a model gives, offline and as a stream with both backends."""
    (name,) = expected.outputs
    for x in SOUND:
        (offline,) = recipe_model(path).run(x).values()
        np.testing.assert_array_equal(offline, expected.run(x)[name])
        for backend in ("numba", "numpy"):
            (streamed,) = stream_whole(pulse.stream(path, backend=backend), {"x": x}).values()
            np.testing.assert_allclose(streamed, offline, 1e-4, 1e-5)


def test_a_recipe_with_stft_and_inverse_keeps_the_length(tmp_path: Path) -> None:
    """STFT, an offline model, and back; the sound is as long as it was, as ``length`` says in terms of the input."""
    path = spectral(tmp_path)
    how = {"n_fft": 16, "hop": 8, "window": "sqrt_hann"}
    back = front.istft(**how, length="T", shape=f"1,{BINS},T//8+1,2")
    assert_recipe_equals(path, pulse.chain(front.stft(**how), gain(), back))
    assert recipe_model(path).run(SOUND[2])["sound"].shape == SOUND[2].shape


def test_wires_are_read_by_name(tmp_path: Path) -> None:
    """A mask of a model of chunks, times a spectrum further up; names, a list, a table."""
    sizes = {"shape": f"1,frames,{BINS},2"}
    expected = pulse.chain(
        front.frames(16, 8, pad_start=8, window="sqrt_hann"),
        Stage(front.rfft(16, layout="T,F,2"), output_names=["spectrum"]),
        front.magnitude(**sizes),
        Stage(mask_model(), output_names=["mask"]),
        Stage(front.mask(**sizes, mask_shape=f"1,frames,{BINS}"), reads={"x": "spectrum", "mask": "mask"}),
        front.irfft(16, layout="T,F,2"),
        front.overlap_add(16, 8, window="sqrt_hann", trim_end=8),
    )
    assert_recipe_equals(write_masked(tmp_path), expected)


@pytest.mark.parametrize("make", [spectral, write_masked])
@pytest.mark.parametrize("frames", [8, 40])
def test_recipes_are_proved(tmp_path: Path, make: Callable[[Path], Path], frames: int) -> None:
    path = make(tmp_path)
    pulse.verify(path, pulse=frames).require()


@pytest.mark.parametrize("make", [spectral, write_masked])
def test_a_recipe_written_as_one_file_is_the_same_stream(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path)
    pulsed = pulse.load(path).pulsify()
    again = pulse.load(pulsed.to_onnx()).analyse().pulsify()
    for x in SOUND:
        (expected,) = stream_whole(pulsed.compile(), {"x": x}).values()
        (output,) = stream_whole(again.compile(), {"x": x}).values()
        np.testing.assert_allclose(output, expected, 1e-5, 1e-5)


def test_a_recipe_is_recognised_by_its_content(tmp_path: Path) -> None:
    """A recipe of any name, a comment first; a path of any kind."""
    path = write_masked(tmp_path).rename(tmp_path / "recipe.txt")
    assert recipe_model(path).title == "masked"
    (y,) = stream_whole(pulse.stream(str(path)), {"x": SOUND[0]}).values()
    assert y.shape == (1, 8)


def test_the_folder_of_the_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one that Python runs in: models, statistics, first values."""
    inside = tmp_path / "inside"
    inside.mkdir()
    save_model(inside, "gru.onnx", models.gru())
    np.save(inside / "first.npy", normal_noise(1, 1, 3))
    statistics = [list(range(1, 5)), [1.0] * 4]
    matrix = "\n".join(
        " ".join(map(str, [*row, 9 if index == 0 else 0])) for index, row in enumerate(statistics)
    )
    (inside / "cmvn.txt").write_text(f" [\n{matrix} ]\n")
    path = write_recipe(
        inside,
        """
        [[stage]]
        cmvn = { path = "cmvn.txt", norm_vars = false, shape = "1,T,4" }
        [[stage]]
        model = "gru.onnx"
        initial = { h = "first.npy" }
        """,
    )
    monkeypatch.chdir(tmp_path)
    expected = pulse.chain(
        front.cmvn(inside / "cmvn.txt", norm_vars=False, shape="1,T,4"),
        pulse.load(models.gru(), chunking=pulse.Chunking(initial={"h": normal_noise(1, 1, 3)})),
    )
    x = normal_noise(1, 7, 4)
    (output,) = recipe_model(Path("inside/recipe.toml")).run(x).values()
    np.testing.assert_array_equal(output, expected.run(x)["y"])
    assert path.parent == inside


def test_stages_take_all_options_of_models(tmp_path: Path) -> None:
    """All that ``pulse.load`` takes: shapes, a fixed input, a context, an axis, a delay, outputs."""
    save_model(tmp_path, "halved.onnx", models.half_context())
    options = {"context": {"x": 4}, "axes": {"y": 1}, "delay": {"y": 2}, "initial": {"state": 0.5}}
    path = write_recipe(
        tmp_path,
        """
        outputs = ["y"]
        [[stage]]
        model = "halved.onnx"
        states = { state = "state_out" }
        context = { x = 4 }
        axes = { y = 1 }
        delay = { y = 2 }
        initial = { state = 0.5 }
        """,
    )
    loaded = pulse.load(models.half_context(), outputs=["y"], chunking=pulse.Chunking(**options))
    assert_recipe_equals(path, pulse.chain(loaded))
    shaped = models.build(
        [node("Mul", "x k", "y"), node("Neg", "y", "z")],
        {"x": [1, "n"], "k": [1]},
        {"y": [1, "n"], "z": [1, "n"]},
    )
    save_model(tmp_path, "shaped.onnx", shaped)
    path = write_recipe(
        tmp_path,
        """
        [[stage]]
        model = "shaped.onnx"
        inputs = { x = "1,S" }
        constants = { k = [2.0] }
        outputs = ["y"]
        """,
    )
    model = recipe_model(path)
    assert [str(fact) for fact in model.inputs.values()] == ["1,S,f32"]
    np.testing.assert_array_equal(model.run(SOUND[0])["y"], 2 * SOUND[0])


def test_a_recipe_may_have_several_inputs_and_outputs(tmp_path: Path) -> None:
    """A stage that reads nothing is another input; a wire that is an output too; one that is an input."""
    save_model(
        tmp_path,
        "sum.onnx",
        models.build([node("Add", "a b", "y")], {"a": [1, "S"], "b": [1, "S"]}, {"y": [1, "S"]}),
    )
    path = write_recipe(
        tmp_path,
        """
        outputs = ["total", "near"]
        [[stage]]
        frames = { size = 4, hop = 4 }
        [[stage]]
        overlap_add = { size = 4, hop = 4 }
        as = "near"
        [[stage]]
        frames = { size = 4, hop = 4 }
        from = []
        [[stage]]
        overlap_add = { size = 4, hop = 4 }
        as = "far"
        [[stage]]
        model = "sum.onnx"
        from = ["near", "far"]
        as = "total"
        """,
    )
    model = recipe_model(path)
    first, second = normal_noise(1, 24, seed=1), normal_noise(1, 24, seed=2)
    outputs = model.run(dict(zip(model.inputs, (first, second))))
    assert list(outputs) == ["total", "near"]
    np.testing.assert_array_equal(outputs["total"], first + second)


def test_a_recipe_may_be_a_stage_of_another(tmp_path: Path) -> None:
    """The recipe equals a chain of the two models, and of the two files."""
    spectral(tmp_path).rename(tmp_path / "inner.toml")
    (tmp_path / "outer").mkdir()
    path = write_recipe(
        tmp_path / "outer", '[[stage]]\nmodel = "../inner.toml"\n[[stage]]\nmodel = "../inner.toml"'
    )
    inner = recipe_model(tmp_path / "inner.toml")
    assert_recipe_equals(path, pulse.chain(inner, inner))
    assert_recipe_equals(path, pulse.chain(tmp_path / "inner.toml", str(tmp_path / "inner.toml")))
    assert recipe_model(path).metadata["sample_rate"] == "8000"


def test_the_rate_of_a_recipe_is_that_of_its_functions(tmp_path: Path) -> None:
    """The rate of a recipe is that of its functions; without one, a stage has it; features have another rate."""
    assert recipe_model(spectral(tmp_path)).metadata == {"sample_rate": "8000"}
    bank = "{ sample_rate = 8000, num_mel_bins = 20 }"
    with_rate = write_recipe(
        tmp_path, "rate = 8000\n[[stage]]\nkaldi_fbank = { num_mel_bins = 20 }", "told.toml"
    )
    assert_recipe_equals(with_rate, front.kaldi_fbank(num_mel_bins=20, sample_rate=8000))
    stated = write_recipe(tmp_path, f"[[stage]]\nkaldi_fbank = {bank}", "stated.toml")
    assert recipe_model(stated).metadata["sample_rate"] == "8000"
    size = [1, "T", 20]
    save_model(
        tmp_path, "vad.onnx", models.build([node("Neg", "x", "y")], {"x": size}, {"y": size}), rate_hz=100
    )
    path = write_recipe(tmp_path, f'[[stage]]\nkaldi_fbank = {bank}\n[[stage]]\nmodel = "vad.onnx"')
    assert recipe_model(path).metadata["sample_rate"] == "8000"
    alone = write_recipe(tmp_path, '[[stage]]\nmodel = "vad.onnx"')
    assert recipe_model(alone).metadata["sample_rate"] == "100"
    mels = write_recipe(tmp_path, "rate = 100\n[[stage]]\nmel = { sample_rate = 16000 }")
    assert recipe_model(mels).metadata["sample_rate"] == "100"


def test_a_stage_may_be_a_function_of_the_facts_of_its_inputs() -> None:
    """The function gets the facts of the wires in the order of ``reads``."""
    facts_of_calls: list[list[str]] = []

    def mask(facts: list[object]) -> pulse.TypedModel:
        facts_of_calls.append([str(fact) for fact in facts])
        return front.mask(shape="1,9,S,2", mask_shape="1,9,S")

    joined = pulse.chain(
        Stage(front.stft(16, 8), output_names=["spectrum"]),
        Stage(front.magnitude(shape="1,9,T,2"), output_names=["size"]),
        Stage(mask, reads={"mask": "size", "x": "spectrum"}),
        Stage(lambda facts: front.magnitude(shape=str(facts[0]).removesuffix(",f32"))),
    )
    assert facts_of_calls == [["1,9,T/8+1,f32", "1,9,T/8+1,2,f32"]]
    x = SOUND[1]
    size = front.magnitude(shape="1,9,T,2").run(front.stft(16, 8).run(x)["spectrum"])["magnitude"]
    np.testing.assert_allclose(joined.run(x)["magnitude"], size**2, 1e-4, 1e-5)
