"""The built-in denoiser as a program that a wheel carries: the same stream, and only of the very same sources."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

import pulse
from pulse.errors import PulseWarning
from pulse.jit import notice
from pulse.program.program import Program
from streaming import Session
from streaming.builtin import SAMPLE_RATE_HZ, model_path, noisy_path
from streaming.builtin import program as builtin_program
from streaming.builtin.program import INDEX, PROGRAM, find_packaged_program
from streaming.cli import model_opening
from streaming.cli.options import ModelOptions, ProgramOptions


@pytest.fixture(scope="module")
def built_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return builtin_program.build(tmp_path_factory.mktemp("program")).parent


@pytest.fixture
def folder(built_program: Path, tmp_path: Path) -> Path:
    for name in (PROGRAM, INDEX):
        (tmp_path / name).write_bytes((built_program / name).read_bytes())
    return tmp_path


def stream_bytes(program: pulse.Program) -> bytes:
    session = Session(program)
    sound = soundfile.read(noisy_path(), dtype="float32")[0][None, :8000]
    parts = [session.push(sound)["denoised"], session.flush()["denoised"]]
    return np.concatenate(parts, 1).tobytes()


def test_the_packaged_program_equals_the_compiled_model(built_program: Path) -> None:
    packaged, compiled = (
        find_packaged_program(built_program),
        pulse.stream(model_path(), SAMPLE_RATE_HZ // 100),
    )
    assert packaged is not None
    assert packaged.pulse == compiled.pulse
    assert stream_bytes(packaged) == stream_bytes(compiled)


def test_the_index_lists_sources_of_the_program(built_program: Path) -> None:
    sources = json.loads((built_program / INDEX).read_text())["sources"]
    assert {"streaming/builtin/denoise.onnx", "pulse/pulsify/schedule.py", "pulse/dim/tdim.py"} <= set(
        sources
    )
    assert not any(Path(name).is_absolute() for name in sources)


def test_a_program_of_other_sources_is_not_used(folder: Path) -> None:
    index = json.loads((folder / INDEX).read_text())
    sources = [name for name in index["sources"] if name != "pulse/pulsify/schedule.py"]
    (folder / INDEX).write_text(json.dumps({**index, "sources": sources}))
    assert find_packaged_program(folder) is None
    (folder / INDEX).write_text(json.dumps({**index, "sources": [*index["sources"], "pulse/none.py"]}))
    assert find_packaged_program(folder) is None


def test_an_absent_program_is_not_packaged(folder: Path) -> None:
    (folder / INDEX).unlink()
    assert find_packaged_program(folder) is None


def test_a_damaged_program_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notice, "warned", set())
    content = bytearray((folder / PROGRAM).read_bytes())
    content[-1] ^= 1
    (folder / PROGRAM).write_bytes(content)
    with pytest.warns(PulseWarning, match="checksum is wrong.*install the package again"):
        assert find_packaged_program(folder) is None


@pytest.fixture
def packaged_program(built_program: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The built program, carried by the package during the test."""
    program = find_packaged_program(built_program)
    monkeypatch.setattr(model_opening, "find_packaged_program", lambda: program)
    return program


def test_the_program_is_opened_in_place_of_the_built_in_model(packaged_program: Program) -> None:
    opened = model_opening.open_model_or_packaged(None, ModelOptions(), ProgramOptions())
    assert opened.model.program is packaged_program
    assert (opened.title, opened.rate_hz, opened.rate_from) == ("denoise", SAMPLE_RATE_HZ, "builtin")


@pytest.mark.usefixtures("packaged_program")
@pytest.mark.parametrize(
    ("path", "options", "backend", "weights"),
    [
        (model_path(), ModelOptions(), "numba", None),
        (None, ModelOptions(pulse=320), "numba", None),
        (None, ModelOptions(), "numpy", None),
        (None, ModelOptions(), "numba", "bf16"),
    ],
    ids=["a model", "a pulse", "a backend", "weights"],
)
def test_an_option_that_asks_for_another_program_opens_the_model(
    path: Path | None, options: ModelOptions, backend: str, weights: str | None
) -> None:
    assert (
        model_opening.open_model_or_packaged(
            path, options, ProgramOptions(weights, backend=backend)
        ).model.program
        is None
    )
