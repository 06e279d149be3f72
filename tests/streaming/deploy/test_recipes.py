"""Libraries built from the recipes of the pages compute the frames of Python, here and on another processor."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from bench.models.recipe_pages import lay_out_recipe, recipes
from docs.tables.shared_folder import SHARED_FOLDER
from pulse.c_library.library_contents import library_contents
from pulse.c_library.vector import make_vector
from pulse.jit.levels import TARGETS
from streaming.deploy.building import build_model, find_target
from streaming.deploy.built_library import PROVIDED, build_library
from streaming.deploy.elf import undefined_symbols
from streaming.opening.opened_model import OpenedModel
from streaming.opening.source import load_source
from tests.shared import shared_path
from tests.streaming.deploy.building import HERE
from tests.streaming.deploy.emulated import PROCESSORS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(HERE is None, reason="no level for this system")]
EMULATED_RECIPES = (
    "gtcrn",
    "dtln",
    "gtcrn_stream",
    "fastenhancer_b",
    "dtln_tflite",
    "okay_nabu",
    "kws_GRU_S",
    "fireredvad",
    "fastenhancer_t",
    "silero",
    "swift_f0",
)


def recipe(name: str, folder: Path) -> Path:
    """A recipe of the pages with its files; skips where one is missing."""
    shared_path("models")
    try:
        return lay_out_recipe(f"{name}.toml", folder, SHARED_FOLDER)
    except FileNotFoundError as error:
        pytest.skip(f"{error} is not here")


@pytest.mark.parametrize("name", [name.removesuffix(".toml") for name in recipes()])
def test_a_library_gives_the_bits_of_python(name: str, tmp_path: Path) -> None:
    path = recipe(name, tmp_path)
    process = subprocess.run(
        [sys.executable, "-m", "tests.streaming.deploy.same_bits", str(tmp_path / "built"), str(path)],
        env={**os.environ, "PULSE_LEVEL": str(HERE)},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    print(process.stdout)


@pytest.mark.parametrize("name", EMULATED_RECIPES)
def test_a_library_gives_the_frames_of_python_on_arm(name: str, tmp_path: Path) -> None:
    processor = PROCESSORS["aarch64"]
    processor.require()
    opened = OpenedModel.of(load_source(recipe(name, tmp_path)))
    program = opened.compile()
    build_model(opened, program, "model", find_target("aarch64"), tmp_path / "built", checks=True)
    print(processor.run_vector(tmp_path / "built", "model"))


@pytest.mark.parametrize("name", [name.removesuffix(".toml") for name in recipes()])
def test_a_library_calls_memcpy_and_its_like_only(name: str, tmp_path: Path) -> None:
    """On every target: no function of libm."""
    program = OpenedModel.of(load_source(recipe(name, tmp_path))).compile()
    contents, vector = library_contents(program, "model", name, None), make_vector(program, None)
    for target in TARGETS.values():
        folder = tmp_path / target.name
        library = build_library(contents, target, vector, folder, checks=False)
        assert not library.math_functions
        if target.machine != "wasm32":
            needed = undefined_symbols((folder / "libmodel.so").read_bytes())
            assert needed is not None
            assert needed <= PROVIDED
        elif which("node"):
            code = "const made = new WebAssembly.Module(require('fs').readFileSync(process.argv[1]));"
            code += "console.log(WebAssembly.Module.imports(made).length)"
            command = ["node", "-e", code, str(folder / "module.wasm")]
            assert subprocess.run(command, capture_output=True, check=True).stdout.strip() == b"0"
