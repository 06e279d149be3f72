"""Libraries for ARM, run under emulation: the frames of the offline model, with vector instructions."""

from pathlib import Path
from shutil import which

import pytest

from pulse.rounding import Rounding
from streaming.builtin import model_path
from streaming.deploy.building import build_model, find_target
from streaming.opening.opened_model import OpenedModel
from streaming.opening.source import load_source
from tests.streaming.deploy.emulated import PROCESSORS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("weights", ["f32", "bf16", "int8"])
@pytest.mark.parametrize("target", PROCESSORS)
def test_the_denoiser_runs(target: str, weights: str, tmp_path: Path) -> None:
    processor = PROCESSORS[target]
    processor.require()
    opened = OpenedModel.of(load_source(model_path()), pulse=160)
    program = opened.compile(rounding=Rounding(weights))
    library = build_model(opened, program, "denoise", find_target(target), tmp_path, checks=True)
    assert not library.math_functions
    assert "within the tolerance" in processor.run_vector(tmp_path, "denoise")
    assert processor.count_vector_instructions(tmp_path / "libdenoise.a") > 50


@pytest.mark.parametrize("target", PROCESSORS)
def test_the_wheel_of_zig_links_the_denoiser(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system has no compiler."""
    processor = PROCESSORS[target]
    emulator = which(processor.emulator)
    if emulator is None:
        pytest.skip(f"{processor.emulator} is not installed")
    pytest.importorskip("ziglang", reason="pip install 'pulse-stream[build]'")
    monkeypatch.setenv("PATH", str(tmp_path))
    opened = OpenedModel.of(load_source(model_path()), pulse=160)
    program = opened.compile()
    library = build_model(opened, program, "denoise", find_target(target), tmp_path, checks=True)
    assert library.toolchain.name == "zig"
    assert library.sizes["libdenoise.so"] < 1_200_000
    (tmp_path / processor.emulator).symlink_to(emulator)
    assert "within the tolerance" in processor.run_vector_of_zig(tmp_path, "denoise")


@pytest.mark.parametrize("target", PROCESSORS)
def test_weights_may_be_a_file_next_to_the_library(target: str, tmp_path: Path) -> None:
    """Mapped by the test program."""
    processor = PROCESSORS[target]
    processor.require()
    opened = OpenedModel.of(load_source(model_path()), pulse=160)
    program = opened.compile()
    build_model(opened, program, "denoise", find_target(target), tmp_path, checks=True, external_weights=True)
    assert (tmp_path / "denoise.weights").stat().st_size == program.weights.size
    assert "within the tolerance" in processor.run_vector(tmp_path, "denoise")
