"""Sound through pipes: WAV and raw samples, as they come."""

import os
import struct
import threading
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError
from pulse.facts import Array
from streaming.audio.encodings import ENCODINGS, Encoding
from streaming.audio.pipes import StreamReader, StreamWriter, TableStream
from streaming.audio.wav_stream import StreamFormat, wav_header
from tests.noise import uniform_noise

SMALL = 30_000
"""Bytes that every pipe takes without a reader."""


def pipe_of(data: bytes) -> int:
    """The reading end of a pipe that has only these bytes."""
    out, into = os.pipe()
    assert len(data) <= SMALL
    os.write(into, data)
    os.close(into)
    return out


def read(data: bytes, form: StreamFormat | None = None) -> tuple[StreamReader, Array]:
    with StreamReader("in", pipe_of(data), form) as reader:
        return reader, np.concatenate(list(reader))


def refusal(data: bytes, form: StreamFormat | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read(data, form)
    return str(caught.value)


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("form", ["WAV", "WAVEX", "RF64"])
def test_wav_files_of_the_library_are_read(
    tmp_path: Path, encoding: Encoding, channels: int, form: str
) -> None:
    """Plain and extensible files of each encoding are read, whatever chunks come before the samples."""
    x = uniform_noise(1000, channels)
    soundfile.write(tmp_path / "a", x, 44100, encoding.subtype, format=form)
    reader, samples = read((tmp_path / "a").read_bytes())
    assert (reader.rate_hz, reader.channels, reader.frames) == (44100, channels, 1000)
    assert reader.encoding == encoding.subtype
    np.testing.assert_array_equal(samples, soundfile.read(tmp_path / "a", dtype="float32", always_2d=True)[0])


@pytest.mark.parametrize("size", [0, 0x7FFFF000, 0x7FFFFFFF, 0xFFFFFFFF])
def test_sound_of_unknown_size_ends_with_its_bytes(size: int) -> None:
    """Programs that write to a pipe leave the size open; the end of the bytes is the end of the sound."""
    x = uniform_noise(700)
    stream_format = StreamFormat(Encoding.of_name("f32"), 8000, 1)
    head = wav_header(stream_format)[:-4] + struct.pack("<I", size)
    reader, samples = read(head + x.tobytes())
    assert reader.frames is None
    np.testing.assert_array_equal(samples, x)


def test_chunks_after_the_samples_are_ignored() -> None:
    x = uniform_noise(700)
    stream_format = StreamFormat(Encoding.of_name("f32"), 8000, 1, x.nbytes)
    np.testing.assert_array_equal(read(wav_header(stream_format) + x.tobytes() + b"LIST\x04\0\0\0abcd")[1], x)


def test_leading_chunks_are_skipped() -> None:
    x = uniform_noise(10)
    head = wav_header(StreamFormat(Encoding.of_name("f32"), 8000, 1))
    odd = b"note" + struct.pack("<I", 9_001) + bytes(9_002)
    np.testing.assert_array_equal(read(head[:12] + odd + head[12:] + x.tobytes())[1], x)


def test_raw_samples_are_read_from_a_stream() -> None:
    x = uniform_noise(900, 2)
    stream_format = StreamFormat.parse("s24,48000,2", None)
    reader, samples = read(stream_format.encoding.encode(x), stream_format)
    assert (reader.rate_hz, reader.channels, reader.frames, reader.encoding) == (48000, 2, None, "PCM_24")
    np.testing.assert_allclose(samples, x, atol=2**-24)


def test_a_format_of_raw_samples_has_defaults() -> None:
    assert StreamFormat.parse("s16le", 16000) == StreamFormat(Encoding.of_name("s16"), 16000, 1)
    assert StreamFormat.parse("f32,8000", 16000).rate_hz == 8000


@pytest.mark.parametrize("text", ["", "s17", "s16,0", "s16,8000,1,1", "s16,-1", "s16,x"])
def test_invalid_formats_of_raw_samples_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="give encoding,rate,channels such as s16,48000,2"):
        StreamFormat.parse(text, 16000)


