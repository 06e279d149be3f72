"""Libraries for ARM, run under emulation: the frames of the offline model, with vector instructions."""

from pathlib import Path

import pytest

from streaming.builtin import model_path
from streaming.cli.model import open_model
from streaming.cli.options import ModelOptions
from streaming.deploy.building import build_model, find_target
from tests.streaming.deploy.emulated import PROCESSORS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("weights", ["f32", "bf16", "int8"])
@pytest.mark.parametrize("target", PROCESSORS)
def test_the_denoiser_runs(target: str, weights: str, tmp_path: Path) -> None:
    processor = PROCESSORS[target]
    processor.require()
    opened = open_model(model_path(), ModelOptions())
    program = opened.compile(160, "numba", weights)
    built = build_model(opened, program, "denoise", find_target(target), tmp_path, True)
    assert not built.needs
    assert "within the tolerance" in processor.run_vector(tmp_path, "denoise")
    assert processor.count_vector_instructions(tmp_path / "libdenoise.a") > 50
