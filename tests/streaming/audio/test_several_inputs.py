"""Models with several audio inputs: sessions, files, channels, rates, lengths; outputs by name."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import soundfile
from onnx import helper

from pulse.errors import InputError
from pulse.facts import Array
from streaming import Session
from streaming.native.resample import AudioResampler
from tests.agreement import Expected
from tests.noise import quiet_noise
from tests.streaming.command import pulse, refusal, report, save, write_sound
from tests.streaming.echo_canceller import cancelled_sound, canceller, cancelling_program, offline
from tests.streaming.models import both_backends

pytestmark = pytest.mark.usefixtures("working_folder")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(canceller(), tmp_path / "aec.onnx")
    return Path("aec.onnx")


def write_floats(name: str, sound: Array, rate: int = 16000) -> str:
    return write_sound(name, sound, rate, subtype="FLOAT")


def read(name: str) -> Array:
    return soundfile.read(name, dtype="float32")[0]


def pad_after(sound: Array, frames: int) -> Array:
    """Append zeros to a signal until it has this many frames."""
    return np.concatenate([sound, np.zeros(frames - len(sound), np.float32)])


def at_rate(sound: Array, rate: int, rate_out: int = 16000) -> Array:
    resampler = AudioResampler(rate, rate_out)
    return np.concatenate([resampler.process(sound[:, None]), resampler.flush()])[:, 0]


@both_backends
@pytest.mark.parametrize("seed", range(6))
def test_blocks_of_unequal_length_give_the_same_frames(backend: str, seed: int) -> None:
    """Pulses run as the shorter input allows, and the outputs equal those of one push."""
    compiled = cancelling_program(32, backend)
    random = np.random.default_rng(seed)
    length = int(random.integers(1, 300))
    sounds = {"mic": quiet_noise(length, 1)[None], "far": quiet_noise(length, 2)[None]}
    session, fed, parts = Session(compiled), dict.fromkeys(sounds, 0), []
    while min(fed.values()) < length:
        blocks = {}
        for name in sounds:
            count = int(random.integers(0, 90))
            if random.integers(3):
                blocks[name] = sounds[name][:, fed[name] : fed[name] + count]
                fed[name] = min(fed[name] + count, length)
        before = session.snapshot()
        parts.append(session.push(blocks))
        assert session.frames_in == min(fed.values())
        assert session.pulses == min(fed.values()) // 32
        session.restore(before)
        assert all(np.array_equal(array, parts[-1][name]) for name, array in session.push(blocks).items())
    parts.append(session.flush())
    outputs = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
    Expected(offline(), sounds).assert_agrees(outputs)


def test_unequal_ends_are_refused_and_the_stream_continues() -> None:
    session = Session(cancelling_program())
    session.push({"mic": quiet_noise(100)[None], "far": quiet_noise(60)[None]})
    with pytest.raises(InputError, match="far"):
        session.flush()
    session.push({"far": quiet_noise(40)[None]})
    assert session.flush()["out"].shape == (1, 100)


def test_the_shorter_of_two_files_is_padded(model: Path) -> None:
    """Both have one rate; the shorter one is followed by zeros, which the report states."""
    near, far = quiet_noise(20_000, 1), quiet_noise(12_345, 2)
    write_floats("near.wav", near)
    write_floats("far.wav", far)
    details = report("run", model, "--in", "mic=near.wav", "--in", "far=far.wav", "out.wav")
    expected = cancelled_sound(cancelling_program(), near, pad_after(far, 20_000))
    np.testing.assert_array_equal(read("out.wav"), expected["out"])
    assert details["padded_s"] == {"far": 7655 / 16000}
    assert [(row["input"], row["source"]) for row in details["inputs"]] == [
        ("mic", "near.wav"),
        ("far", "far.wav"),
    ]
    text = pulse("run", model, "--in", "far=far.wav", "--in", "mic=near.wav", "again.wav").stdout
    assert "far: far.wav, 16000 Hz, mono" in text
    assert "far: ends 478.44 ms before the longest, zeros follow" in text
    np.testing.assert_array_equal(read("again.wav"), expected["out"])
    assert pulse("run", model, "--in", "far=near.wav", "--in", "mic=far.wav", "third.wav").exit_code == 0
    np.testing.assert_array_equal(
        read("third.wav"), cancelled_sound(cancelling_program(), pad_after(far, 20_000), near)["out"]
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["in.wav", "out.wav"],
        ["--in", "mic=in.wav:0", "--in", "far=in.wav:1", "out.wav"],
        ["--in", "mic=three.wav:2", "--in", "far=three.wav:1", "out.wav"],
        ["three.wav", "out.wav", "--in", "mic=:2", "--in", "far=:1"],
        ["in.wav", "out.wav", "--in", "mic=:0", "--in", "far=three.wav:1"],
        ["near.wav", "out.wav", "--in", "far=far.wav"],
    ],
    ids=["in order", "chosen", "chosen of three", "of IN", "of two files", "a file for each"],
)
def test_channels_of_files_are_inputs_in_order_or_as_chosen(model: Path, arguments: list[str]) -> None:
    near, far, other = quiet_noise(5000, 1), quiet_noise(5000, 2), quiet_noise(5000, 3)
    write_floats("in.wav", np.stack([near, far], axis=1))
    write_floats("three.wav", np.stack([other, far, near], axis=1))
    write_floats("far.wav", far)
    write_floats("near.wav", near)
    pulse("run", model, *arguments)
    expected = cancelled_sound(cancelling_program(), near, far)["out"]
    np.testing.assert_array_equal(read("out.wav"), expected)


def test_file_names_may_end_like_channels(model: Path) -> None:
    near, far = quiet_noise(3000, 1), quiet_noise(3000, 2)
    write_floats("near.wav", near)
    soundfile.write("far:1", far, 16000, format="WAV", subtype="FLOAT")
    pulse("run", model, "--in", "mic=near.wav", "--in", "far=far:1", "out.wav")
    np.testing.assert_array_equal(read("out.wav"), cancelled_sound(cancelling_program(), near, far)["out"])


def test_files_of_other_rates_are_resampled(model: Path) -> None:
    """Both inputs get the model's rate; the output has the rate of the first file."""
    near, far = quiet_noise(44_100, 1), quiet_noise(24_000, 2)
    write_floats("near.wav", near, 44_100)
    write_floats("far.wav", far, 48_000)
    pulse("run", model, "--in", "mic=near.wav", "--in", "far=far.wav", "out.wav", "--rate", 16000)
    first, second = at_rate(near, 44_100), at_rate(far, 48_000)
    expected = cancelled_sound(cancelling_program(), first, pad_after(second, len(first)))["out"]
    np.testing.assert_allclose(read("out.wav"), at_rate(expected, 16_000, 44_100), atol=1e-6)
    assert soundfile.info("out.wav").samplerate == 44_100
    assert len(read("out.wav")) == 44_100


