"""The settings of a server: values that no server could run with are refused when the file is read."""

from pathlib import Path

import pytest

from pulse.errors import InputError
from streaming.serve.settings import ServerSettings, read_settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("threads = -1", "threads = -1: must be above 0"),
        ("threads = 0", "threads = 0: must be above 0"),
        ("budget = nan", "budget = nan: must be above 0"),
        ("keep_s = 0", "keep_s = 0: must be above 0"),
        ("checkpoint_s = -1", "checkpoint_s = -1: must be at least 0"),
        ("checkpoint_s = inf", "checkpoint_s = inf: must be at least 0, and finite"),
        ("drain_s = -5", "drain_s = -5: must be at least 0"),
        ("[limits]\nspeed = nan", "limits.speed = nan: must be above 0"),
        ("[limits]\nidle_s = inf", "limits.idle_s = inf: must be above 0, and finite"),
        ("[[model]]\nstreams = 0", "denoiser: streams = 0: must be above 0"),
        ("[[model]]\nname = 'vad'\npulse = 0", "vad: pulse = 0: must be above 0"),
        ("[[model]]\nrate = -8000", "denoiser: rate = -8000: must be above 0"),
        ("model = []", "the server's file lists no model; add [[model]], or leave the file out"),
    ],
)
def test_values_out_of_range_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "server.toml"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        read_settings(path)
    assert str(error.value).startswith(f"{path}: {message}")


def test_no_time_between_checkpoints_is_one_in_each_pulse() -> None:
    assert ServerSettings(checkpoint_s=0.0, drain_s=0.0).checkpoint_s == 0.0
