"""WAV files that outgrow their size fields become RF64; smaller ones stay."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError
from pulse.facts import Array
from streaming.audio import rf64
from streaming.audio.files import AudioReader, AudioWriter
from tests.noise import uniform_noise
from tests.streaming.file_size_limit import limit_files

FORMS = [("FLOAT", 1), ("FLOAT", 2), ("FLOAT", 7), ("PCM_16", 1), ("PCM_16", 2), ("PCM_24", 1), ("PCM_24", 3)]


def write_sound(path: Path, x: Array, encoding: str) -> Path:
    with AudioWriter(path, 16000, x.shape[1], encoding) as writer:
        for piece in np.array_split(x, 7):
            writer.write(piece)
    return path


@pytest.mark.parametrize(("encoding", "channels"), FORMS)
@pytest.mark.parametrize("piece", [64, rf64.MAX_PIECE_BYTES])
def test_files_beyond_the_sizes_of_wav_become_rf64(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, channels: int, piece: int
) -> None:
    x = uniform_noise(3001, channels)
    small = write_sound(tmp_path / "small.wav", x, encoding)
    monkeypatch.setattr(rf64, "MAX_CHUNK_BYTES", small.stat().st_size - rf64.CHUNK_HEAD_BYTES - 1)
    monkeypatch.setattr(rf64, "MAX_PIECE_BYTES", piece)
    large = write_sound(tmp_path / "large.wav", x, encoding)
    head, size = large.read_bytes()[:80], large.stat().st_size
    assert struct.unpack("<4sI4s4sIQ", head[:28]) == (b"RF64", 0xFFFF_FFFF, b"WAVE", b"ds64", 28, size - 8)
    assert (encoding == "FLOAT") == (size == small.stat().st_size), "floats are done in place"
    assert soundfile.info(large).format == "RF64"
    with AudioReader(large) as reader:
        assert (reader.frames, reader.rate_hz, reader.encoding) == (3001, 16000, encoding)
    np.testing.assert_array_equal(soundfile.read(large)[0], soundfile.read(small)[0])


@pytest.mark.parametrize(
    ("encoding", "dtype"), [("FLOAT", "float32"), ("PCM_16", "int16"), ("PCM_24", "int32")]
)
def test_another_program_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, dtype: str
) -> None:
    wavfile = pytest.importorskip("scipy.io.wavfile")
    x = uniform_noise(3001, 2)
    expected = soundfile.read(write_sound(tmp_path / "small.wav", x, encoding), dtype=dtype)[0]
    monkeypatch.setattr(rf64, "MAX_CHUNK_BYTES", 1000)
    rate, samples = wavfile.read(write_sound(tmp_path / "large.wav", x, encoding))
    assert (rate, samples.dtype) == (16000, np.dtype(dtype))
    np.testing.assert_array_equal(samples, expected)


@pytest.mark.parametrize(("encoding", "channels"), FORMS)
def test_a_file_of_the_largest_size_is_a_usual_wav_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, channels: int
) -> None:
    """The file is as libsndfile writes it, except for the time that it stores next to peaks."""
    x = np.rint(uniform_noise(3001, channels) * (1 << 15)) / (1 << 15)  # what each encoding holds as it is
    soundfile.write(tmp_path / "usual.wav", x, 16000, encoding)
    usual = (tmp_path / "usual.wav").read_bytes()
    monkeypatch.setattr(rf64, "MAX_CHUNK_BYTES", len(usual) - rf64.CHUNK_HEAD_BYTES)
    content = write_sound(tmp_path / "large.wav", x, encoding).read_bytes()
    at = usual.find(b"PEAK") + 12 if encoding == "FLOAT" else 0
    assert content[:at] + content[at + 4 :] == usual[:at] + usual[at + 4 :]


def test_a_file_beyond_4_gib_is_read(tmp_path: Path) -> None:
    """The file has a hole, so it needs no space."""
    x = uniform_noise(1000, 2)
    path = write_sound(tmp_path / "large.wav", x, "FLOAT")
    frames = (5 << 30) // 8
    start = path.stat().st_size - x.nbytes
    os.truncate(path, start + 8 * frames)
    with path.open("r+b") as file:
        file.seek(-x.nbytes, 2)
        file.write(x.tobytes())
    before = path.stat().st_blocks
    assert rf64.convert_to_rf64(path)
    assert path.stat().st_blocks <= before + 8
    with soundfile.SoundFile(path) as sound:
        assert (sound.frames, sound.format) == (frames, "RF64")
        np.testing.assert_array_equal(sound.read(1000, dtype="float32"), x)
        sound.seek(frames - 1000)
        np.testing.assert_array_equal(sound.read(dtype="float32"), x)


@pytest.mark.parametrize("free_bytes", [0, 1])
@pytest.mark.parametrize("encoding", ["PCM_16", "PCM_24"])
def test_a_full_disk_leaves_a_wav_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, free_bytes: int
) -> None:
    """The error is reported and the file stays, whether some bytes fit or none."""
    x = uniform_noise(3001, 1)
    usual = write_sound(tmp_path / "usual.wav", x, encoding).read_bytes()
    monkeypatch.setattr(rf64, "MAX_CHUNK_BYTES", 1000)
    monkeypatch.setattr(rf64, "MAX_PIECE_BYTES", 64)
    full = r"a\.wav: cannot be written \(File too large\); free some space"
    with pytest.raises(InputError, match=full), limit_files(len(usual) + free_bytes):
        write_sound(tmp_path / "a.wav", x, encoding)
    assert (tmp_path / "a.wav").read_bytes() == usual
    assert len(list(tmp_path.iterdir())) == 2
