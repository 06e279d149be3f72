"""The recipes of the documents give what the authors' chains gave, in files and in blocks of any size."""

import csv
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile

import pulse
from bench.models.recipe_pages import FORMAT, PUBLISHED, lay_out_recipe, recipes
from pulse.front import FUNCTIONS
from pulse.program.program import Program
from pulse.recipes import model_stages
from streaming import Session
from streaming.events import Segments
from tests.agreement import assert_close
from tests.pulse.chunks.models import Array
from tests.pulse.recipes.references import REFERENCES, VALUES
from tests.shared import shared_path
from tests.streaming.command import pulse as command

pytestmark = pytest.mark.usefixtures("working_folder")


def beside_its_models(name: str, folder: Path) -> Path:
    """A recipe of the page, next to the files that it names."""
    return lay_out_recipe(name, folder, shared_path("models").parent)


def read_values(path: str) -> Array:
    """A table without its column of times, [frames, values]."""
    with open(path) as file:
        return np.array(
            [[float(value) for value in row[1:]] for row in list(csv.reader(file))[1:]], np.float32
        )


@pytest.fixture(scope="module")
def program_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Program]:
    """Gives the program of a recipe of the page, the same each time."""
    return cache(lambda name: pulse.stream(beside_its_models(name, tmp_path_factory.mktemp("recipe"))))


@pytest.mark.parametrize("name", REFERENCES)
def test_the_command_line_gives_the_reference(tmp_path: Path, name: str) -> None:
    """``pulse run RECIPE in.wav OUT``."""
    x, expected = REFERENCES[name]()
    path = beside_its_models(name, tmp_path)
    soundfile.write("in.wav", x, 16_000, subtype="FLOAT")
    if name in VALUES:
        command("run", path, "in.wav", "out.csv")
        assert_close(read_values("out.csv"), expected.reshape(len(expected), -1), share=1e-4)
    else:
        command("run", path, "in.wav", "out.wav")
        assert_close(soundfile.read("out.wav", dtype="float32")[0], expected, share=1e-4)


@pytest.mark.parametrize("name", REFERENCES)
def test_recipes_take_blocks_of_any_size(program_of: Callable[[str], Program], name: str) -> None:
    x, expected = REFERENCES[name]()
    session = Session(program_of(name))
    rng, start = np.random.default_rng(len(name)), 0
    parts: list[Array] = []
    while start < len(x):
        frames = int(rng.integers(1, 3_000))
        ready, *_ = session.push(x[None, start : start + frames]).values()
        parts.append(ready.ravel())
        start += frames
    rest, *_ = session.flush().values()
    assert_close(np.concatenate([*parts, rest.ravel()]), expected.ravel(), share=1e-4)


@pytest.mark.parametrize("name", REFERENCES)
def test_the_page_has_the_delay(program_of: Callable[[str], Program], name: str) -> None:
    """The delay is in samples of the sound, without those of a pulse."""
    (row,) = [row for row in PUBLISHED.read_text().splitlines() if row.startswith("|") and f"`{name}`" in row]
    port = program_of(name).outputs[0]
    assert port.delay / port.rate == int(row.split("|")[-2])


@pytest.mark.parametrize(
    ("name", "rules", "seconds"), [("fireredvad.toml", "fireredvad", 0.01), ("silero.toml", "silero", 0.032)]
)
def test_events_of_the_page_equal_the_authors(tmp_path: Path, name: str, rules: str, seconds: float) -> None:
    """Speech of the author's probabilities: runs at or above a half, and by the rules that have his name."""
    x, expected = REFERENCES[name]()
    path = beside_its_models(name, tmp_path)
    soundfile.write("in.wav", x, 16_000, subtype="FLOAT")

    def times_of(kind: str) -> list[list[str]]:
        command("run", path, "in.wav", "out.csv", "--events", kind)
        with open("out.csv") as file:
            return [row[:2] for row in list(csv.reader(file))[1:]]

    edges = np.flatnonzero(np.diff(np.concatenate([[False], expected >= 0.5, [False]]).astype(int)))
    runs = [[f"{edge * seconds:.6f}" for edge in pair] for pair in edges.reshape(-1, 2)]
    assert times_of("segments") == runs
    assert runs
    detector = getattr(Segments, rules)(Fraction(1) / Fraction(str(seconds)))
    events = detector.push(expected) + detector.flush()
    assert times_of(rules) == [[f"{event.start_s:.6f}", f"{event.end_s:.6f}"] for event in events]


def test_the_pages_are_complete() -> None:
    """All recipes have references; all options of models and all functions are named."""
    assert set(recipes()) == set(REFERENCES)
    text = FORMAT.read_text()
    assert [name for name in model_stages.OPTIONS if f"`{name}`" not in text] == []
    table = text.partition("| functions | what they compute |")[2].partition("\n\n")[0]
    named = {
        name
        for row in table.splitlines()
        for name in re.findall(r"`(\w+)`", row.split("|")[1] if "|" in row else "")
    }
    assert named == set(FUNCTIONS)
