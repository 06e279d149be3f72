"""The played sound and the records are bit by bit the outputs of sessions, after the reported delay."""

import numpy as np
import onnxruntime
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import pulse
from pulse.facts import Array
from pulse.program.program import Program
from streaming.audio.channels import Channels
from streaming.audio.files import AudioReader
from streaming.builtin import model_path, noisy_path
from streaming.virtual.host import VirtualDevice
from tests.agreement import assert_outputs_equal
from tests.noise import normal_noise
from tests.streaming.live.runs import (
    RATE,
    assert_frames_add_up,
    chunk_program,
    delayed_model,
    engines,
    frames_of,
    late_by,
    meter_model,
    played_by,
    runs,
    session_outputs,
    sum_model,
)
from tests.streaming.models import cached_program, filter_model

MODELS = {"y": (filter_model, sum_model, delayed_model, meter_model), "loud": (filter_model,)}


def device(channels_in: int = 1, channels_out: int = 1) -> VirtualDevice:
    return VirtualDevice(inputs=channels_in, outputs=channels_out, rate_hz=RATE)


def assert_played_and_recorded(
    program: Program,
    x: Array,
    output: str = "y",
    blocks: list[int] | None = None,
    channels: str = "mix",
    outputs: int = 1,
    constants: dict[str, float] | None = None,
    **options: float | str | None,
) -> None:
    """Run x [frames, channels] in blocks of these sizes; compare the sound and the records with sessions."""
    sizes = None if blocks is None else frames_of(blocks, len(x))
    with runs(
        program,
        device=device(x.shape[1], outputs),
        channels=channels,
        output=output,
        records=True,
        constants=constants,
        **options,
    ) as (host, live):
        played = host.run(x, sizes)
        counters, delay = live.statistics().counters, live.delay.frames
        assert_frames_add_up(live, len(x))
    selected = Channels.parse(channels).select(x)
    expected = late_by(played_by(program, selected, output, constants), delay, len(x))
    if expected.shape[1] == 1:
        expected = np.repeat(expected, played.shape[1], axis=1)
    np.testing.assert_array_equal(played[:, : expected.shape[1]], expected)
    np.testing.assert_array_equal(played[:, expected.shape[1] :], 0)
    assert (counters.frames_silent, counters.frames_skipped, counters.frames_lost) == (0, 0, 0)
    assert_records_equal(live.outputs.flush(), session_outputs(program, selected, constants))


def assert_records_equal(records: list[dict[str, Array]], expected: list[dict[str, Array]]) -> None:
    assert len(records) == len(expected)
    for outputs, expected_outputs in zip(records, expected):
        assert_outputs_equal(outputs, expected_outputs)


@engines
@pytest.mark.parametrize("block", [1, 3, 64, 159, 160, 161, 333, 480, 1000])
def test_blocks_of_any_size_give_the_same_sound(engine: str, block: int) -> None:
    assert_played_and_recorded(
        cached_program(filter_model),
        normal_noise(block * max(3000 // block, 3), 1),
        engine=engine,
        block=block,
    )


def play_random_run(engine: str, data: st.DataObject) -> None:
    """Run random blocks; a worker has the time of the largest block."""
    output = data.draw(st.sampled_from([*MODELS]), "output")
    compiled = cached_program(
        data.draw(st.sampled_from(MODELS[output])), data.draw(st.sampled_from([8, 16, 24, 160, 480]), "pulse")
    )
    blocks = data.draw(st.lists(st.integers(1, 1000), min_size=1, max_size=6), "blocks")
    changing = len(set(blocks)) > 1
    inputs, outputs = data.draw(st.integers(1, 2), "inputs"), data.draw(st.integers(1, 3), "outputs")
    channels = data.draw(st.sampled_from(["mix", *map(str, range(inputs)), "each"]), "channels")
    if channels == "each" and outputs < inputs:
        outputs = inputs
    if channels in "01":
        inputs = int(channels) + 1
    event(f"{channels}, {'changing' if changing else 'equal'} blocks")
    total = sum(blocks) * data.draw(st.integers(1, 3), "rounds")
    x = normal_noise(total, inputs, seed=total)
    headroom_s = None
    if engine == "worker":
        some = data.draw(st.sampled_from([None, 0.0, 0.02]), "headroom")
        headroom_s = max(blocks) / RATE if changing else some
    reserve = data.draw(st.sampled_from([0, 0, 50]), "reserve")
    assert_played_and_recorded(
        compiled,
        x,
        output,
        blocks if changing else None,
        channels,
        outputs,
        engine=engine,
        block=0 if changing else blocks[0],
        headroom_s=headroom_s,
        reserve_frames=reserve,
    )


@engines
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_runs_play_and_record_session_outputs(engine: str, data: st.DataObject) -> None:
    play_random_run(engine, data)


@pytest.mark.slow
@engines
@settings(max_examples=3000, deadline=None)
@given(data=st.data())
def test_many_random_runs_play_and_record_session_outputs(engine: str, data: st.DataObject) -> None:
    play_random_run(engine, data)


@engines
def test_a_model_of_chunks_with_a_constant_is_played(engine: str) -> None:
    """A model of chunks that keeps its state, and has a gain."""
    x = normal_noise(3200, 2)
    assert_played_and_recorded(
        chunk_program(),
        x,
        block=100,
        channels="each",
        outputs=2,
        constants={"gain": np.float32(0.25)},
        engine=engine,
    )


def test_a_run_that_plays_nothing_has_records() -> None:
    compiled, x = cached_program(meter_model), normal_noise(1000, 1)
    with runs(compiled, block=100, play=False, records=True) as (host, live):
        assert host.run(x).size == 0
        assert live.statistics().levels_out == ()
    assert_records_equal(live.outputs.flush(), session_outputs(compiled, x))


def test_records_are_taken_soon_after_their_pulses() -> None:
    """Only frames that depend on the end are held back; the last pulse may not have run."""
    compiled, x = cached_program(filter_model, 16), normal_noise(1600, 1)
    with runs(compiled, block=40, records=True) as (host, live):
        parts = []
        for piece in np.split(x, 8):
            host.run(piece)
            parts += live.outputs.take_ready()
        assert sum(part["y"].shape[1] for part in parts) >= 1600 - 40 - 16 - 2
    parts += live.outputs.flush()
    outputs = {name: np.concatenate([part[name] for part in parts], 1) for name in ("y", "loud")}
    assert_records_equal([outputs], session_outputs(compiled, x))


@engines
def test_a_played_denoiser_agrees_with_onnxruntime(engine: str) -> None:
    """The built-in model, a whole file, in odd blocks."""
    compiled = pulse.stream(str(model_path()), pulse=160)
    with AudioReader(noisy_path()) as file:
        x = np.concatenate(list(file))[:31930]
    session = onnxruntime.InferenceSession(str(model_path()))
    (expected,) = session.run(None, {"audio": x.T})
    with runs(compiled, block=155, engine=engine) as (host, live):
        played, delay = host.run(x), live.delay.frames
    np.testing.assert_allclose(played[delay:], expected[0, : len(x) - delay, None], atol=2e-5)
    assert not played[:delay].any()


def test_only_two_of_more_channels_are_opened() -> None:
    """A mix takes the first two channels of a device."""
    x = normal_noise(480, 2)
    with runs(cached_program(), device=device(8, 8)) as (host, live):
        assert (live.pipeline.stream_config.channels_in, live.pipeline.stream_config.channels_out) == (2, 2)
        played = host.run(x)
    np.testing.assert_array_equal(played[160:, 0], x.mean(1)[:-160])
    np.testing.assert_array_equal(played[:, 1], played[:, 0])