def test_clicks_at_two_rates_reach_the_model_together(model: Path) -> None:
    """A click at half a second in both files is one click to the model, wherever the resamplers delay it."""
    clicks = {}
    for rate in (16_000, 48_000):
        sound = np.zeros(rate, np.float32)
        sound[rate // 2] = 0.5
        clicks[rate] = sound
    write_floats("near.wav", clicks[16_000])
    write_floats("far.wav", clicks[48_000], 48_000)
    pulse("run", model, "--in", "mic=near.wav", "--in", "far=far.wav", "--out", "residue=out.wav")
    quiet = cancelled_sound(cancelling_program(), clicks[16_000], np.zeros(16_000, np.float32))["residue"]
    echo = read("out.wav") - quiet
    assert 8000 <= int(np.argmax(np.abs(echo))) < 8009, "the filter over the far end begins with the click"


def test_outputs_are_written_by_name(model: Path) -> None:
    """Into separate files, or as channels of one, or frames."""
    near, far = quiet_noise(4000, 1), quiet_noise(4000, 2)
    write_floats("in.wav", np.stack([near, far], axis=1))
    expected = cancelled_sound(cancelling_program(), near, far)
    details = report("run", model, "in.wav", "--out", "out=a.wav", "--out", "residue=b.wav")
    assert details["output"] == "a.wav, b.wav"
    assert len(details["delays"]) == 2
    np.testing.assert_array_equal(read("a.wav"), expected["out"])
    np.testing.assert_array_equal(read("b.wav"), expected["residue"])
    pulse("run", model, "in.wav", "--out", "residue=c.wav", "--out", "out=c.wav", "--out", "out=d.npy")
    np.testing.assert_array_equal(read("c.wav"), np.stack([expected["residue"], expected["out"]], axis=1))
    np.testing.assert_array_equal(np.load("d.npy"), expected["out"][None])


def test_the_report_names_the_outputs_that_are_not_written(model: Path) -> None:
    write_floats("in.wav", np.zeros((1600, 2), np.float32))
    one = pulse("run", model, "in.wav", "out.wav").stdout
    assert "out; not written: residue" in one
    assert "delay of" not in one
    both = pulse("run", model, "in.wav", "--out", "out=a.wav", "--out", "residue=b.wav").stdout
    assert "not written" not in both
    assert "delay of residue" in both


def test_inputs_other_than_sound_come_from_other_files(tmp_path: Path) -> None:
    """Frames with sound, and a tensor without time."""
    nodes = [
        helper.make_node("Mul", ["x", "gain"], ["louder"]),
        helper.make_node("Add", ["louder", "offset"], ["y"]),
    ]
    inputs = {"x": [1, "T"], "offset": [1, "T"], "gain": [1, 1]}
    save("mixed.onnx", nodes, inputs, {"y": [1, "T"]}, metadata={"sample_rate": "8000"})
    sound, offset = quiet_noise(900, 1), quiet_noise(700, 2)
    write_floats("in.wav", sound, 8000)
    np.save("offset.npy", offset[None])
    np.save("gain.npy", np.float32([[2]]))
    details = report(
        "run", "mixed.onnx", "in.wav", "out.wav", "--in", "offset=offset.npy", "--in", "gain=gain.npy"
    )
    np.testing.assert_array_equal(read("out.wav"), 2 * sound + pad_after(offset, 900))
    assert details["padded_s"] == {"offset": 0.025}
    np.save("offset.npy", quiet_noise(1000, 2)[None])
    pulse("run", "mixed.onnx", "in.wav", "out.wav", "--in", "offset=offset.npy", "--in", "gain=gain.npy")
    np.testing.assert_array_equal(read("out.wav"), 2 * pad_after(sound, 1000) + quiet_noise(1000, 2))
    assert "gain" in refusal("run", "mixed.onnx", "in.wav", "out.wav", "--in", "offset=offset.npy")


def test_a_recipe_takes_two_recordings(tmp_path: Path) -> None:
    save(
        "difference.onnx",
        [helper.make_node("Sub", ["a", "b"], ["y"])],
        {"a": [1, 17, "S", 2], "b": [1, 17, "S", 2]},
        {"y": [1, 17, "S", 2]},
    )
    Path("aec.toml").write_text(
        """
        rate = 16000
        inputs = ["mic", "far"]
        [[stage]]
        stft = { n_fft = 32, hop = 16 }
        from = "mic"
        as = "near"
        [[stage]]
        stft = { n_fft = 32, hop = 16 }
        from = "far"
        as = "echo"
        [[stage]]
        model = "difference.onnx"
        from = ["near", "echo"]
        [[stage]]
        istft = { n_fft = 32, hop = 16, length = "T" }
        """
    )
    near, far = quiet_noise(4000, 1), quiet_noise(4000, 2)
    write_floats("near.wav", near)
    write_floats("far.wav", far)
    pulse("run", "aec.toml", "--in", "mic=near.wav", "--in", "far=far.wav", "out.wav")
    np.testing.assert_allclose(read("out.wav"), near - far, atol=1e-6)
    assert "equal" in pulse("check", "aec.toml").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["mono.wav", "out.wav"],
            "has 1 channel, and aec has 2 audio inputs: mic, far; give --in mic=SOURCE --in",
        ),
        (["three.wav", "out.wav"], "has 3 channels, and aec has 2 audio inputs"),
        (["out.wav", "--in", "mic=mono.wav"], "no source for input far; give --in far=SOURCE"),
        (
            ["--in", "mic=mono.wav:1", "--in", "far=mono.wav", "out.wav"],
            "input mic uses channel 1; it has 1",
        ),
        (
            ["two.wav", "--in", "mic=mono.wav", "--in", "far=mono.wav", "--out", "residue=r.wav"],
            "two.wav: no input is left for it, since --in names mic, far; omit it, or if it is an output",
        ),
        (
            ["two.wav", "out.wav", "--in", "mic=mono.wav", "--in", "far=two.wav:1"],
            "two.wav: no input is left",
        ),
        (
            ["--in", "ear=mono.wav", "out.wav"],
            "unknown input 'ear' (did you mean far?); choose one of mic, far",
        ),
        (["--in", "mic", "out.wav"], "give NAME=SOURCE or NAME=SOURCE:CHANNEL"),
        (["--in", "mic=:0", "--in", "far=mono.wav", "out.wav"], "a channel of no file; give IN"),
        (["three.wav", "out.wav", "--channel", "1"], "--channel 1: aec has inputs mic, far"),
        (["--in", "mic=mono.wav", "--in", "mic=mono.wav", "out.wav"], "mic already takes mono.wav"),
        (["--in", "mic=mono.wav", "--in", "far=mono.wav", "mono.wav"], "is the input"),
        (["three.wav", "out.wav", "--out", "out=a.wav"], "omit OUT"),
        (["two.wav", "--out", "wrong=a.wav"], "unknown output 'wrong'"),
        (["two.wav", "--out", "out"], "give NAME=FILE"),
        (["two.wav", "--out", "out=a.csv", "--out", "residue=a.csv"], "holds the frames of one output"),
    ],
)
def test_recordings_that_do_not_fit_the_inputs_are_refused(
    model: Path, arguments: list[str], message: str
) -> None:
    for name, channels in (("mono", 1), ("two", 2), ("three", 3)):
        write_floats(f"{name}.wav", np.zeros((1600, channels), np.float32))
    before = Path("mono.wav").read_bytes()
    assert message in refusal("run", model, *arguments)
    assert Path("mono.wav").read_bytes() == before
    assert not Path("out.wav").exists()


