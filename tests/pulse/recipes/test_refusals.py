"""Recipes that are wrong: one line each, with the file, the number of the stage, and what would help."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.recipes.recipe_model import recipe_model
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.recipes.recipe_files import (
    SPECTRAL,
    gain,
    mask_model,
    refusal_of,
    save_model,
    spectral,
    write_recipe,
)

MODEL = '[[stage]]\nmodel = "gain.onnx"\n'


def message_of(folder: Path, text: str) -> str:
    """The message of a recipe that is wrong."""
    return refusal_of(write_recipe(folder, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no stages; each begins with a line [[stage]]"),
        ("stage = 3", "has no stages"),
        ("stage = [3]", "stage 1: 3 must be a table"),
        ("[[stage]\n", "not valid TOML: "),
        ("ratee = 3\n" + MODEL, "unknown key 'ratee' (did you mean rate?)"),
        ('rate = "16k"\n' + MODEL, "rate = '16k' must be an integer, such as rate = 16000"),
        ("rate = true\n" + MODEL, "rate = true must be an integer"),
        ("rate = 0\n" + MODEL, "rate = 0 must be at least 1"),
        ("title = 3\n" + MODEL, "title = 3 must be text"),
        ('title = "../up"\n' + MODEL, "must be one line of at most 100 characters without / and"),
        ('outputs = "y"\n' + MODEL, "outputs = 'y' must be a list, each text"),
        ('outputs = ["y"]\n' + MODEL, "the chain's outputs: unknown wire 'y'"),
        ("inputs = 3\n" + MODEL, "inputs = 3 must be a list, each text or a table, each value text"),
        ('inputs = ["x", "x"]\n' + MODEL, "inputs: x occurs twice"),
        ('inputs = ["a", "b"]\n' + MODEL, "which outputs of the stage before it (a: 1,T,f32; b: 1,T,f32)"),
        (
            'inputs = { a = "1,9,T,2", b = "1,T" }\n' + MODEL + 'from = "a"',
            "input b: no stage reads it; omit",
        ),
        ('inputs = { x = "1,(" }\n' + MODEL, "input x: '1,(' is not a shape; give dims, such as 1,T"),
        ("[[stage]]\n", 'stage 1: has no function and no model; add one, such as model = "model.onnx"'),
        ('[[stage]]\nas = "x"', "stage 1: has no function and no model"),
        ("[[stage]]\nstfft = {}", "stage 1: unknown function 'stfft' (did you mean stft?)"),
        (
            "[[stage]]\nstft = {}\nmodel = 'm'",
            "stage 1: has both stft and model; give each its own [[stage]]",
        ),
        ("[[stage]]\nstft = 3", "stage 1 (stft): stft = 3 must be a table, such as stft = {}"),
        ("[[stage]]\nstft = { hopp = 3 }", "(stft): unknown parameter 'hopp' (did you mean hop?)"),
        (
            "[[stage]]\nstft = {}\nhop = 3",
            "stage 1 (stft): hop belongs inside the table of stft, not next to",
        ),
        (
            "[[stage]]\nstft = {}\nstates = {}",
            "stage 1 (stft): states belongs next to model, not next to stft",
        ),
        ("[[stage]]\nstft = {}\nform = 1", "stage 1 (stft): unknown key 'form' (did you mean from?)"),
        ("[[stage]]\nframes = { hop = 3 }", "stage 1 (frames): frames needs size"),
        ('[[stage]]\nstft = { hop = "a" }', "stage 1 (stft): hop = 'a' must be an integer"),
        ("[[stage]]\nstft = { center = 1 }", "center = 1 must be true or false"),
        ("[[stage]]\nstft = { window = [1, true] }", "must be text or a list, each a number"),
        ("[[stage]]\nstft = { hop = -8 }", "stage 1 (stft): stft: hop=-8 must be an integer from 1"),
        ('[[stage]]\nstft = { window = "han" }', "stage 1 (stft): stft: window='han'"),
        ('[[stage]]\ncmvn = { path = "none.ark" }', "stage 1 (cmvn): cmvn: the statistics "),
        ("[[stage]]\nmodel = 3", 'model = 3 must be the path of a file, such as "model.onnx"'),
        ('[[stage]]\nmodel = "gone.onnx"', "gone.onnx: no such file; check the path"),
        ('[[stage]]\nmodel = "recipe.toml"', "the recipe is a stage of itself; name another model"),
        (MODEL + "state = {}", "stage 1 (model): unknown key 'state' (did you mean states?)"),
        (MODEL + 'pulse = "8"', "pulse = '8' must be an integer, such as pulse = 512"),
        (MODEL + "pulse = 0", "pulse = 0 must be at least 1"),
        (MODEL + "delay = { y = -3 }", "delay = {'y': -3} must not be negative, such as { y = 256 }"),
        (
            MODEL + 'context = ["x"]',
            "must be a table, each value an integer, such as context = { input = 64",
        ),
        (
            MODEL + 'constants = { sr = "16k" }',
            "constants: sr = '16k' must be a number, a list or a .npy file",
        ),
        (MODEL + "constants = { sr = [[1], 2] }", "constants: sr = [[1], 2] must be a number, a list"),
        (MODEL + "constants = { sr = 1979-05-27 }", "must be a table of numbers, lists or .npy files"),
        (MODEL + 'initial = { h = "h.npy" }', "h.npy: no such file"),
        (MODEL + 'states = { h = "hn" }', "stage 1 (model): "),
        (MODEL + "from = 3", "stage 1 (model): from = 3 must be a name or a list of names"),
        (MODEL + 'from = "q"', "stage 1: unknown wire 'q'"),
        (MODEL + 'as = ["a", "b"]', "gives 2 names and has outputs enh"),
        (MODEL + 'as = { q = "b" }', "unknown output 'q'"),
        (MODEL + 'as = "a"\n' + MODEL + 'as = "a"', "stage 2 (model): gives a, as stage 1 (model) does"),
        (
            MODEL + 'from = "late"\n' + MODEL + 'as = "late"',
            "stage 1 (model): reads late, which stage 2 (model) gives; a stage reads what stages before it give:",
        ),
        (MODEL + 'from = "own"\nas = "own"', "reads own, which stage 1 (model) gives; a stage"),
        (MODEL + '[[stage]]\nmask = {}\nfrom = ["enh", "masc"]', "stage 2: unknown wire 'masc'"),
    ],
)
def test_bad_recipes_are_refused_with_the_reason(tmp_path: Path, text: str, message: str) -> None:
    save_model(tmp_path, "gain.onnx", gain())
    assert message in message_of(tmp_path, text)


def test_sizes_that_differ_are_refused(tmp_path: Path) -> None:
    """The message has the sizes of both stages, the axis and the number of the stage."""
    save_model(tmp_path, "gain.onnx", gain())
    message = message_of(tmp_path, SPECTRAL.replace("n_fft = 16", "n_fft = 32"))
    assert message == (
        "stage 2 (gain): spectrum (1,17,T/8+1,2,f32) does not fit mix (1,9,T,2,f32): axis 1 is 17 in one and 9 in "
        "the other"
    )
    message = message_of(tmp_path, SPECTRAL.replace("istft = { n_fft = 16", "istft = { n_fft = 32"))
    assert message.startswith("stage 3 (istft): istft: shape '1,9,T/8+1,2' has 9 frequencies")


def test_types_and_axes_that_differ_are_refused(tmp_path: Path) -> None:
    save_model(tmp_path, "counter.onnx", models.counter())
    save_model(tmp_path, "gru.onnx", models.gru())
    assert "stage 1 (stft): stft: shape '1,T,4' must have 2 axes" in message_of(
        tmp_path, '[[stage]]\nstft = { shape = "1,T,4" }'
    )
    text = '[[stage]]\nframes = { size = 4, hop = 4 }\n[[stage]]\nmodel = "counter.onnx"'
    assert re.match(r"stage 2 \(counter\): .*the types differ", message_of(tmp_path, text))


def test_rates_that_differ_are_refused(tmp_path: Path) -> None:
    save_model(tmp_path, "slow.onnx", models.cache_of_sound(), rate_hz=8000)
    size = [1, "T", 20]
    save_model(
        tmp_path, "vad.onnx", models.build([node("Neg", "x", "y")], {"x": size}, {"y": size}), rate_hz=50
    )
    slow = '[[stage]]\nmodel = "slow.onnx"\n'
    expected = "stage 1 (model): made for 8000 Hz, and the recipe has 16000 Hz; give both the same rate"
    assert message_of(tmp_path, f"rate = 16000\n{slow}") == expected
    bank = "[[stage]]\nkaldi_fbank = { num_mel_bins = 20 }\n"
    assert "stage 2 (kaldi_fbank): made for 16000 Hz, and stage 1 (model) has 8000 Hz" in message_of(
        tmp_path, slow + bank.replace("20", "20, sample_rate = 16000")
    )
    vad = '[[stage]]\nmodel = "vad.onnx"\n'
    assert "stage 2 (model): made for 8000 Hz, and stage 1 (kaldi_fbank) has 16000" in message_of(
        tmp_path, bank + vad
    )


def test_a_choice_of_wires_is_refused_with_the_line_to_write(tmp_path: Path) -> None:
    """The way out is spelled as the recipe is."""
    save_model(tmp_path, "gain.onnx", gain())
    nodes = [node("Add", "a b", "c")]
    save_model(tmp_path, "sum.onnx", models.build(nodes, {"a": [1, "T"], "b": [1, "T"]}, {"c": [1, "T"]}))
    text = '[[stage]]\nframes = { size = 4, hop = 4 }\n[[stage]]\nmodel = "sum.onnx"'
    assert message_of(tmp_path, text).endswith('Say so with from = { a = "frames" }')
    save_model(tmp_path, "long.onnx", models.gru("time"))
    assert "in a chunk with pulse; if there are no states, states = {}" in message_of(
        tmp_path, '[[stage]]\nmodel = "long.onnx"'
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [("inputs", {"x": "1,T"}), ("constants", {"x": 1}), ("context", {"x": 4}), ("delay", {"sound": 1})],
)
def test_model_options_belong_in_the_recipe(tmp_path: Path, option: str, value: dict[str, Any]) -> None:
    with pytest.raises(pulse.LoadError, match=f"omit .*{option}=.*, and write"):
        models.stream(spectral(tmp_path), **{option: value})


def test_how_models_are_called_belongs_in_the_recipe(tmp_path: Path) -> None:
    with pytest.raises(
        pulse.LoadError, match=r"a recipe itself describes how its models are called; omit .*states="
    ):
        models.stream(spectral(tmp_path), states={})


def test_a_recipe_is_not_an_onnx_model(tmp_path: Path) -> None:
    """A recipe has no file nodes; its bytes alone do not say where its models are."""
    path = spectral(tmp_path)
    with pytest.raises(pulse.LoadError, match="recipe: has no file nodes"):
        _ = pulse.load(path).model
    with pytest.raises(pulse.LoadError, match="it looks like a recipe; give its path"):
        pulse.load(path.read_bytes())


@pytest.mark.parametrize(
    "stage",
    [
        "overlap_add = { size = 16777216, hop = 8 }",
        "mel = { n_mels = 16777216 }",
        "mel_spectrogram = { n_fft = 16777216 }",
        "deltas = { window = 16777216 }",
        "kaldi_fbank = { num_mel_bins = 16777216 }",
        "kaldi_fbank = { sample_rate = 16777216 }",
        "kaldi_mfcc = { frame_length = 1000000000000000000000 }",
        "kaldi_fbank = { frame_shift = 1e308 }",
    ],
)
def test_huge_sizes_are_refused_by_their_stage(tmp_path: Path, stage: str) -> None:
    """A file asks for no memory without limit."""
    assert message_of(tmp_path, f"[[stage]]\n{stage}").startswith("stage 1 (")


def test_too_many_stages_are_refused(tmp_path: Path) -> None:
    """Stages of recipes in recipes count."""
    write_recipe(tmp_path, "[[stage]]\nlog = {}\n" * 60, "0.toml")
    for number in range(1, 9):
        write_recipe(tmp_path, f'[[stage]]\nmodel = "{number - 1}.toml"\n' * 3, f"{number}.toml")
    assert "more than 256 stages, including recipes in it" in message_of(
        tmp_path, '[[stage]]\nmodel = "8.toml"'
    )
    assert "more than 256 stages" in message_of(tmp_path, "[[stage]]\nlog = {}\n" * 257)


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\0", b"a = " + b"[" * 20_000, b"#" * (1 << 21), b"x\0"],
    ids=["not UTF-8", "nested deeply", "2 MiB", "a zero byte"],
)
def test_binary_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "recipe.toml"
    path.write_bytes(content)
    with pytest.raises(pulse.LoadError, match=re.escape(str(path))):
        recipe_model(path)


def test_paths_without_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(pulse.LoadError, match=r"none\.toml: no such file"):
        pulse.stream(tmp_path / "none.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(pulse.LoadError, match="not a regular file"):
        pulse.stream(tmp_path / "folder.toml")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: b"", id="empty"),
        pytest.param(lambda path: path.read_bytes()[:100], id="cut short"),
        pytest.param(lambda path: b"PK\3\4", id="zip"),
    ],
)
def test_damaged_models_are_refused_by_their_stage(tmp_path: Path, make: Callable[[Path], bytes]) -> None:
    path = save_model(tmp_path, "gain.onnx", mask_model())
    path.write_bytes(make(path))
    assert "stage 1 (model): " in message_of(tmp_path, MODEL)
    np.save(tmp_path / "h.npy", np.array([{}], object), allow_pickle=True)
    assert "not an array in numpy's format" in message_of(tmp_path, MODEL + 'initial = { h = "h.npy" }')
