"""The recipes of docs/recipes.md give what the authors' chains gave, in files and in blocks of any size."""

import csv
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest
import soundfile

import pulse
from pulse.front import FUNCTIONS
from pulse.recipes import models
from streaming import Session
from tests.pulse.chunks.models import Array
from tests.pulse.recipes.page import PAGE, recipes
from tests.pulse.recipes.written import written
from tests.shared import shared
from tests.streaming.command import folder as folder
from tests.streaming.command import pulse as command

REFERENCES = {
    "gtcrn.toml": "gtcrn_center.npz",
    "gtcrn_stream.toml": "gtcrn_center.npz",
    "dtln.toml": "dtln_blocks.npz",
    "fireredvad.toml": "fireredvad_en.npz",
    "fireredvad_cached.toml": "fireredvad_en.npz",
}


def beside_its_models(name: str, folder: Path) -> Path:
    """A recipe of the page, and links to the files that it names."""
    for stage in tomllib.loads(recipes()[name])["stage"]:
        for file in (stage.get("model"), stage.get("cmvn", {}).get("path")):
            if file is not None:
                source = shared(f"{'models' if file.endswith('.onnx') else 'sound'}/{file}")
                (folder / file).symlink_to(source)
    return written(folder, recipes()[name], name)


def reference(name: str) -> tuple[Array, Array]:
    """The samples that went in, and the values that came out."""
    stored = np.load(shared(f"sound/{REFERENCES[name]}"))
    assert int(stored["rate"]) == 16_000
    return stored["in"].ravel().astype(np.float32), stored["out"].ravel()


def close(got: Array, wanted: Array) -> None:
    """To 1e-4 of the largest value."""
    assert got.shape == wanted.shape
    assert np.abs(got - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("name", REFERENCES)
def test_the_command_line(tmp_path: Path, name: str) -> None:
    """``pulse run RECIPE in.wav OUT``."""
    x, wanted = reference(name)
    path = beside_its_models(name, tmp_path)
    soundfile.write("in.wav", x, 16_000, subtype="FLOAT")
    if "vad" in name:
        command("run", path, "in.wav", "out.csv")
        with open("out.csv") as file:
            rows = list(csv.reader(file))[1:]
        close(np.array([float(value) for _, value in rows]), wanted)
    else:
        command("run", path, "in.wav", "out.wav")
        close(soundfile.read("out.wav", dtype="float32")[0], wanted)


@pytest.mark.parametrize("name", REFERENCES)
def test_blocks_of_any_size(tmp_path: Path, name: str) -> None:
    x, wanted = reference(name)
    session = Session(pulse.stream(beside_its_models(name, tmp_path)))
    rng, at = np.random.default_rng(len(name)), 0
    parts: list[Array] = []
    while at < len(x):
        frames = int(rng.integers(1, 3_000))
        (ready,) = session.push(x[None, at : at + frames]).values()
        parts.append(ready.ravel())
        at += frames
    (rest,) = session.flush().values()
    close(np.concatenate([*parts, rest.ravel()]), wanted)


def test_the_page_is_complete() -> None:
    """Every recipe has a reference; every option of models is named, and every function."""
    assert set(recipes()) == set(REFERENCES)
    text = PAGE.read_text()
    assert [name for name in models.OPTIONS if f"`{name}`" not in text] == []
    table = text.partition("| functions | |")[2].partition("\n\n")[0]
    named = {
        name
        for row in table.splitlines()
        for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    assert named == set(FUNCTIONS)
