"""The size of libraries: the built-in denoiser, and GTCRN with its spectra; ``bench.library`` times them."""

from pathlib import Path

import pytest

from bench.models.recipe_pages import lay_out_recipe
from docs.tables.shared_folder import SHARED_FOLDER
from streaming.builtin import model_path
from streaming.deploy.building import build_model, find_target
from streaming.opening.opened_model import OpenedModel
from streaming.opening.source import load_source
from tests.shared import shared_path
from tests.streaming.deploy.building import HERE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(HERE is None, reason="no level for this system")]
MODELS = {"denoise": 1_200_000, "gtcrn": 600_000}
"""Name -> the most bytes of its library."""


def model(name: str, folder: Path) -> Path:
    """The file of a model; skips where it is missing."""
    if name == "denoise":
        return model_path()
    shared_path("models")
    return lay_out_recipe(f"{name}.toml", folder, SHARED_FOLDER)


@pytest.mark.parametrize("name", MODELS)
def test_a_library_is_small(name: str, tmp_path: Path) -> None:
    opened = OpenedModel.of(load_source(model(name, tmp_path)))
    program = opened.compile()
    build_model(opened, program, name, find_target(str(HERE)), tmp_path / "built", checks=True)
    assert 100_000 < (tmp_path / "built" / f"lib{name}.so").stat().st_size < MODELS[name]
