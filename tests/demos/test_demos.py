"""The demos run, and say what they should."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "demos" / name), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_denoise_blocks(tmp_path: Path) -> None:
    result = run("denoise_blocks.py", "--out", str(tmp_path / "out.wav"))
    assert result.returncode == 0, result.stderr
    difference = float(result.stdout.rsplit(" ", 1)[1])
    assert difference < 1e-5
    assert (tmp_path / "out.wav").stat().st_size > 100_000


@pytest.mark.parametrize(("ahead", "delay"), [(0, 0), (2, 1), (4, 2)])
def test_write_a_model(ahead: int, delay: int) -> None:
    result = run("write_a_model.py", "--ahead", str(ahead))
    assert result.returncode == 0, result.stderr
    assert f"delay {delay}" in result.stdout
    assert "streamed equals offline" in result.stdout
    assert result.stdout.strip().endswith("True")


def test_a_pulse_that_does_not_suit() -> None:
    result = run("write_a_model.py", "--pulse", "3")
    assert result.returncode == 1
    assert "use 2 or 4" in result.stderr
