"""Audio files: read in blocks, written whole or not at all, errors in one line."""

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError, PulseWarning
from streaming.audio.channels import Channels
from streaming.audio.files import AudioReader, AudioWriter
from tests.noise import uniform_noise
from tests.streaming.file_size_limit import limit_files


@pytest.mark.parametrize("name", ["a.wav", "a.flac", "A.WAV"])
def test_written_sound_is_read_back(tmp_path: Path, name: str) -> None:
    """Within a step of 16-bit samples."""
    x = uniform_noise(30_000, 2)
    with AudioWriter(tmp_path / name, 44100, 2) as writer:
        for block in np.split(x, [1, 500, 500, 20_000]):
            writer.write(block)
    with AudioReader(tmp_path / name) as reader:
        assert (reader.rate_hz, reader.channels, reader.frames) == (44100, 2, 30_000)
        assert reader.duration_s == 30_000 / 44100
        blocks = list(reader)
    assert {block.dtype for block in blocks} == {np.dtype(np.float32)}
    assert len(blocks) > 1
    np.testing.assert_allclose(np.concatenate(blocks), x, atol=1 / 32768)


@pytest.mark.parametrize(
    ("name", "subtype", "encoding"),
    [
        ("a.wav", None, "PCM_16"),
        ("a.wav", "PCM_24", "PCM_24"),
        ("a.wav", "FLOAT", "FLOAT"),
        ("a.flac", "FLOAT", "PCM_24"),
        ("a.wav", "DOUBLE", "DOUBLE"),
        ("a.wav", "PCM_32", "PCM_32"),
        ("a.aif", "PCM_32", "PCM_32"),
        ("a.w64", "ALAC_24", "PCM_24"),
        ("a.mp3", "PCM_24", "MPEG_LAYER_III"),
        ("a.opus", None, "OPUS"),
        ("a.flac", "PCM_24", "PCM_24"),
        ("a.ogg", "PCM_16", "VORBIS"),
    ],
)
def test_the_encoding_is_kept_where_the_format_has_it(
    tmp_path: Path, name: str, subtype: str | None, encoding: str
) -> None:
    with AudioWriter(tmp_path / name, 16000, 1, subtype) as writer:
        writer.write(uniform_noise(2000))
    assert soundfile.info(tmp_path / name).subtype == encoding


@pytest.mark.parametrize(
    ("name", "encoding", "clipped", "expected"),
    [
        ("i.wav", None, 2, [0.5, 1, -1, 0]),
        ("l.wav", "PCM_32", 2, [0.5, 1, -1, 0]),
        ("f.wav", "FLOAT", 0, [0.5, 1.5, -2, np.nan]),
    ],
    ids=["integers", "32-bit integers", "floats"],
)
def test_clipped_samples_are_counted_and_a_float_file_keeps_them(
    tmp_path: Path, name: str, encoding: str | None, clipped: int, expected: list[float]
) -> None:
    """NaN is silence in integers."""
    x = np.array([[0.5], [1.5], [-2.0], [np.nan]], np.float32)
    with AudioWriter(tmp_path / name, 16000, 1, encoding) as writer:
        writer.write(x)
    assert writer.clipping.total == clipped
    np.testing.assert_allclose(soundfile.read(tmp_path / name)[0], expected, atol=1e-4)


def test_a_failed_run_keeps_the_old_sound_file(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), AudioWriter(path, 16000, 1) as writer:
        writer.write(uniform_noise(100))
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "encoding"), [("a.wav", "FLOAT"), ("a.wav", "PCM_16"), ("a.flac", None), ("a.ogg", None)]
)
def test_sound_writers_report_a_full_disk(small_disk: Path, name: str, encoding: str | None) -> None:
    """The error is raised once with the system's reason, and earlier samples are kept."""
    x = uniform_noise(200_000)
    (small_disk / "other").write_bytes(bytes(16 << 10))
    writer = AudioWriter(small_disk / name, 16000, 1, encoding)
    full = rf"{name}: cannot be written \(No space left on device\); free some space"
    with pytest.raises(InputError, match=full):
        for piece in np.split(x, 200):
            writer.write(piece)
    (small_disk / "other").unlink()
    with pytest.raises(InputError, match=full):  # even if there is room again: no hole
        writer.write(x)
    writer.close()
    assert (small_disk / name).stat().st_size == 48 << 10
    if not name.endswith(".wav"):
        return
    written = soundfile.read(small_disk / name, dtype="float32", always_2d=True)[0]
    assert 0 <= len(written) - writer.samples < 1000
    np.testing.assert_allclose(written, x[: len(written)], atol=0 if encoding == "FLOAT" else 1 / 32768)


def test_a_disk_full_at_the_start_leaves_no_file(small_disk: Path) -> None:
    """The refused file is removed."""
    (small_disk / "large").write_bytes(bytes(64 << 10))
    with pytest.raises(InputError, match=r"a\.wav: cannot be written \(No space left on device\)"):
        AudioWriter(small_disk / "a.wav", 16000, 1)
    assert [path.name for path in small_disk.iterdir()] == ["large"]