def test_a_format_of_raw_samples_needs_a_rate() -> None:
    with pytest.raises(InputError, match="give the rate too"):
        StreamFormat.parse("s16", None)


def test_blocks_are_the_available_samples() -> None:
    """A block is not waited for until it is full, and a sample may come in two pieces."""
    out, into = os.pipe()
    x = uniform_noise(64, 2)
    data = x.tobytes()
    with StreamReader("in", out, StreamFormat(Encoding.of_name("f32"), 16000, 2)) as reader:
        blocks = iter(reader)
        for first, last in ((0, 8), (8, 75), (75, 200)):
            os.write(into, data[first:last])
            np.testing.assert_array_equal(
                next(blocks), x[-(-first // 8) if first % 8 == 0 else first // 8 : last // 8]
            )
        os.write(into, data[200:])
        os.close(into)
        np.testing.assert_array_equal(np.concatenate(list(blocks)), x[25:])


def test_a_pipe_that_does_not_wait_gives_every_sample() -> None:
    """Another owner of the pipe may have made it non-blocking."""
    out, into = os.pipe()
    os.set_blocking(out, False)
    os.set_blocking(into, False)
    x = uniform_noise(100_000)
    stream_format = StreamFormat(Encoding.of_name("f32"), 16000, 1)

    def write():
        with StreamWriter("out", into, stream_format, wav=True) as writer:
            for block in np.split(x, 10):
                writer.write(block)

    thread = threading.Thread(target=write)
    with StreamReader("in", _later(out, thread)) as reader:
        np.testing.assert_array_equal(np.concatenate(list(reader)), x)
    thread.join()


def _later(out: int, thread: Thread) -> int:
    thread.start()
    return out


def test_memory_does_not_grow_with_waiting_input() -> None:
    """A block has at most half a second, however much input waits."""
    out, into = os.pipe()
    os.write(into, bytes(SMALL))
    os.close(into)
    with StreamReader("in", out, StreamFormat(Encoding.of_name("u8"), 100, 1)) as reader:
        assert {len(block) for block in reader} == {50}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "in: is empty"),
        (b"RIFF", "in: does not begin like WAV; a pipe carries WAV, or raw samples with"),
        (b"fLaC" + bytes(100), "pipe through ffmpeg -i - -f wav -"),
        (b"RIFF\0\0\0\0WAVEfmt ", "in: ends before its samples begin"),
        (b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 16), "in: ends before its samples begin"),
        (b"RIFF\0\0\0\0WAVELIST" + struct.pack("<I", 99) + bytes(50), "in: ends before its samples begin"),
        (b"RIFF\0\0\0\0WAVEdata\0\0\0\0", "in: the encoding of its samples is unknown"),
        (
            b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 0, 8000, 0, 2, 16) + b"data\0\0\0\0",
            "0 channels",
        ),
        (
            b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<IHHIIHH", 16, 7, 1, 8000, 8000, 1, 8) + b"data\0\0\0\0",
            "WAV of format 7, 8 bits in frames of 1 byte cannot be read from a pipe; pipe it through ffmpeg",
        ),
        (b"RIFF\0\0\0\0WAVEfmt \x02\0\0\0ab" + b"data\0\0\0\0", "both must be positive"),
    ],
    ids=[
        "empty",
        "cut",
        "FLAC",
        "fmt",
        "fmt cut",
        "LIST cut",
        "no fmt",
        "no channels",
        "mu-law",
        "short fmt",
    ],
)
def test_files_other_than_wav_are_refused(data: bytes, words: str) -> None:
    assert words in refusal(data)


