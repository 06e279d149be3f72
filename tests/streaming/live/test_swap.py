"""Another program takes over while a pipeline runs: no gap, and the sound keeps its position."""

from collections.abc import Callable

import numpy as np
import pytest

from pulse.errors import InputError, PulseError
from pulse.models import TypedModel
from pulse.program.program import Program
from streaming.live.control import Control
from tests.noise import normal_noise
from tests.streaming.live.runs import (
    BLOCK,
    RATE,
    delayed_model,
    engines,
    late_by,
    play_with_changes,
    runs,
    sum_model,
)
from tests.streaming.models import cached_program, copy_model, decimating_model, filter_model, program


def quiet_model(delay: int = 9) -> TypedModel:
    """The model ``delayed_model`` with half the gain and a longer delay."""
    return delayed_model(delay, 0.5)


@engines
def test_a_swap_keeps_the_delay_and_fades(engine: str) -> None:
    """A program with another delay keeps the position of the sound and fades in within a pulse."""
    x = normal_noise(60 * BLOCK, 1)
    with runs(cached_program(delayed_model), engine=engine, reserve_frames=20, records=False) as (host, live):
        assert live.delay.model_s == 20 / RATE

        def swap():
            live.control.swap(cached_program(quiet_model), prime_s=0.05)
            assert live.control.is_swapping
            assert live.pipeline.program is cached_program(delayed_model)

        played = np.concatenate(play_with_changes(host, x, swap))
        assert not live.control.is_swapping
        assert live.pipeline.program is cached_program(quiet_model)
        delay = live.delay.frames
    aligned = late_by(x, delay, len(x))
    ratio = np.divide(played, aligned, out=np.ones_like(played), where=aligned != 0)[delay:, 0]
    fades = (np.abs(ratio - 1) > 1e-3) & (np.abs(ratio - 0.5) > 1e-3)
    begin, end = np.flatnonzero(fades)[[0, -1]]
    assert end - begin < BLOCK
    np.testing.assert_array_equal(played[: delay + begin - 1], aligned[: delay + begin - 1])
    np.testing.assert_array_equal(played[delay + end + 2 :], aligned[delay + end + 2 :] / 2)
    assert (begin + delay) // BLOCK == 30 + 5 + 1 * (engine == "worker")


def test_a_swap_without_priming_waits_for_the_delay() -> None:
    """The swap waits until the delay of the pipeline has passed: no gap."""
    x = 1 + np.abs(normal_noise(60 * BLOCK, 1))
    with runs(cached_program(delayed_model), reserve_frames=500, engine="callback") as (host, live):
        played = np.concatenate(
            play_with_changes(host, x, lambda: live.control.swap(cached_program(quiet_model), prime_s=0))
        )
        delay = live.delay.frames
    assert (played[delay:] >= 0.49).all()


@pytest.mark.parametrize("policy", ["wait", "drop_oldest", "silence_then_catch_up"])
def test_a_swap_while_late_keeps_the_reported_delay(policy: str) -> None:
    x = 1 + np.abs(normal_noise(100 * BLOCK, 1))
    with runs(cached_program(delayed_model), reserve_frames=20, policy=policy) as (host, live):

        def swap():
            live.control.swap(cached_program(quiet_model), prime_s=0.1)
            host.stall(0.07)

        played = np.concatenate(play_with_changes(host, x, swap))
        assert not live.control.is_swapping
        assert live.statistics().counters.frames_silent > 0
        delay = live.delay.frames
    np.testing.assert_array_equal(played[-20 * BLOCK :], late_by(x / 2, delay, len(x))[-20 * BLOCK :])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cached_program(delayed_model, 80), "has pulses of 80 frames where 160 are running"),
        (
            lambda: cached_program(filter_model),
            "its inputs or outputs differ from those of the program that runs",
        ),
        (lambda: program(decimating_model(), 480, "numba"), "has pulses of 480 frames"),
        (
            lambda: cached_program(quiet_model),
            "delays the audio by 9 frames, but the pipeline reserves 5; start with a larger reserve",
        ),
        (
            lambda: cached_program(delayed_model, backend="numpy"),
            "runs on numpy, in Python; compile all of it",
        ),
    ],
    ids=["pulse", "ports", "rate", "delay", "backend"],
)
def test_swaps_to_misfitting_programs_are_refused(make: Callable[[], Program], message: str) -> None:
    with runs(cached_program(delayed_model), records=False) as (_, live):
        with pytest.raises(InputError, match=message):
            live.control.swap(make())
        assert not live.control.is_swapping


def test_swaps_with_misfitting_snapshots_are_refused() -> None:
    with runs(cached_program(delayed_model), records=False) as (_, live):
        with pytest.raises(InputError, match="2 snapshots for 1 streams: give one for each"):
            live.control.restore(live.control.snapshot() * 2)
        with pytest.raises(InputError, match="belongs to another model or pulse"):
            live.control.restore([cached_program(sum_model).spawn().snapshot()])
        assert not live.control.is_swapping


@pytest.mark.parametrize(
    "command",
    [
        lambda control: control.reset(),
        lambda control: control.snapshot(),
        lambda control: control.swap(cached_program(delayed_model)),
    ],
    ids=["reset", "snapshot", "swap"],
)
def test_a_swap_in_progress_blocks_other_commands(command: Callable[[Control], object]) -> None:
    with runs(cached_program(delayed_model), records=False) as (_, live):
        live.control.swap(cached_program(delayed_model))
        with pytest.raises(PulseError, match="wait until `is_swapping` is False"):
            command(live.control)


def test_only_compiled_programs_are_swapped() -> None:
    refused = pytest.raises(
        PulseError, match="swap: builder runs on numpy, in Python; only a program that runs entirely"
    )
    with runs(cached_program(copy_model, backend="numpy")) as (_, live), refused:
        live.control.swap(cached_program(copy_model))
