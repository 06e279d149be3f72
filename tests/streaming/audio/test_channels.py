"""Models whose audio has several channels, run over files: layouts, sources of channels, outputs by channel."""

from pathlib import Path

import numpy as np
import onnx
import pytest
import soundfile
from onnx import helper, numpy_helper

from pulse.facts import Array
from streaming.native.resample import AudioResampler
from tests.agreement import assert_close
from tests.noise import quiet_noise
from tests.streaming.channel_mixer import LAYOUTS, channel_mixer, mixed_sound
from tests.streaming.command import pulse, refusal, report, save, write_sound

ROUNDING = 36 * 2**-24
"""The rounding error of 36 multiply-adds, of the largest value."""

pytestmark = pytest.mark.usefixtures("working_folder")


def save_mixer(inputs: int, outputs: int, layout: str = "1,C,T") -> str:
    onnx.save(channel_mixer(inputs, outputs, layout), "mixer.onnx")
    return "mixer.onnx"


def noise(frames: int, channels: int) -> Array:
    return np.stack([quiet_noise(frames, seed) for seed in range(channels)], axis=1)


def write_floats(name: str, sound: Array, rate_hz: int = 16000) -> str:
    return write_sound(name, sound, rate_hz, subtype="FLOAT")


def read(name: str) -> Array:
    return soundfile.read(name, dtype="float32", always_2d=True)[0]


def assert_equals(name: str, expected: Array) -> None:
    assert_close(read(name), expected, share=ROUNDING)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("inputs", "outputs"), [(2, 2), (1, 2), (4, 1), (2, 8)])
def test_a_file_of_several_channels_equals_offline(layout: str, inputs: int, outputs: int) -> None:
    sound = noise(3000, inputs)
    result = report("run", save_mixer(inputs, outputs, layout), write_floats("in.wav", sound), "out.wav")
    assert result["rate_hz"] == 16000
    assert_equals("out.wav", mixed_sound(sound, outputs))


def test_each_channel_is_resampled() -> None:
    sound = noise(4410, 2)
    pulse("run", save_mixer(2, 2), write_floats("in.wav", sound, 44100), "out.wav", "--rate", 16000)

    def at_rate(samples: Array, rate_in_hz: int, rate_out_hz: int, length: int | None = None) -> Array:
        resampler = AudioResampler(rate_in_hz, rate_out_hz, 2)
        return np.concatenate([resampler.process(samples), resampler.flush(length)])

    mixed = mixed_sound(at_rate(sound, 44100, 16000), 2)
    assert_equals("out.wav", at_rate(mixed, 16000, 44100, len(sound)))


def test_channels_come_from_several_files() -> None:
    """Sample k of each channel is simultaneous, and shorter files are padded."""
    short, long = noise(1300, 2), noise(2900, 1)
    write_floats("short.wav", short)
    write_floats("long.wav", long)
    routes = ["--in", "x:2=short.wav:1", "--in", "x:0=long.wav", "--in", "x:1=short.wav:0"]
    result = report("run", save_mixer(3, 2), *routes, "out.wav")
    padded = np.concatenate([short, np.zeros((1600, 2), np.float32)])
    assert_equals("out.wav", mixed_sound(np.concatenate([long, padded], axis=1), 2))
    assert result["padded_s"] == {"x:1": 0.1, "x:2": 0.1}


def test_an_input_is_named_as_a_whole_or_by_channel() -> None:
    sound = noise(1000, 2)
    write_floats("in.wav", sound)
    model = save_mixer(2, 2)
    pulse("run", model, "--in", "x=in.wav", "whole.wav")
    pulse("run", model, "in.wav", "--in", "x:0=:1", "--in", "x:1=:0", "--out", "y=turned.wav")
    assert_equals("whole.wav", mixed_sound(sound, 2))
    assert_equals("turned.wav", mixed_sound(sound[:, ::-1], 2))


def test_outputs_are_written_by_channel_or_whole() -> None:
    sound = noise(2000, 1)
    model, expected = save_mixer(1, 3), mixed_sound(sound, 3)
    routes = [
        "--out",
        "y:2=pair.wav",
        "--out",
        "y:0=pair.wav",
        "--out",
        "y:1=one.wav",
        "--out",
        "y=frames.npy",
    ]
    result = report("run", model, write_floats("in.wav", sound), *routes)
    assert_equals("pair.wav", expected[:, [2, 0]])
    assert_equals("one.wav", expected[:, 1:2])
    assert_close(np.load("frames.npy"), expected.T[None], share=ROUNDING)
    assert [delay["output"] for delay in result["delays"]] == ["y"]


def test_stereo_sources_are_channels_source_by_source() -> None:
    """A separator gives [1, sources, 2, T]."""
    model = channel_mixer(2, 8)
    model.graph.node[-1].CopyFrom(helper.make_node("Reshape", ["mixed", "sources"], ["y"], "sources"))
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 4, 2, -1]), "sources"))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, [1, 4, 2, "T"]))
    onnx.save(model, "separate.onnx")
    sound = noise(1200, 2)
    expected = mixed_sound(sound, 8)
    pulse("run", "separate.onnx", write_floats("in.wav", sound), "all.wav")
    assert_equals("all.wav", expected)
    pulse("run", "separate.onnx", "in.wav", "--out", "y:2=bass.wav", "--out", "y:3=bass.wav")
    assert_equals("bass.wav", expected[:, 2:4])


