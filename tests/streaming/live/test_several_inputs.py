"""Live runs of models with several audio inputs: channels of one device, on one clock."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from pulse.errors import InputError
from streaming.audio.channels import Channels, Samples
from streaming.live import EngineConfig, Live, Plan
from streaming.live.file_host import FileHost
from streaming.realtime.realtime_settings import UNCHANGED
from streaming.routing import Route
from streaming.virtual.host import VirtualDevice, VirtualHost
from tests.noise import quiet_noise
from tests.streaming.echo_canceller import cancelled_sound, cancelling_program
from tests.streaming.live.runs import BLOCK, RATE, assert_frames_add_up, engines, late_by

PAIR = VirtualDevice("pair", inputs=2, outputs=1, rate_hz=RATE)


def two_input_run(
    program: Any,
    *routes: Route,
    device: VirtualDevice = PAIR,
    block: int = BLOCK,
    others: Any = (),
    **how: Any,
) -> tuple[VirtualHost, Live]:
    host = VirtualHost(device, *others)
    options = {name: how.pop(name) for name in ("channels", "rate_hz", "input") if name in how}
    plan = Plan(options.pop("rate_hz", RATE), block_frames=block, routes=routes, **options)
    return host, Live(program, plan, EngineConfig(**how), UNCHANGED, None, None, host)


def stereo_noise(frames: int) -> Samples:
    return np.stack([quiet_noise(frames, 1), quiet_noise(frames, 2)], axis=1)


@engines
@pytest.mark.parametrize(("pulse_frames", "block"), [(160, 160), (160, 96), (32, 160)])
def test_channels_feed_inputs_in_order(engine: str, pulse_frames: int, block: int) -> None:
    """The played sound equals a session's output of both channels at the reported delay."""
    compiled, sound = cancelling_program(pulse_frames), stereo_noise(4800)
    host, live = two_input_run(compiled, block=block, engine=engine)
    with live:
        played = host.run(sound)
        assert_frames_add_up(live, len(sound))
        setup, statistics = live.setup, live.statistics()
    expected = cancelled_sound(compiled, *sound.T)["out"][:, None]
    np.testing.assert_array_equal(played, late_by(expected, live.pipeline.delay_frames, len(sound)))
    assert setup.channels == "mic takes channel 0, far takes channel 1"
    assert setup.streams == 1
    assert len(statistics.levels_in) == 2
    assert statistics.counters.frames_silent == 0


@pytest.mark.parametrize(("mic", "far"), [(3, 1), (0, 2), (2, 2)])
def test_routes_choose_the_channels_of_inputs(mic: int, far: int) -> None:
    """The device has four channels; both inputs may take the same one."""
    compiled = cancelling_program()
    sound = np.stack([quiet_noise(1600, seed) for seed in range(4)], axis=1)
    four = VirtualDevice("four", inputs=4, rate_hz=RATE)
    routes = Route("far", "four", far), Route("mic", "", mic)
    host, live = two_input_run(compiled, *routes, device=four)
    with live:
        opened = live.pipeline.stream_config.channels_in
        assert opened == max(mic, far) + 1
        played = host.run(sound[:, :opened])
    expected = cancelled_sound(compiled, sound[:, mic], sound[:, far])["out"][:, None]
    np.testing.assert_array_equal(played, late_by(expected, live.pipeline.delay_frames, len(sound)))


def test_inputs_of_another_rate_stay_aligned() -> None:
    """A click in both channels is one click to the model, after a resampler for each."""
    compiled = cancelling_program()
    device = VirtualDevice("pair", inputs=2, outputs=1, rate_hz=48000)
    plays: dict[str, Samples] = {}
    for name, sound in {"both": [1, 1], "mic": [1, 0], "far": [0, 1], "none": [0, 0]}.items():
        impulse = np.zeros((48000, 2), np.float32)
        impulse[24000] = sound
        host, live = two_input_run(compiled, device=device, block=480)
        with live:
            plays[name] = host.run(impulse)
    assert np.argmax(np.abs(plays["mic"])) == 24000 + live.pipeline.delay_frames
    linear = plays["mic"] + plays["far"] - plays["none"]
    far = np.abs(plays["far"] - plays["none"])
    assert 0 <= np.argmax(far) - 24000 - live.pipeline.delay_frames <= 3 * 9
    assert np.abs(plays["both"] - linear).max() < 0.2  # all but the piece that is not linear


def test_outputs_of_two_inputs_equal_a_session() -> None:
    compiled, sound = cancelling_program(160), stereo_noise(1000)
    host, live = two_input_run(compiled, records=True)
    with live:
        host.run(sound, [160, 100])
    parts = [live.outputs.take_ready()[0], live.outputs.flush()[0]]
    expected = cancelled_sound(compiled, *sound.T)
    for name, whole in expected.items():
        output = np.concatenate([part[name] for part in parts], axis=1)[0]
        np.testing.assert_array_equal(output, whole)


