"""Sound on the command line: formats, depth, clipping, names, and pipes."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from onnx import helper

from streaming.builtin import model_path
from tests.noise import uniform_noise
from tests.streaming.cli.pipes import LIMIT_S, command, pipe
from tests.streaming.command import pulse, refusal, report, save, tone, voice, write_sound

pytestmark = pytest.mark.usefixtures("working_folder", "usual_signals")


def identity_model(path: str = "same.onnx") -> str:
    """Write a model that outputs its input."""
    return save(path, [helper.make_node("Identity", ["x"], ["y"])], {"x": [1, "T"]}, {"y": [1, "T"]})


@pytest.mark.parametrize(
    "name", ["in.mp3", "in.opus", "in.aif", "in.caf", "in.au", "in.w64", "in.rf64", "in", "in.onnx"]
)
def test_the_short_form_takes_all_formats_of_the_library(name: str) -> None:
    """The content says that it is sound, not the name."""
    form = {"in.opus": ("OGG", "OPUS"), "in.aif": ("AIFF", "PCM_16")}.get(name)
    form = form or (name[3:].upper() if name[3:] not in ("", "onnx") else "FLAC", None)
    write_sound(name, tone(16000), 16000, format=form[0], subtype=form[1])
    details = report("run", name, "out.wav")
    assert (details["model"], details["input"], details["duration_s"]) == ("denoise", name, 0.5)
    assert soundfile.info("out.wav").frames == 8000


def test_broken_recordings_are_not_read_as_models(tmp_path: Path) -> None:
    (tmp_path / "in.aiff").write_bytes(b"FORM" + bytes(60))
    assert "in.aiff: cannot be read as audio" in refusal("run", "in.aiff", "out.wav")
    assert "in.aiff: is an audio file, but a model is expected here" in refusal(
        "run", "in.aiff", "in.aiff", "out.wav"
    )


@pytest.mark.parametrize(
    ("source", "target", "encoding"),
    [
        ("PCM_U8", "out.wav", "PCM_U8"),
        ("PCM_16", "out.wav", "PCM_16"),
        ("PCM_24", "out.aiff", "PCM_24"),
        ("PCM_32", "out.caf", "PCM_32"),
        ("FLOAT", "out.au", "FLOAT"),
        ("DOUBLE", "out.wav", "DOUBLE"),
        ("DOUBLE", "out.flac", "PCM_24"),
    ],
)
def test_the_depth_is_kept_and_no_bit_changes(source: str, target: str, encoding: str) -> None:
    write_sound("in.wav", uniform_noise(4000, 2), subtype=source)
    details = report("run", identity_model(), "in.wav", target, "--channel", "each", "--backend", "numpy")
    assert (details["file_encoding"], details["encoding"], details["warnings"]) == (source, encoding, [])
    assert soundfile.info(target).subtype == encoding
    x, y = (soundfile.read(name, dtype="float32")[0] for name in ("in.wav", target))
    np.testing.assert_allclose(y, x, atol=2**-24 if target == "out.flac" else 0)


def test_an_encoding_in_blocks_may_be_longer_than_the_recording() -> None:
    """The last block of ADPCM is completed, and the signal-to-noise ratio is that of the recording."""
    details = report("run", "--subtype", "ima_adpcm")
    assert details["encoding"] == "IMA_ADPCM"
    assert details["snr_after_db"] > details["snr_before_db"] + 5


def test_audio_beside_features_needs_a_rate() -> None:
    nodes = [
        helper.make_node("ReduceMean", ["frames"], ["mean"], axes=[2], keepdims=0),
        helper.make_node("Add", ["x", "mean"], ["y"]),
    ]
    save("mixed.onnx", nodes, {"x": [1, "T"], "frames": [1, "T", 300]}, {"y": [1, "T"]})
    write_sound("in.wav", uniform_noise(400))
    np.save("frames.npy", np.zeros((1, 400, 300), np.float32))
    arguments = ("run", "mixed.onnx", "in.wav", "out.wav", "--in", "frames=frames.npy")
    assert "mixed: the rate of its audio is unknown; give it, as in --rate 16000" in refusal(*arguments)
    assert report(*arguments, "--rate", 16000)["frames"] == 400


@pytest.mark.parametrize(
    ("subtype", "encoding"), [("float", "FLOAT"), ("s24", "PCM_24"), ("pcm_u8", "PCM_U8")]
)
def test_the_encoding_can_be_asked_for(subtype: str, encoding: str) -> None:
    write_sound("in.wav", uniform_noise(4000), subtype="PCM_16")
    report("run", identity_model(), "in.wav", "out.wav", "--subtype", subtype, "--backend", "numpy")
    assert soundfile.info("out.wav").subtype == encoding


def test_the_format_can_be_asked_for() -> None:
    write_sound("in.wav", uniform_noise(4000), subtype="PCM_16")
    report("run", identity_model(), "in.wav", "out.dat", "--format", "caf", "--backend", "numpy")
    assert soundfile.info("out.dat").format == "CAF"


def test_a_wav_file_may_be_asked_for_in_any_of_its_formats() -> None:
    write_sound("in.wav", uniform_noise(4000), subtype="PCM_16")
    report("run", identity_model(), "in.wav", "out.wav", "--format", "wavex", "--backend", "numpy")
    assert soundfile.info("out.wav").format == "WAVEX"


@pytest.mark.parametrize("name", ["in.wav", "in.flac", "in.ogg", "in.aiff", "in.au", "in.caf"])
def test_a_header_is_not_read_as_raw_samples(name: str) -> None:
    write_sound(name, uniform_noise(4000))
    message = refusal("run", identity_model(), name, "out.wav", "--raw", "s16,48000", "--backend", "numpy")
    assert f"{name}: begins with a header of " in message
    assert "and --raw reads it as samples; omit --raw" in message
    assert not Path("out.wav").exists()


def test_a_header_in_a_pipe_is_not_read_as_raw_samples() -> None:
    write_sound("in.wav", uniform_noise(4000))
    _, errors = pipe(Path("in.wav").read_bytes(), identity_model(), "-", "out.wav", "--raw", "s16", code=2)
    assert "standard input: begins with a header of WAV, and --raw reads it as samples; omit --raw" in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["in.wav", "out.wav", "--subtype", "pcm_17"],
            "WAV: unknown encoding 'pcm_17' (did you mean pcm_16?); choose one of pcm_16",
        ),
        (
            ["in.wav", "out.x", "--format", "csv"],
            "frames are written by suffix; call the file out.csv",
        ),
        (
            ["in.wav", "out.wav", "--format", "flac"],
            "out.wav: the name says .wav, --format flac something else; call the file out.flac, or omit --format",
        ),
        (
            ["in.wav", "out.npy", "--format", "wav"],
            "out.npy: the name says .npy, --format wav something else",
        ),
        (["in.wav", "out.csv", "--subtype", "float"], "out.csv takes frames, which have none"),
        (["x.npy", "y.npy", "--subtype", "float", "--backend", "numpy"], "are for audio"),
    ],
    ids=[
        "an unknown encoding",
        "frames as a format",
        "another format than the name's",
        "audio in an array",
        "an encoding of a table",
        "an encoding of frames",
    ],
)
def test_encodings_and_formats_that_do_not_suit_are_refused(arguments: list[str], words: str) -> None:
    write_sound("in.wav", uniform_noise(4000), subtype="PCM_16")
    np.save("x.npy", np.zeros((1, 9), np.float32))
    assert words in refusal("run", identity_model(), *arguments)


def test_a_rate_that_the_format_lacks_is_refused() -> None:
    write_sound("in.wav", uniform_noise(4410), 44100)
    message = refusal("run", identity_model(), "in.wav", "out.opus", "--rate", 44100, "--backend", "numpy")
    assert "cannot be written as OGG of 1 channel at 44100 Hz, OPUS" in message
    assert "write a .wav file" in message


def test_clipping_is_reported() -> None:
    """The warning counts clipped samples per channel and names encodings that keep them."""
    x = np.zeros((4000, 2), np.float32)
    x[7:17, 1] = 2
    write_sound("in.wav", x, subtype="FLOAT")
    arguments = ("run", identity_model(), "in.wav", "--channel", "each", "--backend", "numpy")
    clipped = "channel 1: 10 samples by up to 6.0 dB"
    assert (
        f"warning: out.wav: clipped to pcm_16: {clipped}; --subtype float keeps them"
        in pulse(*arguments, "out.wav", "--subtype", "pcm_16").stderr
    )
    assert (
        f"warning: out.flac: clipped to pcm_24: {clipped}; a .wav file with --subtype float keeps them"
        in pulse(*arguments, "out.flac").stderr
    )
    details = report(*arguments, "out.wav", "--subtype", "pcm_24")
    assert details["clipping"] == [{"channel": 1, "samples": 10, "peak": 2.0}]
    assert details["clipped_samples"] == 10
    assert "clipped" not in pulse(*arguments, "out.wav").stderr
    assert "clipped" not in pulse(*arguments, "out.ogg").stderr, "it holds them"
    live = pulse(
        "run", "same.onnx", "in.wav", "out.wav", "--live", "--channel", "1", "--subtype", "s16", "--quiet"
    )
    assert "warning: out.wav: clipped: channel 0: 10 samples by up to" in live.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("in.wav out.wav --live --format wav", "exclude --live"),
        ("--live --subtype float", "--subtype is for the file"),
        (
            "in.wav out.wav --live --frames -",
            "--frames -: frames of a live run are written to a .csv or .npy",
        ),
    ],
)
def test_formats_of_files_are_refused_for_a_live_run(arguments: str, message: str) -> None:
    write_sound("in.wav", np.zeros((400, 1), np.float32))
    assert message in refusal("run", identity_model(), *arguments.split())


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes on Linux alone")
def test_file_names_outside_utf8_are_supported() -> None:
    """The report spells such names so that a program finds the files again."""
    source, target, model = (os.fsdecode(name) for name in (b"in\xe9.mp3", b"out\xe9.wav", b"m\xe9.onnx"))
    soundfile.write(os.fsencode(source), tone(16000), 16000, format="MP3")
    out, _ = pipe(None, identity_model(model), source, target)
    assert rb"in\udce9.mp3 -> out\udce9.wav" in out
    assert soundfile.SoundFile(os.fsencode(target)).frames == 8000
    out, errors = pipe(None, source, target, "--json")
    assert rb'"output": "out\udce9.wav"' in out
    assert not errors
    _, errors = pipe(None, os.fsdecode(b"none\xe9.wav"), code=2)
    assert errors == "error: none\\udce9.wav: no such file; check the path\n"


@pytest.mark.parametrize("target", ["-", "/dev/stdout"])
def test_sound_goes_from_standard_input_to_standard_output(target: str) -> None:
    """Standard output has the bytes of a file, and nothing else."""
    write_sound("in.wav", uniform_noise(30_000, 2), subtype="PCM_24")
    with open("in.wav", "rb") as file:
        out, errors = pipe(file.read(), identity_model(), "-", target, "--channel", "each")
    assert f"standard input -> {'standard output' if target == '-' else target}" in errors
    with open("found.wav", "wb") as file:
        file.write(out)
    assert soundfile.info("found.wav").subtype == "PCM_24"
    x, y = (soundfile.read(name, dtype="int32")[0] for name in ("in.wav", "found.wav"))
    np.testing.assert_array_equal(y, x)


def test_the_short_form_takes_pipes() -> None:
    write_sound("in.wav", tone(16000), 16000)
    pulse("run", "in.wav", "file.wav", "--backend", "numpy")
    with open("in.wav", "rb") as file:
        out, errors = pipe(file.read(), "-", "-", "--json")
    assert '"output": "-"' in errors
    with open("piped.wav", "wb") as file:
        file.write(out)
    np.testing.assert_array_equal(soundfile.read("piped.wav")[0], soundfile.read("file.wav")[0])
    with open("in.wav", "rb") as source, open("direct.wav", "wb") as target:
        pipe(None, "-", "-", stdin=source, stdout=target)
    with open("direct.wav", "rb") as direct, open("file.wav", "rb") as expected:
        assert direct.read() == expected.read(), "files are read whole, and their heads completed"


def test_standard_input_may_be_a_file_of_any_format() -> None:
    write_sound("in.mp3", tone(16000), 16000)
    with open("in.mp3", "rb") as file:
        pipe(None, "/dev/stdin", "out.wav", stdin=file)
    assert soundfile.info("out.wav").frames == 8000


def test_the_command_reads_raw_samples() -> None:
    x = np.random.default_rng(0).integers(-30_000, 30_000, (20_000, 2)).astype("<i2")
    arguments = (
        identity_model(),
        "-",
        "-",
        "--format",
        "raw",
        "--channel",
        "each",
        "--raw",
        "s16,48000,2",
        "--rate",
        "48000",
    )
    out, _ = pipe(x.tobytes(), *arguments)
    assert out == x.tobytes()
    out, _ = pipe(x.tobytes(), *arguments, "--subtype", "float")
    np.testing.assert_array_equal(np.frombuffer(out, "<f4"), x.ravel() / np.float32(32768))
    x.tofile("in.raw")
    details = report(
        "run",
        identity_model(),
        "in.raw",
        "out.wav",
        "--raw",
        "s16,48000,2",
        "--rate",
        48000,
        "--backend",
        "numpy",
    )
    assert (details["file_channels"], details["duration_s"]) == (2, 20_000 / 48000)
    assert "give --raw s16,48000,2" in refusal(
        "run", identity_model(), "in.raw", "out.wav", "--backend", "numpy"
    )


def take(stream: Any, count: int) -> bytes:
    """Read this many bytes of a pipe, or fewer at its end."""
    received = b""
    while len(received) < count and (piece := os.read(stream.fileno(), count - len(received))):
        received += piece
    return received


def test_ready_frames_are_written_while_the_input_is_open() -> None:
    """All that the delay of the model allows is written before more is read."""
    x = uniform_noise(16000, 1, 0.1)
    process = command(model_path(), "-", "-", "--raw", "f32,16000", "--format", "raw", "--pulse", "160")
    assert process.stdin is not None
    assert process.stdout is not None
    frames = 0
    for first in range(0, 16000, 1600):
        process.stdin.write(x[first : first + 1600].tobytes())
        ready = first + 1600 - 160  # the delay of the model
        frames += len(take(process.stdout, 4 * (ready - frames))) // 4
        assert frames == ready
    process.stdin.close()
    assert len(take(process.stdout, 4 * 16001)) == 4 * 160
    assert process.wait(LIMIT_S) == 0
    process.stdout.close()
    process.stderr.close()


def test_probabilities_leave_as_rows() -> None:
    """A pipe has them as a table."""
    x = tone(8000).astype(np.float32)
    out, _ = pipe(x.tobytes(), voice("voice.onnx"), "-", "-", "--raw", "f32,8000", "--output", "level")
    lines = out.decode().splitlines()
    assert lines[0] == "time_s,value"
    assert len(lines) == 1 + 50
    np.testing.assert_allclose(
        [float(line.split(",")[1]) for line in lines[1:]], x.reshape(-1, 80).mean(1), atol=1e-6
    )


@pytest.mark.parametrize("blocked", [False, True])
def test_a_closed_pipe_ends_the_command_quietly(blocked: bool) -> None:
    """The command ends quietly, as others do, whatever it was started with."""
    how = signal.SIG_BLOCK if blocked else signal.SIG_UNBLOCK
    before = signal.pthread_sigmask(how, [signal.SIGPIPE])
    try:
        process = command(identity_model(), "-", "-", "--raw", "f32,16000")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.write(bytes(64_000))
    take(process.stdout, 1000)
    process.stdout.close()
    with pytest.raises(BrokenPipeError):
        for _ in range(1000):
            process.stdin.write(bytes(64_000))
    process.stdin.close()
    assert (process.wait(LIMIT_S), process.stderr.read()) == (-signal.SIGPIPE, b"")
    process.stderr.close()


def test_ctrl_c_ends_a_run_that_waits_for_input() -> None:
    process = command(identity_model(), "-", "-", "--raw", "f32,16000", "--format", "raw")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(bytes(64_000))
    take(process.stdout, 32_000)
    process.send_signal(signal.SIGINT)
    assert process.wait(LIMIT_S) == 130
    _, errors = process.communicate(timeout=LIMIT_S)
    assert errors == b"error: interrupted; only complete results are written\n"


def test_named_pipes_are_read_and_written() -> None:
    write_sound("in.wav", uniform_noise(20_000), subtype="PCM_16")
    os.mkfifo("in.fifo")
    os.mkfifo("out.fifo")
    process = command(identity_model(), "in.fifo", "out.fifo")
    writes = subprocess.Popen("cat in.wav > in.fifo", shell=True)
    with open("out.fifo", "rb") as pipe, open("out.wav", "wb") as file:
        file.write(pipe.read())
    _, errors = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, writes.wait(LIMIT_S)) == (0, 0), errors
    np.testing.assert_array_equal(soundfile.read("out.wav")[0], soundfile.read("in.wav")[0])


def test_a_pipe_refuses_formats_that_need_a_file() -> None:
    write_sound("in.wav", uniform_noise(100))
    arguments = ("run", identity_model(), "in.wav", "-", "--backend", "numpy")
    for word in ("flac", "mp3"):
        assert f"standard output: takes wav, raw, csv, npy, not {word}" in refusal(
            *arguments, "--format", word
        )
    assert "--subtype pcm_s8" not in refusal(*arguments, "--subtype", "vorbis")
    assert "--subtype ulaw: a pipe takes pcm_u8, pcm_16, pcm_24, pcm_32, float, double" in refusal(
        *arguments, "--subtype", "ulaw"
    )
    assert "--live takes files" in refusal("run", "same.onnx", "-", "out.wav", "--live", "--backend", "numpy")
    out, errors = pipe(b"", identity_model(), "-", "out.wav", code=2)
    assert errors == "error: standard input: is empty\n"
    out, errors = pipe(b"abc" * 10, identity_model(), "-", "-", "--json", code=2)
    assert out == b""
    assert "does not begin like WAV" in errors
