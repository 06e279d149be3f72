"""Audio of several channels in an executor: files and byte streams in, files and byte streams out."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from streaming.executor import AudioFileSink, Executor, PcmSink
from tests.agreement import assert_close
from tests.noise import quiet_noise
from tests.streaming.channel_mixer import LAYOUTS, mixed_sound, mixing_program
from tests.streaming.executor.byte_sink import ByteSink

pytestmark = pytest.mark.anyio
RATE_HZ = 16000
ROUNDING = 36 * 2**-24
"""The rounding error of 36 multiply-adds, of the largest value."""


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_a_file_of_several_channels_becomes_one(layout: str, tmp_path: Path) -> None:
    sound = np.stack([quiet_noise(2500, seed) for seed in range(2)], axis=1)
    soundfile.write(tmp_path / "in.wav", sound, RATE_HZ, subtype="FLOAT")
    async with Executor(mixing_program(2, 3, layout), rate_hz=RATE_HZ) as executor:
        await executor.run(tmp_path / "in.wav", AudioFileSink(tmp_path / "out.wav", encoding="float"))
        await executor.run(
            tmp_path / "in.wav", AudioFileSink(tmp_path / "one.wav", output="y:1", encoding="float")
        )
        pcm = ByteSink()
        await executor.run(tmp_path / "in.wav", PcmSink(pcm, "f32"))
    expected = mixed_sound(sound, 3)
    assert_close(soundfile.read(tmp_path / "out.wav", dtype="float32")[0], expected, share=ROUNDING)
    assert_close(soundfile.read(tmp_path / "one.wav", dtype="float32")[0], expected[:, 1], share=ROUNDING)
    assert_close(np.frombuffer(pcm.data, np.float32).reshape(-1, 3), expected, share=ROUNDING)


async def test_clipped_samples_are_counted_by_channel(tmp_path: Path) -> None:
    sound = np.stack([quiet_noise(400, seed) for seed in range(2)], axis=1)
    soundfile.write(tmp_path / "in.wav", sound, RATE_HZ, subtype="FLOAT")
    expected, sink = mixed_sound(sound, 2), PcmSink(ByteSink(), "s16")
    loud = 1.5 / np.abs(expected).max(axis=0).min()
    soundfile.write(tmp_path / "loud.wav", sound * loud, RATE_HZ, subtype="FLOAT")
    async with Executor(mixing_program(2, 2), rate_hz=RATE_HZ) as executor:
        await executor.run(tmp_path / "loud.wav", sink)
    assert sink.clipping is not None
    assert sink.clipping.samples == (np.abs(expected * loud) > 1).sum(axis=0).tolist()
    assert min(sink.clipping.samples) > 0