@pytest.mark.parametrize(
    ("arguments", "channels"),
    [
        ([], (0, 1)),
        (["--mic", "in.wav:1", "--far", "in.wav:0"], (1, 0)),
        (["--in", "mic=:1", "--in", "far=:1"], (1, 1)),
    ],
    ids=["in order", "--mic and --far", "--in"],
)
def test_file_channels_replace_device_channels(
    model: Path, arguments: list[str], channels: tuple[int, int]
) -> None:
    sounds = quiet_noise(4000, 1), quiet_noise(4000, 2)
    write_floats("in.wav", np.stack(sounds, axis=1))
    details = report("run", model, "in.wav", "out.wav", "--live", "--quiet", "--headroom", "500", *arguments)
    mic, far = (sounds[channel] for channel in channels)
    expected = cancelled_sound(cancelling_program(), mic, far)["out"]
    late = details["statistics"]["delay"]["frames"]
    np.testing.assert_array_equal(read("out.wav")[late : late + 4000, 0], expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["mono.wav"],
            "mono.wav: has 1 channel, and aec has 2 audio inputs: mic, far; give --in mic=SOURCE",
        ),
        (["three.wav"], "three.wav: has 3 channels, and aec has 2 audio inputs"),
        (["two.wav", "--mic", "two.wav:0"], "no channel is given for far"),
        (["two.wav", "--far", "two.wav:0", "--in", "far=:1"], "--in already gives the source of far"),
        (["two.wav", "--out", "out=a.wav"], "--out excludes --live"),
        (["two.wav", "--channel", "1"], "has the inputs mic, far, each of one channel"),
    ],
)
def test_live_signals_that_do_not_fit_the_inputs_are_refused(
    model: Path, arguments: list[str], message: str
) -> None:
    for name, channels in (("mono", 1), ("two", 2), ("three", 3)):
        write_floats(f"{name}.wav", np.zeros((1600, channels), np.float32))
    assert message in refusal("run", model, *arguments, "--live", "--quiet")


def test_far_needs_a_second_input() -> None:
    write_floats("in.wav", np.zeros(1600, np.float32))
    assert "has one audio input, audio, which --mic gives" in refusal(
        "run", "in.wav", "out.wav", "--live", "--quiet", "--far", "usb"
    )
