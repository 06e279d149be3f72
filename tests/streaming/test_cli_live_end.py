"""pulse run --live, however it ends: what was done until then is kept and told."""

import csv

import numpy as np
import pytest
import soundfile

from streaming.builtin import voice_path
from streaming.cli.live import command
from streaming.errors import DeviceError
from tests.streaming.command import folder as folder
from tests.streaming.command import pulse


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of a second that ends by an exception when it is over."""
    soundfile.write(tmp_path / "in.wav", np.zeros(8000, np.float32), 16000)
    follow = command._follow

    def ends(error, code):
        def followed(live, *rest):
            follow(live, *rest)
            raise error

        monkeypatch.setattr(command, "_follow", followed)
        files = ("--frames", "f.csv", "--stats", "s.jsonl", "--record-in", "r.wav")
        return pulse(
            *("run", voice_path(), "in.wav", "--live", "--quiet", "--backend", "numpy", *files), code=code
        )

    return ends


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143), DeviceError("the cable is out")])
def test_all_is_kept_and_told(run, tmp_path, error):
    failed = isinstance(error, DeviceError)
    result = run(error, 2 if failed else 0)
    assert "8,000 in" in result.stdout
    assert result.stderr == ("error: the cable is out\n" if failed else "")
    with (tmp_path / "f.csv").open() as file:
        assert len(list(csv.reader(file))) > 40
    assert soundfile.info(tmp_path / "r.wav").frames == 8000
    assert '"line":"summary"' in (tmp_path / "s.jsonl").read_text().splitlines()[-1]
