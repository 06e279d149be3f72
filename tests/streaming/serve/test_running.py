"""The models that a server opens."""

import pytest

from pulse.errors import InputError, LoadError

pytest.importorskip("uvicorn", reason="needs the extra serve")

from pathlib import Path

from streaming.builtin import model_path
from streaming.serve.running import open_programs
from streaming.serve.settings import ModelSettings, ServerSettings


@pytest.mark.parametrize(
    ("path", "rate", "rate_hz"),
    [(None, None, 16_000), (model_path(), None, 16_000), (model_path(), 8000, 8000)],
    ids=["built-in", "a file", "its rate"],
)
def test_a_model_is_compiled_for_its_pulse(path: Path | None, rate: int | None, rate_hz: int) -> None:
    settings = ModelSettings(path, pulse=320, rate=rate)
    ((model, program, program_rate_hz),) = open_programs(ServerSettings((settings,)))
    assert model is settings
    assert (program.pulse, program_rate_hz) == (320, rate_hz)


def test_the_default_pulse_is_ten_milliseconds() -> None:
    ((_, program, _),) = open_programs(ServerSettings())
    assert program.pulse == 160


def test_a_missing_model_is_named() -> None:
    settings = ServerSettings((ModelSettings(Path("missing.onnx")),))
    with pytest.raises(LoadError, match=r"missing\.onnx"):
        open_programs(settings)


def test_a_folder_without_the_model_of_browsers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no worklet\.js; pulse build --target wasm32"):
        ModelSettings(web=tmp_path)
