"""The command line takes a recipe wherever it takes a model."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from pulse.facts import Array
from pulse.recipes.recipe_model import recipe_model
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.recipes.recipe_files import gain, save_model, spectral, write_masked
from tests.streaming.command import pulse, refusal, report, write_sound

pytestmark = pytest.mark.usefixtures("working_folder")

SIZE = [1, 257, "T", 2]
MAKES = pytest.mark.parametrize("make", [spectral, write_masked])


def sound(frames: int = 2_003, rate_hz: int = 8000) -> Array:
    """An audio file, at the rate of ``spectral``."""
    x = (normal_noise(1, frames) / 8).astype(np.float32)
    write_sound("in.wav", x[0], rate_hz, subtype="FLOAT")
    return x


@MAKES
def test_run_agrees_with_the_whole_model(tmp_path: Path, make: Callable[..., Any]) -> None:
    """The written sound has the rate that the recipe says."""
    x = sound()
    path = make(tmp_path)
    rate = () if make is spectral else ("--rate", "8000")
    details = report("run", path, "in.wav", "out.wav", *rate)
    output, rate_hz = soundfile.read("out.wav", dtype="float32")
    (expected,) = recipe_model(path).run(x).values()
    assert (rate_hz, details["model"]) == (8000, path.stem)
    assert details["rate_from"] == ("model" if make is spectral else "option")
    np.testing.assert_allclose(output[: expected.size], expected[0], 1e-4, 1e-5)


def test_a_table_of_features_has_their_times(tmp_path: Path) -> None:
    """A recipe that ends in features: their times follow from the rate and the hop."""
    sound()
    text = (
        "rate = 8000\n[[stage]]\nkaldi_fbank = { num_mel_bins = 20 }\n[[stage]]\nstack = { m = 1, n = 1 }\n"
    )
    (tmp_path / "bank.toml").write_text(text)
    pulse("run", "bank.toml", "in.wav", "bank.csv")
    with open("bank.csv") as file:
        rows = list(csv.reader(file))
    assert (len(rows[0]), len(rows) - 1, rows[2][0]) == (21, (2_003 - 200) // 80 + 1, "0.010")


@MAKES
def test_check_bench_and_dump_take_recipes(tmp_path: Path, make: Callable[..., Any]) -> None:
    path = make(tmp_path)
    assert report("check", path, "--pulse", "8", "--length", 700)["proof"]["outcome"] == "equal"
    assert report("bench", path, "--pulse", "8", "--steps", "20", "--rounds", "1")["model"] == path.stem
    for stage in ("typed", "decluttered", "pulsed", "costs"):
        assert path.stem in pulse("dump", path, "--stage", stage).stdout
    assert pulse("dump", path, "--stage", "program").stdout
    assert "digraph" in pulse("dump", path, "--stage", "typed", "--dot").stdout
    assert "has no file nodes" in refusal("dump", path, "--stage", "load")


@MAKES
def test_convert_writes_one_proved_file(tmp_path: Path, make: Callable[..., Any]) -> None:
    """The file has explicit states and the rate of the recipe, is proved, and gives the same sound."""
    x = sound()
    path = make(tmp_path)
    details = report("convert", path, "--pulse", "8", "-o", "one.onnx")["written"]
    assert details["proof"]["outcome"] == "equal"
    assert details["states"] > 0
    rate = () if make is spectral else ("--rate", "8000")
    assert report("run", "one.onnx", "in.wav", "out.wav", *rate)["rate_hz"] == 8000
    output, _ = soundfile.read("out.wav", dtype="float32")
    (expected,) = recipe_model(path).run(x).values()
    np.testing.assert_allclose(output[: expected.size], expected[0], 1e-4, 1e-5)


def test_a_recipe_runs_live(tmp_path: Path) -> None:
    """A file as if a microphone gave it."""
    sound(800)
    path = spectral(tmp_path)
    details = report("run", path, "in.wav", "out.wav", "--live")
    assert details["setup"]["model"] == "recipe"
    assert soundfile.info("out.wav").samplerate == 8000


def test_errors_in_recipes_name_the_file_and_the_stage(tmp_path: Path) -> None:
    """Options of models belong in the recipe, and are spelled as options."""
    path = spectral(tmp_path)
    assert "omit --state, and write states in the stage" in refusal("check", path, "--state", "none")
    path.write_text("[[stage]]\nstft = { hop = 0 }")
    expected = f"error: {path}: stage 1 (stft): stft: hop=0 must be an integer from 1 to 16777216\n"
    assert refusal("run", path, "in.wav", "out.wav") == expected
    assert refusal("check", path, "--json") == expected
    path.write_text('[[stage]]\nmodel = "gone.onnx"')
    assert "gone.onnx: no such file" in refusal("convert", path)


BAD = {
    "a wrong key": (
        "hop = 8",
        "hopp = 8",
        "stage 1 (stft): unknown parameter 'hopp' (did you mean hop?)",
    ),
    "a wrong function": (
        "istft =",
        "istfft =",
        "stage 3: unknown function 'istfft' (did you mean istft?)",
    ),
    "a wrong value": ("n_fft = 16", "n_fft = 1", "stage 1 (stft): stft: n_fft=1"),
    "a missing file": ("gain.onnx", "gone.onnx", "stage 2 (model): "),
    "a folder": ('"gain.onnx"', '"."', 'stage 2 (model): model = "." is the file in whose metadata'),
    "a path to nowhere": (
        "gain.onnx",
        "no/where/gain.onnx",
        "no/where/gain.onnx: no such file; check the path",
    ),
    "no model": ("gain.onnx", "in.wav", "in.wav: not an ONNX model, it looks like an audio file"),
    "a size that differs": ("n_fft = 16", "n_fft = 32", "axis 1 is 17 in one and 9 in the other"),
    "a cycle": (
        "[[stage]]\nistft",
        '[[stage]]\nas = "own"\nfrom = "own"\nistft',
        "reads own, which stage 3 (istft)",
    ),
    "a recipe of itself": ("gain.onnx", "recipe.toml", "the recipe is a stage of itself; name another model"),
    "a rate that differs": (
        "rate = 8000",
        "rate = 16000",
        "stage 2 (model): made for 8000 Hz, and the recipe has 16000",
    ),
    "a wire to nowhere": ('"gain.onnx"', '"gain.onnx"\nfrom = "spectre"', "unknown wire 'spectre'"),
    "an output to nowhere": (
        "rate = 8000",
        'rate = 8000\noutputs = ["sonud"]',
        "the chain's outputs: unknown wire",
    ),
    "no TOML": ("rate = 8000", "rate = = 8000", "not valid TOML: "),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_recipes_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    sound(400)
    old, new, message = BAD[name]
    path = spectral(tmp_path)
    save_model(tmp_path, "gain.onnx", gain(), rate_hz=1000)
    path.write_text(path.read_text().replace(old, new, 1))
    for command in (
        ("run", path, "in.wav", "out.wav"),
        ("run", path, "in.wav", "out.wav", "--live"),
        ("check", path),
        ("convert", path, "-o", "out.onnx"),
        ("bench", path, "--json"),
    ):
        message_of_command = refusal(*command)
        assert message_of_command.startswith(f"error: {path}: ")
        assert message in message_of_command
    assert not list(tmp_path.glob("out.*"))
    assert "none.toml: no such file; check the path" in refusal("run", "none.toml", "in.wav", "out.wav")
    assert "none.wav" in refusal("run", spectral(tmp_path), "none.wav", "out.wav")


@pytest.mark.filterwarnings("default")
def test_files_are_resampled_and_rate_options_reported(tmp_path: Path) -> None:
    """A file of another rate is resampled; an option of another rate is reported."""
    sound(4_000, 16_000)
    path = spectral(tmp_path)
    assert report("run", path, "in.wav", "out.wav")["rate_hz"] == 8000
    assert soundfile.info("out.wav").samplerate == 16_000
    errors = pulse("run", path, "in.wav", "out.wav", "--rate", "16000").stderr
    assert "by its metadata the model is made for 8000 Hz; --rate 16000" in errors


def save_negation(folder: Path, name: str) -> None:
    """Save a model of spectra without a recipe, whose sizes suggest one."""
    save_model(folder, name, models.build([node("Neg", "x", "y")], {"x": SIZE}, {"y": SIZE}))


def test_a_first_recipe_is_proposed(tmp_path: Path) -> None:
    """The recipe is on standard output, its guesses on standard error; the JSON report has both."""
    save_negation(tmp_path, "neg.onnx")
    recipe, details = pulse("recipe", "neg.onnx"), report("recipe", "neg.onnx")
    assert recipe.stdout.startswith("rate = 16000\n\n[[stage]]\nstft = {")
    assert recipe.stderr.count("note: ") == 2
    assert "the rate of 16000 Hz is a guess" in recipe.stderr
    assert (details["recipe"], len(details["notes"])) == (recipe.stdout, 2)


def test_a_proposed_recipe_is_written_and_runs(tmp_path: Path) -> None:
    save_negation(tmp_path, "neg.onnx")
    pulse("recipe", "neg.onnx", "-o", "first.toml")
    assert (tmp_path / "first.toml").read_text() == pulse("recipe", "neg.onnx").stdout
    x = sound(rate_hz=16_000)
    pulse("run", "first.toml", "in.wav", "out.wav")
    output, _ = soundfile.read("out.wav", dtype="float32")
    np.testing.assert_allclose(output, -x[0], 1e-4, 1e-5)


def test_recipes_that_cannot_be_proposed_are_refused(tmp_path: Path) -> None:
    save_negation(tmp_path, "neg.onnx")
    (tmp_path / "first.toml").touch()
    assert "first.toml: already exists" in refusal("recipe", "neg.onnx", "-o", "first.toml")
    assert "is written as .toml, not .onnx" in refusal("recipe", "neg.onnx", "-o", "first.onnx")
    assert "gone.onnx: no such file" in refusal("recipe", "gone.onnx")


@pytest.fixture
def model_with_recipe(tmp_path: Path) -> tuple[str, Array, Array]:
    """A model with its recipe inside, and its input and output."""
    x, path = sound(), spectral(tmp_path)
    assert pulse("recipe", path, "--embed", "whole.onnx").stdout == ""
    (expected,) = recipe_model(path).run(x).values()
    return "whole.onnx", x, expected


def test_a_model_with_its_recipe_inside_runs(model_with_recipe: tuple[str, Array, Array]) -> None:
    model, _, expected = model_with_recipe
    assert report("run", model, "in.wav", "out.wav")["rate_from"] == "model"
    output, _ = soundfile.read("out.wav", dtype="float32")
    np.testing.assert_allclose(output[: expected.size], expected[0], 1e-4, 1e-5)


def test_every_command_opens_a_model_with_its_recipe_inside(
    model_with_recipe: tuple[str, Array, Array],
) -> None:
    model, _, _ = model_with_recipe
    assert report("check", model, "--pulse", "8", "--length", 700)["proof"]["outcome"] == "equal"
    assert report("bench", model, "--steps", "20", "--rounds", "1")["rate_hz"] == 8000
    assert report("convert", model, "-o", "one.onnx")["written"]["proof"]["outcome"] == "equal"
    assert report("run", "one.onnx", "in.wav", "out.wav")["rate_hz"] == 8000
    assert "outputs: sound" in pulse("dump", model, "--stage", "typed").stdout
    assert "has no file nodes" in refusal("dump", model, "--stage", "load")


def test_an_embedded_recipe_is_printed(model_with_recipe: tuple[str, Array, Array]) -> None:
    recipe = pulse("recipe", model_with_recipe[0])
    assert 'model = "."' in recipe.stdout
    assert "holds this recipe in its metadata" in recipe.stderr


def test_the_first_recipe_of_a_model_is_embedded(tmp_path: Path) -> None:
    sound()
    save_negation(tmp_path, "plain.onnx")
    assert "the rate of 16000 Hz is a guess" in pulse("recipe", "plain.onnx", "--embed", "first.onnx").stderr
    assert report("run", "first.onnx", "in.wav", "out.wav")["rate_hz"] == 16_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("plain.onnx --embed first.onnx", "first.onnx: already exists"),
        ("plain.onnx --embed plain.onnx", "plain.onnx: is the input"),
        ("plain.onnx --embed x.toml", "a model is written as .onnx, not .toml"),
        ("plain.onnx --embed x.onnx -o x.toml", "give one of them"),
        ("recipe.toml", "is already a recipe"),
        ("plain.onnx plain.onnx plain.onnx", "3 models: a recipe is proposed for one or two"),
        ("recipe.toml --embed gone/x.onnx", "cannot be written"),
        ("plain.onnx plain.onnx --embed x.onnx", "names 2 models"),
        ("broken.toml --embed x.onnx", "x.onnx: the recipe in its metadata: stage 4 (cmvn)"),
    ],
)
def test_recipes_that_cannot_be_embedded_are_refused(arguments: str, message: str, tmp_path: Path) -> None:
    save_negation(tmp_path, "plain.onnx")
    (tmp_path / "first.onnx").write_bytes(b"")
    text = spectral(tmp_path).read_text()
    (tmp_path / "broken.toml").write_text(f'{text}[[stage]]\ncmvn = {{ path = "gone.ark" }}\n')
    assert message in refusal("recipe", *arguments.split())
    assert not list(tmp_path.glob("*x.onnx"))


def test_an_exported_model_describes_itself(tmp_path: Path) -> None:
    """Its title and rate, whatever its file is called; a title that is none does not count."""
    import onnx

    sound()
    path = spectral(tmp_path)
    path.write_text('title = "cleaner"\n' + path.read_text())
    report("convert", path, "-o", "one.onnx")
    details = report("run", "one.onnx", "in.wav", "out.wav")
    assert (details["model"], details["rate_hz"], details["rate_from"]) == ("cleaner", 8000, "model")
    assert report("run", "one.onnx", "in.wav", "out.wav", "--live")["setup"]["model"] == "cleaner"
    model = onnx.load("one.onnx")
    next(entry for entry in model.metadata_props if entry.key == "title").value = "../up\n"
    onnx.save(model, "two.onnx")
    assert report("run", "two.onnx", "in.wav", "out.wav")["model"] == "two"


def test_a_recipe_of_two_models_is_proposed(tmp_path: Path) -> None:
    """The proposal has the stage between them, by their sizes."""
    save_model(tmp_path, "first.onnx", models.build([node("Neg", "x", "y")], {"x": SIZE}, {"y": SIZE}))
    size = [1, "T", 512]
    save_model(tmp_path, "second.onnx", models.build([node("Neg", "x", "y")], {"x": size}, {"y": size}))
    recipe = pulse("recipe", "first.onnx", "second.onnx", "-o", "both.toml")
    assert (
        "the frames of second.onnx are assumed to be those whose spectrum first.onnx changes" in recipe.stderr
    )
    x = sound(rate_hz=16_000)
    pulse("run", "both.toml", "in.wav", "out.wav")
    output, _ = soundfile.read("out.wav", dtype="float32")
    np.testing.assert_allclose(output[512:1_024], 4 * x[0, 128:640], 1e-3, 1e-4)
