"""Live runs of models whose audio has several channels: layouts, resampling, bypass, swaps, outputs by channel."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from onnx import helper

import pulse
from pulse.errors import InputError
from pulse.facts import Array
from streaming import Session
from streaming.audio.channels import Channels
from streaming.live import EngineConfig, Live, Plan
from streaming.live.file_host import FileHost
from streaming.realtime.realtime_settings import UNCHANGED
from streaming.routing import Route
from streaming.virtual.host import VirtualDevice, VirtualHost
from tests.noise import quiet_noise
from tests.streaming.channel_mixer import AHEAD, LAYOUTS, channel_mixer, mixing_program
from tests.streaming.live.runs import BLOCK, RATE, assert_frames_add_up, engines, late_by


def noise(frames: int, channels: int) -> Array:
    return np.stack([quiet_noise(frames, seed) for seed in range(channels)], axis=1)


def session_output(program: Any, sound: Array) -> Array:
    """Return a session's output for audio, both [frames, channels]."""
    session, ports = Session(program), (program.inputs[0], program.outputs[0])
    block = ports[0].shape_sound(sound)
    parts = [session.push({"x": block})["y"], session.flush()["y"]]
    return np.concatenate([ports[1].read_sound(part) for part in parts])


def channels_run(
    program: Any, *routes: Route, outputs: int = 2, inputs: int = 2, rate_hz: int = RATE, **how: Any
) -> tuple[VirtualHost, Live]:
    host = VirtualHost(VirtualDevice("desk", inputs=inputs, outputs=outputs, rate_hz=rate_hz))
    block = round(BLOCK * rate_hz / RATE)
    return host, Live(
        program, Plan(RATE, block_frames=block, routes=routes), EngineConfig(**how), UNCHANGED, host=host
    )


@engines
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("inputs", "outputs", "pulse_frames"), [(2, 2, 160), (4, 3, 32), (1, 2, 160), (3, 1, 80)]
)
def test_the_played_channels_equal_a_session(
    engine: str, layout: str, inputs: int, outputs: int, pulse_frames: int
) -> None:
    program, sound = mixing_program(inputs, outputs, layout, pulse_frames), noise(3200, inputs)
    host, live = channels_run(program, inputs=inputs, outputs=outputs, engine=engine)
    with live:
        played = host.run(sound)
        assert_frames_add_up(live, len(sound))
        setup = live.setup
    expected = session_output(program, sound)
    np.testing.assert_array_equal(played, late_by(expected, live.pipeline.delay_frames, len(sound)))
    assert setup.streams == 1
    if inputs == 2:
        assert setup.channels == "x:0 takes channel 0, x:1 takes channel 1"


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_records_and_the_flush_have_all_channels(backend: str, layout: str) -> None:
    program, sound = mixing_program(2, 2, layout, 160, backend), noise(1000, 2)
    host, live = channels_run(program, records=True)
    with live:
        host.run(sound, [160, 100])
    port = program.outputs[0]
    parts = [live.outputs.take_ready()[0]["y"], live.outputs.flush()[0]["y"]]
    expected = session_output(program, sound)
    np.testing.assert_array_equal(np.concatenate([port.read_sound(part) for part in parts]), expected)


@pytest.mark.parametrize("layout", ["1,C,T", "T,C"])
def test_channels_are_resampled_alone(layout: str) -> None:
    """Each played channel of a device of 48 kHz equals that of a run with the other channel silent."""
    program, sound = mixing_program(2, 2, layout), noise(9600, 2)
    pairs: list[Array] = []
    for mask in ([1, 1], [1, 0], [0, 1]):
        host, live = channels_run(program, rate_hz=48000)
        with live:
            pairs.append(host.run(sound * np.float32(mask)))
    both, left, right = pairs
    assert np.abs(both).max() > 0.1
    np.testing.assert_allclose(both, left + right, rtol=0, atol=1e-6)
    assert np.abs(left[:, 0] - left[:, 1]).max() > 0.01


def test_bypass_plays_the_input_and_repeats_its_last_channel() -> None:
    program, sound = mixing_program(2, 3), noise(1600, 2)
    host, live = channels_run(program, outputs=3)
    with live:
        live.control.bypassed = True
        played = host.run(sound)
    expected = late_by(sound[:, [0, 1, 1]], live.pipeline.delay_frames, len(sound))
    np.testing.assert_array_equal(played[320:], expected[320:])


