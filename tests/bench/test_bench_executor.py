"""The bench of the executor measures what it says."""

import pytest
import soundfile

from bench.executor import memory, overhead, sparse_file


def test_a_row():
    row = overhead("denoiser", "saturated", "asyncio", "idle", 0.05)
    assert 0 < row.model_us < row.total_p50_us <= row.total_p99_us
    assert row.loop_us > 0


def test_a_sparse_file_is_a_sound(tmp_path):
    sparse_file(tmp_path / "in.wav", 3)
    info = soundfile.info(tmp_path / "in.wav")
    assert (info.frames, info.samplerate, info.channels) == (3 * 60 * 16_000, 16_000, 1)


@pytest.mark.slow
def test_an_hour_takes_the_memory_of_a_minute():
    (minute, _), (hour, _) = memory(1), memory(60)
    assert hour < minute + 8, f"{minute:.0f} and {hour:.0f} MiB"
