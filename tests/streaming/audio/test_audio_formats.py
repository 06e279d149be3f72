"""Formats and encodings: which encodings keep the values of another one."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError
from streaming.audio.audio_formats import (
    audio_format,
    common_suffixes,
    find_format,
    holds_audio,
    is_audio_file,
)
from streaming.audio.encodings import ENCODINGS, Encoding
from streaming.audio.files import AudioReader, AudioWriter
from streaming.audio.interfaces import Clipping


@pytest.mark.parametrize(
    ("name", "source", "encoding"),
    [
        ("a.wav", "PCM_16", "PCM_16"),
        ("a.wav", "PCM_24", "PCM_24"),
        ("a.wav", "PCM_32", "PCM_32"),
        ("a.wav", "FLOAT", "FLOAT"),
        ("a.wav", "DOUBLE", "DOUBLE"),
        ("a.wav", "PCM_S8", "PCM_U8"),
        ("a.wav", "ALAC_20", "PCM_24"),
        ("a.wav", "VORBIS", "PCM_16"),
        ("a.wav", "ULAW", "PCM_16"),
        ("a.wav", None, "PCM_16"),
        ("a.caf", "ALAC_24", "ALAC_24"),
        ("a.flac", "DOUBLE", "PCM_24"),
        ("a.flac", "PCM_32", "PCM_24"),
        ("a.flac", "PCM_U8", "PCM_S8"),
        ("a.mat4", "PCM_24", "PCM_32"),
        ("a.sf", "PCM_24", "PCM_32"),
        ("a.sf", "DOUBLE", "FLOAT"),
        ("a.ogg", "PCM_24", "VORBIS"),
        ("a.opus", "FLOAT", "OPUS"),
        ("a.mp3", "PCM_16", "MPEG_LAYER_III"),
    ],
)
def test_the_encoding_keeps_the_most_of_the_source(name: str, source: str | None, encoding: str) -> None:
    assert audio_format(Path(name)).suitable_encoding(source) == encoding


def test_every_format_of_libsndfile_is_supported() -> None:
    """All formats are supported but SD2, which is two files; case does not matter."""
    known_names = {name for name in soundfile.available_formats() if find_format(name.lower()) is not None}
    assert set(soundfile.available_formats()) - known_names == {"SD2"}
    assert is_audio_file(Path("a.AIFF"))
    assert is_audio_file(Path("a.Aif"))
    assert not is_audio_file(Path("a.onnx"))
    assert not is_audio_file(Path("wav"))
    assert not is_audio_file(Path("a."))
    assert common_suffixes().startswith(".wav, .flac, .ogg")


def test_an_encoding_is_found_by_its_names() -> None:
    wav = audio_format(Path("a.wav"))
    assert [wav.parse_encoding(name) for name in ("float", "FLOAT", "f32", "s24", "pcm_u8")] == [
        "FLOAT",
        "FLOAT",
        "FLOAT",
        "PCM_24",
        "PCM_U8",
    ]
    with pytest.raises(
        InputError, match="FLAC: unknown encoding 'float'; choose one of pcm_s8, pcm_16, pcm_24"
    ):
        audio_format(Path("a.flac")).parse_encoding("float")


@pytest.mark.parametrize(
    "suffix", ["wav", "aiff", "au", "caf", "w64", "rf64", "flac", "voc", "mp3", "ogg", "opus"]
)
def test_sound_is_recognised_by_content(tmp_path: Path, suffix: str) -> None:
    with AudioWriter(tmp_path / f"a.{suffix}", 48000, 1) as writer:
        writer.write(np.zeros((4800, 1), np.float32))
    path = (tmp_path / f"a.{suffix}").rename(tmp_path / "sound")
    assert holds_audio(path)
    with AudioReader(path) as reader:
        assert reader.frames == 4800


def test_models_are_not_recognised_as_sound(tmp_path: Path) -> None:
    from streaming.builtin import model_path

    (tmp_path / "text").write_text("words")
    assert not holds_audio(model_path())
    assert not holds_audio(tmp_path / "text")
    assert not holds_audio(tmp_path)
    assert not holds_audio(tmp_path / "none")


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
def test_bytes_equal_those_of_libsndfile(tmp_path: Path, encoding: Encoding) -> None:
    """Samples are read as libsndfile reads them and written with an error of at most half a step."""
    x = np.random.default_rng(0).uniform(-0.9, 0.9, 3000).astype(np.float32)
    data = encoding.encode(x)
    assert len(data) == 3000 * encoding.nbytes
    decoded = encoding.decode(data)
    step = 0 if encoding.floating else 2.0 ** (1 - 8 * encoding.nbytes)
    np.testing.assert_allclose(decoded, x, rtol=0, atol=max(step / 2, 1e-7) if step else 0)
    path = tmp_path / "a.raw"
    path.write_bytes(data)
    how = {
        "samplerate": 16000,
        "channels": 1,
        "format": "RAW",
        "subtype": encoding.subtype,
        "endian": "LITTLE",
    }
    np.testing.assert_array_equal(soundfile.read(path, dtype="float32", **how)[0], decoded)
    with AudioWriter(tmp_path / "a.wav", 16000, 1, encoding.subtype) as writer:
        writer.write(x[:, None])
    np.testing.assert_array_equal(soundfile.read(tmp_path / "a.wav", dtype="float32")[0], decoded)


@pytest.mark.parametrize("encoding", ["u8", "s16", "s24"])
def test_integers_come_back_as_they_were(tmp_path: Path, encoding: str) -> None:
    """Reading and writing changes no bit, in a file or a stream."""
    kind = Encoding.of_name(encoding)
    data = np.random.default_rng(1).integers(0, 256, 6000 * kind.nbytes, np.uint8).tobytes()
    x = kind.decode(data)
    assert kind.encode(x) == data
    with AudioWriter(tmp_path / "a.raw", 16000, 1, kind.subtype) as writer:
        writer.write(x[:, None])
    assert (tmp_path / "a.raw").read_bytes() == data


def test_samples_beyond_full_scale_are_clipped_and_nan_is_zero() -> None:
    x = np.array([1, -1, 1.5, -1.5, np.inf, -np.inf, np.nan], np.float32)
    assert np.frombuffer(Encoding.of_name("s16").encode(x), "<i2").tolist() == [
        *[32767, -32768] * 3,
        0,
    ]
    assert list(Encoding.of_name("u8").encode(x)) == [255, 0, 255, 0, 255, 0, 128]


def test_clipping_is_counted_by_channel() -> None:
    clipping = Clipping(3)
    clipping.count(np.array([[0.5, 1.0, -1.0], [2.0, -1.001, np.nan]], np.float32))
    clipping.count(np.array([[-1.5, 1.0005, 0]], np.float32))
    assert (clipping.total, clipping.samples) == (4, [2, 2, 0])
    assert str(clipping) == "channel 0: 2 samples by up to 6.0 dB, channel 1: 2 samples by up to 0.0087 dB"
    assert clipping.as_list()[0] == {"channel": 0, "samples": 2, "peak": 2.0}
    clipping.count(np.full((1, 3), np.inf, np.float32))
    assert clipping.as_list()[2] == {"channel": 2, "samples": 1, "peak": None}
    assert "channel 2: 1 sample by up to an infinite amount" in str(clipping)