def test_a_disk_full_at_the_end_is_an_error(tmp_path: Path) -> None:
    """The file lacks the samples that libsndfile buffers until it closes."""
    writer = AudioWriter(tmp_path / "a.ogg", 16000, 1)
    writer.write(uniform_noise(8000))
    size = next(tmp_path.iterdir()).stat().st_size
    with (
        limit_files(size + 10),
        pytest.raises(InputError, match=r"a\.ogg: cannot be written \(File too large\)"),
    ):
        writer.close()
    assert (tmp_path / "a.ogg").stat().st_size == size + 10


def damaged_file(tmp_path: Path, name: str) -> Path:
    path = tmp_path / f"{name}.wav"
    if name == "empty":
        path.write_bytes(b"")
    elif name == "no-samples":
        soundfile.write(path, np.zeros((0, 1)), 16000)
    elif name == "text":
        path.write_text("these are words")
    elif name == "folder":
        path.mkdir()
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "no such file; check the path"),
        ("empty", "the file is empty"),
        ("no-samples", "the file has no samples"),
        (
            "text",
            r"cannot be read as audio \(.*\); give \.wav, \.flac, \.ogg.* or another format of libsndfile",
        ),
        ("folder", "is a folder"),
    ],
    ids=["missing", "empty", "no samples", "text", "folder"],
)
def test_files_without_sound_are_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=f"{name}.wav: {message}") as caught:
        AudioReader(damaged_file(tmp_path, name))
    assert "\n" not in str(caught.value)


def test_pipes_are_not_read_as_files(tmp_path: Path) -> None:
    """A file is read twice, and a pipe cannot be."""
    os.mkfifo(tmp_path / "pipe.wav")
    with pytest.raises(InputError, match=r"pipe\.wav: is a pipe or a device"):
        AudioReader(tmp_path / "pipe.wav")


def test_a_file_cut_short_is_refused_where_it_ends(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.flac", tmp_path / "cut.flac"
    soundfile.write(whole, uniform_noise(50_000), 16000)
    cut.write_bytes(whole.read_bytes()[:40_000])
    with AudioReader(cut) as reader, pytest.raises(InputError, match=r"damaged at sample .* of 50000"):
        list(reader)


@pytest.mark.parametrize("name", ["a.wav", "a.aiff", "a.au", "a.w64"])
def test_a_header_that_exceeds_the_file_is_reported(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    soundfile.write(path, uniform_noise(8000), 16000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 4])
    with pytest.warns(PulseWarning, match=r"truncated, 75% .* is missing; 1,9\d\d samples \(0\.12\d s\)"):
        reader = AudioReader(path)
    with reader:
        assert sum(len(block) for block in reader) == reader.frames


@pytest.mark.parametrize("announced", [0xFFFFFFFF, 0x7FFFFFFF])
def test_a_header_of_unknown_length_is_not_a_cut(tmp_path: Path, announced: int) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, uniform_noise(800), 16000)
    content = bytearray(path.read_bytes())
    at = content.index(b"data") + 4
    content[at : at + 4] = announced.to_bytes(4, "little")
    path.write_bytes(content)
    with AudioReader(path) as reader:  # any warning is an error here
        assert reader.frames == 800


def test_nan_names_the_sample(tmp_path: Path) -> None:
    x = uniform_noise(40_000)
    x[30_001] = np.nan
    soundfile.write(tmp_path / "nan.wav", x, 16000, subtype="FLOAT")
    with (
        AudioReader(tmp_path / "nan.wav") as reader,
        pytest.raises(InputError, match=r"NaN at sample 30001 \(1\.875 s\)"),
    ):
        list(reader)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.mp4", "unknown audio format '.mp4'; use .wav, .flac, .ogg"),
        ("a", "a file of audio needs a suffix; use .wav"),
        ("no/a.wav", "check the folder"),
    ],
)
def test_files_that_cannot_be_written_are_refused(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        AudioWriter(tmp_path / name, 16000, 1)


def test_channels_are_chosen_and_mixed() -> None:
    x = np.array([[1, 3], [5, 9]], np.float32)
    assert Channels.parse("mix").select(x).tolist() == [[2], [7]]
    assert Channels.parse("1").select(x).tolist() == [[3], [9]]
    assert Channels.parse("each").select(x).tolist() == x.tolist()
    assert [Channels.parse(text).count_streams(2) for text in ("mix", "0", "each")] == [1, 1, 2]
    assert Channels.parse("mix").select(x).dtype == np.float32
    with pytest.raises(InputError, match="'left': give mix, each or the number"):
        Channels.parse("left")
    with pytest.raises(InputError, match="channel 2: the audio has 2 channels, numbered from 0"):
        Channels.parse("2").count_streams(2)