def test_the_numpy_backend_plays_the_same() -> None:
    compiled, sound = cancelling_program(160, "numpy"), stereo_noise(800)
    host, live = two_input_run(compiled, records=True)
    with live:
        played = host.run(sound)
    expected = cancelled_sound(compiled, *sound.T)["out"][:, None]
    np.testing.assert_array_equal(played, late_by(expected, live.pipeline.delay_frames, len(sound)))


def test_bypass_snapshots_and_swaps_work_with_two_inputs() -> None:
    """Bypass plays the first input; a snapshot brings back the memory of both inputs; another program takes over."""
    compiled, sound = cancelling_program(), stereo_noise(3200)
    host, live = two_input_run(compiled)
    with live:
        live.control.bypassed = True
        bypassed = host.run(sound)
        delay = live.pipeline.delay_frames
        np.testing.assert_array_equal(bypassed[320:], late_by(sound[:, :1], delay, len(sound))[320:])
        live.control.bypassed = False
        host.run(np.zeros((1600, 2), np.float32))
        host.advance(0.001)
        saved = live.control.snapshot()
        first = host.run(sound)
        host.run(np.zeros((1600, 2), np.float32))
        host.advance(0.001)
        live.control.restore(saved)
        np.testing.assert_array_equal(host.run(sound)[delay:], first[delay:])
        live.control.swap(cancelling_program(160), prime_s=0.05)
        host.run(sound)
        assert not live.control.is_swapping


def test_recordings_have_all_channels(tmp_path: Path) -> None:
    host, live = two_input_run(cancelling_program())
    sound = stereo_noise(1600)
    with live:
        recorder = live.record(tmp_path / "in.wav", tmp_path / "out.wav")
        played = host.run(sound)
    recorder.close()
    np.testing.assert_array_equal(soundfile.read(tmp_path / "in.wav", dtype="float32")[0], sound)
    np.testing.assert_array_equal(soundfile.read(tmp_path / "out.wav", dtype="float32")[0], played[:, 0])


def test_a_file_replaces_the_device(tmp_path: Path) -> None:
    sound = stereo_noise(4000)
    soundfile.write(tmp_path / "in.wav", sound, RATE, subtype="FLOAT")
    host = FileHost(tmp_path / "in.wav", tmp_path / "out.wav", pace=None)
    with Live(cancelling_program(), Plan(RATE), host=host, realtime=UNCHANGED) as live:
        assert live.wait(30)
    played = soundfile.read(tmp_path / "out.wav", dtype="float32", always_2d=True)[0]
    expected = cancelled_sound(cancelling_program(), *sound.T)["out"]
    delay = live.pipeline.delay_frames
    np.testing.assert_array_equal(played[delay : delay + 4000, 0], expected)


@pytest.mark.parametrize(
    ("device", "routes", "how", "message"),
    [
        pytest.param(
            VirtualDevice(rate_hz=RATE),
            (),
            {},
            "virtual: has 1 channel, and chunks has 2 audio inputs: mic, far",
            id="one channel",
        ),
        pytest.param(PAIR, (Route("mic", "", 0),), {}, "no channel is given for far", id="channel missing"),
        pytest.param(
            PAIR,
            (Route("mic", "", 0), Route("far", "", 2)),
            {},
            "pair: has no channel 2; it has 2 channels",
            id="no such channel",
        ),
        pytest.param(
            PAIR,
            (Route("ear", "", 0),),
            {},
            "unknown audio input 'ear' (did you mean far?); choose one of mic, far",
            id="no such input",
        ),
        pytest.param(PAIR, (), {"channels": Channels(each=True)}, "each of one channel", id="each channel"),
        pytest.param(
            PAIR,
            (Route("mic", "pair", 0), Route("far", "monitor", 0)),
            {},
            "mic takes pair, and far monitor of other: two devices have two clocks",
            id="two clocks",
        ),
    ],
)
def test_routes_that_do_not_fit_are_refused(device: Any, routes: Any, how: Any, message: str) -> None:
    other = VirtualDevice("monitor of other", rate_hz=RATE)
    with pytest.raises(InputError) as refusal:
        two_input_run(cancelling_program(), *routes, device=device, others=[other], **how)
    assert message in str(refusal.value)


def test_a_single_input_may_have_a_route() -> None:
    """``pair:1`` is a channel of the device ``pair``, unless a device has that name."""
    from tests.streaming.models import cached_program, copy_model

    host, live = two_input_run(cached_program(copy_model), Route("x", "pair", 1))
    with live:
        assert live.pipeline.stream_config.channels == Channels(1)
        sound = stereo_noise(800)
        played = host.run(sound)
    np.testing.assert_array_equal(played, late_by(sound[:, 1:], live.pipeline.delay_frames, 800))
    odd = VirtualDevice("pair:1", inputs=1, rate_hz=RATE)
    host, live = two_input_run(cached_program(copy_model), Route("x", "pair", 1), others=[odd])
    assert live.devices.source.name == "pair:1"
