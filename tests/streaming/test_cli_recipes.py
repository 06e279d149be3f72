"""The command line takes a recipe wherever it takes a model."""

import csv

import numpy as np
import pytest
import soundfile

from pulse.loading.load import load
from pulse.recipes.whole import recipe_model
from tests.pulse.chunks import models
from tests.pulse.chunks.models import node, noise
from tests.pulse.recipes.written import masked, saved, spectral
from tests.streaming.command import folder as folder
from tests.streaming.command import pulse, refused, report, write_sound

SIZE = [1, 257, "T", 2]
MAKES = pytest.mark.parametrize("make", [spectral, masked])


def sound(frames=2_003, rate_hz=8000):
    """A file of sound, at the rate of ``spectral``."""
    x = (noise(1, frames) / 8).astype(np.float32)
    write_sound("in.wav", x[0], rate_hz, subtype="FLOAT")
    return x


@MAKES
def test_run(tmp_path, make):
    """What is written is what the whole model gives, at the rate that the recipe says."""
    x = sound()
    path = make(tmp_path)
    rate = () if make is spectral else ("--rate", "8000")
    found = report("run", path, "in.wav", "out.wav", *rate)
    got, rate_hz = soundfile.read("out.wav", dtype="float32")
    (wanted,) = recipe_model(path, load).run(x).values()
    assert (rate_hz, found["model"]) == (8000, path.stem)
    assert found["rate_from"] == ("model" if make is spectral else "option")
    np.testing.assert_allclose(got[: wanted.size], wanted[0], 1e-4, 1e-5)


def test_features_as_a_table(tmp_path):
    """A recipe that ends in features: their times follow from the rate and the hop."""
    sound()
    text = (
        "rate = 8000\n[[stage]]\nkaldi_fbank = { num_mel_bins = 20 }\n[[stage]]\nstack = { m = 1, n = 1 }\n"
    )
    (tmp_path / "bank.toml").write_text(text)
    pulse("run", "bank.toml", "in.wav", "bank.csv")
    with open("bank.csv") as file:
        rows = list(csv.reader(file))
    assert (len(rows[0]), len(rows) - 1, rows[2][0]) == (21, (2_003 - 200) // 80 + 1, "0.010000")


@MAKES
def test_check_bench_and_dump(tmp_path, make):
    path = make(tmp_path)
    assert report("check", path, "--pulse", "8")["proof"]["outcome"] == "equal"
    assert report("bench", path, "--pulse", "8", "--steps", "20", "--rounds", "1")["model"] == path.stem
    for stage in ("typed", "decluttered", "pulsed", "program", "account"):
        assert path.stem in pulse("dump", path, "--stage", stage).stdout or stage == "program"
    assert "digraph" in pulse("dump", path, "--stage", "typed", "--dot").stdout
    assert "has no nodes of a file" in refused("dump", path, "--stage", "load")


@MAKES
def test_convert(tmp_path, make):
    """One file with its state in the open, proved, which has the rate of the recipe and gives the same sound."""
    x = sound()
    path = make(tmp_path)
    written = report("convert", path, "--pulse", "8", "-o", "one.onnx")["written"]
    assert written["proof"]["outcome"] == "equal" and written["states"] > 0
    rate = () if make is spectral else ("--rate", "8000")
    assert report("run", "one.onnx", "in.wav", "out.wav", *rate)["rate_hz"] == 8000
    got, _ = soundfile.read("out.wav", dtype="float32")
    (wanted,) = recipe_model(path, load).run(x).values()
    np.testing.assert_allclose(got[: wanted.size], wanted[0], 1e-4, 1e-5)


def test_live(tmp_path):
    """A file as if a microphone gave it."""
    sound(800)
    path = spectral(tmp_path)
    found = report("run", path, "in.wav", "out.wav", "--live")
    assert found["setup"]["model"] == "recipe" and soundfile.info("out.wav").samplerate == 8000


def test_refusals(tmp_path):
    """One line with the file and the stage; options of models belong in the recipe, and are spelled as options."""
    path = spectral(tmp_path)
    assert "leave out --state, and write states in the stage" in refused("check", path, "--state", "none")
    path.write_text("[[stage]]\nstft = { hop = 0 }")
    wanted = f"error: {path}: stage 1 (stft): stft: hop=0 must be a whole number from 1 to 16777216\n"
    assert refused("run", path, "in.wav", "out.wav") == wanted
    assert refused("check", path, "--json") == wanted
    path.write_text('[[stage]]\nmodel = "gone.onnx"')
    assert "gone.onnx: no such file" in refused("convert", path)


def test_a_first_recipe(tmp_path):
    """On standard output, or in a file that is not there yet; what is guessed on standard error; it runs as it is."""
    saved(tmp_path, "gain.onnx", models.build([node("Neg", "x", "y")], {"x": SIZE}, {"y": SIZE}))
    shown = pulse("recipe", "gain.onnx")
    assert shown.stdout.startswith("rate = 16000\n\n[[stage]]\nstft = {")
    assert shown.stderr.count("note: ") == 2 and "the rate of 16000 Hz is a guess" in shown.stderr
    pulse("recipe", "gain.onnx", "-o", "first.toml")
    assert (tmp_path / "first.toml").read_text() == shown.stdout
    assert "first.toml: is there already" in refused("recipe", "gain.onnx", "-o", "first.toml")
    assert "is written as .toml, not .onnx" in refused("recipe", "gain.onnx", "-o", "first.onnx")
    assert "gone.onnx: no such file" in refused("recipe", "gone.onnx")
    found = report("recipe", "gain.onnx")
    assert found["recipe"] == shown.stdout and len(found["notes"]) == 2
    x = sound(rate_hz=16_000)
    pulse("run", "first.toml", "in.wav", "out.wav")
    got, _ = soundfile.read("out.wav", dtype="float32")
    np.testing.assert_allclose(got, -x[0], 1e-4, 1e-5)