def test_snapshots_and_swaps_keep_all_channels() -> None:
    program, sound = mixing_program(2, 2), noise(1600, 2)
    host, live = channels_run(program)
    with live:
        host.run(np.zeros((1600, 2), np.float32))
        host.advance(0.001)
        saved, delay = live.control.snapshot(), live.pipeline.delay_frames
        first = host.run(sound)
        host.run(np.zeros((1600, 2), np.float32))
        host.advance(0.001)
        live.control.restore(saved)
        np.testing.assert_array_equal(host.run(sound)[delay:], first[delay:])
        live.control.swap(mixing_program(2, 2, "1,C,T", 160), prime_s=0.05)
        host.run(sound)
        assert not live.control.is_swapping
        host.run(np.zeros((1600, 2), np.float32))
        np.testing.assert_array_equal(host.run(sound)[delay:], first[delay:])


@pytest.mark.parametrize("channel", range(3))
def test_one_chosen_channel_is_played_on_all(channel: int) -> None:
    program, sound = mixing_program(1, 3), noise(1600, 1)
    host, live = channels_run(program, inputs=1, output=f"y:{channel}")
    with live:
        played = host.run(sound)
    expected = session_output(program, sound)[:, [channel, channel]]
    np.testing.assert_array_equal(played, late_by(expected, live.pipeline.delay_frames, len(sound)))


def test_the_output_with_the_channels_of_the_input_is_played() -> None:
    model = channel_mixer(1, 3)
    model.graph.node.append(helper.make_node("Identity", ["x"], ["same"], "same"))
    model.graph.output.append(helper.make_tensor_value_info("same", 1, [1, 1, "T"]))
    host, live = channels_run(pulse.load(model).compile(160), inputs=1)
    sound = noise(800, 1)
    with live:
        played = host.run(sound)
    expected = late_by(sound[:, [0, 0]], live.pipeline.delay_frames, len(sound))
    np.testing.assert_array_equal(played, expected)


def test_each_stream_plays_all_its_channels() -> None:
    """Two streams of a model of one channel in and two out play four channels."""
    program, sound = mixing_program(1, 2), noise(1600, 2)
    host = VirtualHost(VirtualDevice("desk", inputs=2, outputs=4, rate_hz=RATE))
    live = Live(
        program, Plan(RATE, block_frames=BLOCK, channels=Channels(each=True)), realtime=UNCHANGED, host=host
    )
    with live:
        played = host.run(sound)
    streams = [session_output(program, sound[:, [channel]]) for channel in range(2)]
    expected = np.concatenate(streams, axis=1)
    np.testing.assert_array_equal(played, late_by(expected, live.pipeline.delay_frames, len(sound)))


def test_routes_choose_the_device_channels() -> None:
    program, sound = mixing_program(2, 1), noise(1600, 4)
    routes = Route("x:0", "desk", 3), Route("x:1", "", 1)
    host, live = channels_run(program, *routes, inputs=4, outputs=1)
    with live:
        played = host.run(sound)
    expected = session_output(program, sound[:, [3, 1]])
    np.testing.assert_array_equal(played, late_by(expected, live.pipeline.delay_frames, len(sound)))


@pytest.mark.parametrize("channels", [1, 2])
def test_a_file_gets_all_channels(channels: int, tmp_path: Path) -> None:
    """The output file may have more channels than the input file."""
    program, sound = mixing_program(channels, 3), noise(2000, channels)
    soundfile.write(tmp_path / "in.wav", sound, RATE, subtype="FLOAT")
    host = FileHost(tmp_path / "in.wav", tmp_path / "out.wav", pace=None)
    with Live(program, Plan(RATE), realtime=UNCHANGED, host=host) as live:
        live.wait()
    written = soundfile.read(tmp_path / "out.wav", dtype="float32")[0]
    delay = live.pipeline.delay_frames
    np.testing.assert_array_equal(written[delay:], session_output(program, sound)[: len(written) - delay])
    assert len(written) == len(sound) + delay
    assert delay >= AHEAD


@pytest.mark.parametrize(
    ("route", "inputs", "outputs", "output", "message"),
    [
        ("", 1, 2, None, "desk: has 1 channel, and graph takes 2 channels: x:0, x:1;"),
        (
            "",
            2,
            1,
            None,
            "y has 2 channels, but desk plays 1: choose another output device, or play one chan",
        ),
        ("", 2, 2, "y:2", "output 'y:2' cannot be played: of graph y, y:0, y:1 is sound at the rate of its"),
        ("x=desk:1", 2, 2, None, "x=desk:1: x takes 2 channels; give the device alone, or the channel"),
        ("x:0=desk:1", 2, 2, None, "desk: no channel is given for x:1: give one for each input"),
        ("z=desk", 2, 2, None, "unknown audio input 'z'; choose one of x, x:0, x:1"),
    ],
)
def test_channels_that_do_not_fit_are_refused(
    route: str, inputs: int, outputs: int, output: str | None, message: str
) -> None:
    program = mixing_program(2, 2)
    with pytest.raises(InputError, match=message.replace("graph", program.model.title)):
        channels_run(
            program, *([Route.parse(route)] if route else []), inputs=inputs, outputs=outputs, output=output
        )