def test_truncated_streams_and_nan_are_refused() -> None:
    stream_format = StreamFormat(Encoding.of_name("s16"), 8000, 2)
    assert "in: ends after 3 of the 4 bytes of a frame; check encoding and channels" in refusal(
        bytes(4003), stream_format
    )
    assert "in: no samples arrived" in refusal(wav_header(stream_format))
    long = StreamFormat(Encoding.of_name("s16"), 8000, 2, 4000)
    assert "in: damaged at sample 500 of 1000 (the samples end)" in refusal(wav_header(long) + bytes(2000))
    nan = np.array([0, 0, 0, np.nan], np.float32).tobytes()
    assert "in: NaN at sample 3 (0.030 s)" in refusal(nan, StreamFormat(Encoding.of_name("f32"), 100, 1))


@pytest.mark.parametrize("encoding", ENCODINGS.values(), ids=ENCODINGS)
def test_written_streams_are_read_back(tmp_path: Path, encoding: Encoding) -> None:
    """Libsndfile reads a stream without a size and a file whose header was completed."""
    x = uniform_noise(333, 1)
    stream_format = StreamFormat(encoding, 22050, 1)
    out, into = os.pipe()
    with StreamWriter("out", into, stream_format, wav=True) as writer:
        for block in np.array_split(x, 3):
            writer.write(block)
    (tmp_path / "pipe.wav").write_bytes(os.read(out, SMALL))
    os.close(out)
    handle = os.open(tmp_path / "file.wav", os.O_WRONLY | os.O_CREAT)
    with StreamWriter("out", handle, stream_format, wav=True) as writer:
        writer.write(x)
    for name in ("pipe.wav", "file.wav"):
        info = soundfile.info(tmp_path / name)
        assert (info.samplerate, info.channels, info.subtype) == (22050, 1, encoding.subtype)
        samples = soundfile.read(tmp_path / name, dtype="float32", always_2d=True)[0]
        np.testing.assert_array_equal(samples[:333], encoding.decode(encoding.encode(x)).reshape(-1, 1))
    assert soundfile.info(tmp_path / "file.wav").frames == 333
    reader, samples = read((tmp_path / "file.wav").read_bytes())
    assert (reader.frames, len(samples)) == (333, 333)


def test_append_only_files_keep_their_header(tmp_path: Path) -> None:
    """The header and the existing samples stay."""
    (tmp_path / "log").write_bytes(b"before")
    handle = os.open(tmp_path / "log", os.O_WRONLY | os.O_APPEND)
    stream_format = StreamFormat(Encoding.of_name("s16"), 8000, 1)
    with StreamWriter("out", handle, stream_format, wav=True) as writer:
        writer.write(uniform_noise(4))
    content = (tmp_path / "log").read_bytes()
    assert content[:6] == b"before"
    assert content[6:-8] == wav_header(stream_format)
    assert len(content) == 6 + 44 + 8


def test_raw_samples_have_no_head() -> None:
    out, into = os.pipe()
    with StreamWriter("out", into, StreamFormat(Encoding.of_name("s16"), 8000, 1), wav=False) as writer:
        writer.write(np.array([[0.5], [-2.0]], np.float32))
        assert writer.clipping.samples == [1]
    assert np.frombuffer(os.read(out, 100), "<i2").tolist() == [16384, -32768]
    os.close(out)


def test_a_closed_reader_is_reported() -> None:
    out, into = os.pipe()
    os.close(out)
    with pytest.raises(InputError, match=r"out: cannot be written \(Broken pipe\)"):
        StreamWriter("out", into, StreamFormat(Encoding.of_name("s16"), 8000, 1), wav=True)


def test_frames_leave_as_rows() -> None:
    out, into = os.pipe()
    with TableStream("out", into, 1, 100.0) as table:
        table.write(np.array([[0.5, 1.0]], np.float32))
        assert os.read(out, 1000).splitlines() == [b"time_s,value", b"0.000,0.5", b"0.010,1.0"]
        table.write(np.array([[2.0]], np.float32))
        assert os.read(out, 1000) == b"0.020,2.0\r\n"
    os.close(out)