def test_one_channel_of_the_output_goes_to_out() -> None:
    sound = noise(900, 2)
    pulse("run", save_mixer(2, 2), write_floats("in.wav", sound), "out.wav", "--output", "y:1")
    assert_equals("out.wav", mixed_sound(sound, 2)[:, 1:])


def test_a_program_file_takes_channels() -> None:
    sound = noise(1500, 2)
    pulse("compile", save_mixer(2, 2), "-o", "mixer.pulse", "--rate", 16000)
    pulse("run", "mixer.pulse", write_floats("in.wav", sound), "out.wav")
    assert_equals("out.wav", mixed_sound(sound, 2))


def test_the_report_names_channels_out_of_order() -> None:
    write_floats("in.wav", noise(500, 2))
    model = save_mixer(2, 1)
    assert "x:0" not in pulse("run", model, "in.wav", "out.wav").stdout
    text = pulse("run", model, "--in", "x:0=in.wav:1", "--in", "x:1=in.wav:1", "out.wav").stdout
    assert "x:0: in.wav, 16000 Hz, channel 1 of 2, counted from 0" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["mono.wav"],
            "mono.wav: has 1 channel, and mixer takes 2 channels: x:0, x:1; give --in x:0=SOURCE --in",
        ),
        (["three.wav"], "three.wav: has 3 channels, and mixer takes 2 channels: x:0, x:1;"),
        (
            ["three.wav", "--channel", "each"],
            "--channel each: mixer has inputs x:0, x:1; give each its channel",
        ),
        (
            ["--in", "x=mono.wav:0"],
            "--in x=mono.wav:0: x takes 2 channels; give each its own: --in x:0=mono.wav:C",
        ),
        (
            ["--in", "x:2=mono.wav"],
            "mixer: --in x:2=mono.wav: unknown input 'x:2' (did you mean x:1?); choose one of x, x:0, x:1",
        ),
        (["--in", "x:0=mono.wav"], "mixer: no source for input x:1; give --in x:1=SOURCE"),
        (["--in", "x=mono.wav", "--in", "x:1=mono.wav"], "--in x:1=mono.wav: x already takes mono.wav"),
        (["--in", "x:1=mono.wav", "--in", "x=mono.wav"], "--in x=mono.wav: x:1 already takes mono.wav"),
        (
            ["--in", "x:0=x.npy", "--in", "x:1=mono.wav"],
            "--in x:0=x.npy: an array has all channels; give --in x=x.",
        ),
        (["three.wav", "--output", "y:3"], "unknown output 'y:3'; choose one of y"),
        (["three.wav", "out.npy", "--output", "y:0"], "out.npy: holds whole frames; give the output y"),
    ],
)
def test_channels_that_do_not_fit_are_refused(arguments: list[str], message: str) -> None:
    write_floats("mono.wav", noise(200, 1))
    write_floats("three.wav", noise(200, 3))
    np.save("x.npy", np.zeros((1, 2, 200), np.float32))
    model = save_mixer(2, 2)
    assert message in refusal("run", model, *arguments)
    assert not any(Path().glob("*out*"))


def test_more_values_than_channels_are_features() -> None:
    message = refusal("run", save_mixer(9, 1), write_floats("in.wav", noise(100, 9)), "out.wav")
    assert "mixer: takes x: 1,9,1,f32, not audio of one to 8 channels; write a recipe" in message


def test_audio_of_more_channels_is_given_as_frames() -> None:
    sound = noise(100, 9)
    np.save("in.npy", sound.T)
    pulse("run", save_mixer(9, 1), "in.npy", "out.npy")
    assert_close(np.load("out.npy"), mixed_sound(sound, 1).T[None], share=ROUNDING)


STEREO_SPECTRA = """
rate = 16000
inputs = { x = "CHANNELS,T" }

[[stage]]
stft = { n_fft = 128, hop = 32 }
from = ["x"]
as = "spectrum"

[[stage]]
magnitude = {}

[[stage]]
unsqueeze = { axis = 0 }

[[stage]]
model = "mask.onnx"

[[stage]]
squeeze = { axis = 0 }
as = "mask"

[[stage]]
mask = {}
from = ["spectrum", "mask"]

[[stage]]
istft = { n_fft = 128, hop = 32, length = "T" }
"""


def test_a_recipe_of_stereo_spectra_equals_one_for_each_channel() -> None:
    sound = noise(2100, 2)
    write_floats("in.wav", sound)
    for channels, name in ((2, "stereo"), (1, "mono")):
        size = [1, channels, 65, "T"]
        save("mask.onnx", [helper.make_node("Sigmoid", ["m"], ["g"])], {"m": size}, {"g": size})
        Path(f"{name}.toml").write_text(STEREO_SPECTRA.replace("CHANNELS", str(channels)))
        options = ["--channel", "each"] if channels == 1 else []
        result = report("run", f"{name}.toml", "in.wav", f"{name}.wav", *options)
        assert result["streams"] == 3 - channels
    np.testing.assert_array_equal(read("stereo.wav"), read("mono.wav"))
    assert read("stereo.wav").shape == sound.shape
