"""Blocks of several inputs of other rates: counts, pulses, marks, and refusals that change nothing."""

from typing import Any

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from streaming.blocks.input_blocks import InputBlocks
from tests.noise import next_noise
from tests.streaming.models import cached_program, filter_model, limited_model, two_rate_model

RATES = {"fast": 4, "slow": 1}
PULSE = 3


@pytest.fixture
def blocks() -> InputBlocks:
    return InputBlocks(cached_program(two_rate_model, PULSE))


def sounds(rng: np.random.Generator, **frames: int) -> dict[str, Array]:
    return {name: next_noise(rng, 1, 1, count) for name, count in frames.items()}


def test_pulses_are_slices_of_each_input(blocks: InputBlocks, rng: np.random.Generator) -> None:
    whole = {name: np.zeros((1, 1, 0), np.float32) for name in RATES}
    taken = 0
    for _ in range(200):
        fed = sounds(rng, fast=int(rng.integers(0, 30)), slow=int(rng.integers(0, 8)))
        fed = {name: block for name, block in fed.items() if rng.integers(4)}
        whole = {
            name: np.concatenate([whole[name], fed.get(name, whole[name][..., :0])], 2) for name in RATES
        }
        pulses = blocks.feed(blocks.check(fed))
        assert pulses == min(whole[name].shape[2] // rate for name, rate in RATES.items()) // PULSE - taken
        for name, pulse in blocks.take(pulses).items() if pulses else ():
            start, frames = taken * PULSE * RATES[name], pulses * PULSE * RATES[name]
            np.testing.assert_array_equal(pulse, whole[name][..., start : start + frames])
        blocks.keep()
        taken += pulses
        assert blocks.received_frames == {name: array.shape[2] for name, array in whole.items()}
        assert blocks.frames_in == min(whole[name].shape[2] // rate for name, rate in RATES.items())
    assert taken > 50


def test_pending_frames_count_the_fullest_input(blocks: InputBlocks, rng: np.random.Generator) -> None:
    blocks.feed(sounds(rng, fast=30, slow=2))
    blocks.keep()
    assert (blocks.max_pending_frames, blocks.min_pending_frames) == (7, 2)
    assert blocks.pending_by_input == [30, 2]


def test_rewinding_restores_frames_and_counts(blocks: InputBlocks, rng: np.random.Generator) -> None:
    blocks.feed(sounds(rng, fast=5, slow=1))
    blocks.keep()
    before = {name: array.copy() for name, array in blocks.pending_arrays().items()}
    mark = blocks.mark()
    blocks.take(blocks.feed(sounds(rng, fast=20, slow=6)))
    blocks.keep()
    blocks.rewind(mark)
    assert blocks.received_frames == {"fast": 5, "slow": 1}
    for name, array in blocks.pending_arrays().items():
        np.testing.assert_array_equal(array, before[name])


def test_stored_blocks_wait_in_another_stream(blocks: InputBlocks, rng: np.random.Generator) -> None:
    blocks.feed(sounds(rng, fast=5, slow=1))
    blocks.keep()
    other = InputBlocks(blocks.program)
    other.load([*blocks.received_frames.values()], blocks.pending_by_input, blocks.dump())
    assert [len(chunk) for chunk in other.dump()] == other.nbytes(other.pending_by_input)
    assert other.dump() == blocks.dump()
    assert other.received_frames == blocks.received_frames


def test_pulses_that_bypass_the_queues_are_counted(blocks: InputBlocks, rng: np.random.Generator) -> None:
    pulse = sounds(rng, fast=4 * PULSE, slow=PULSE)
    assert blocks.is_pulse(pulse)
    blocks.count_pulses(2)
    assert blocks.received_frames == {"fast": 8 * PULSE, "slow": 2 * PULSE}
    blocks.reset()
    assert blocks.received_frames == {"fast": 0, "slow": 0}


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros((1, 1, 4), np.float32), r"2 inputs stream: push them by name, fast: \[1, 1, any\] f32"),
        ({"other": np.zeros((1, 1, 4), np.float32)}, "other is not a streaming input"),
        (
            {"fast": np.zeros((1, 2, 4), np.float32)},
            r"fast: expected \[1, 1, any\] f32, got shape \[1, 2, 4\]",
        ),
        ({"fast": np.zeros((1, 1, 4))}, r"got f64; convert it with \.astype\(np\.float32\)"),
        ({"fast": np.float32([[[0, 1, np.nan]]])}, "fast: NaN at frame 7; replace it"),
    ],
    ids=["no name", "name", "shape", "type", "NaN"],
)
def test_refused_blocks_change_nothing(
    blocks: InputBlocks, rng: np.random.Generator, x: Any, message: str
) -> None:
    blocks.feed(sounds(rng, fast=5))
    blocks.keep()
    with pytest.raises(InputError, match=message):
        blocks.check(x)
    assert blocks.received_frames == {"fast": 5, "slow": 0}


def test_nan_passes_unchecked_and_infinities_pass() -> None:
    program = cached_program(filter_model, PULSE)
    assert InputBlocks(program).check(np.float32([[np.inf]]))
    assert InputBlocks(program, check_finite=False).check(np.float32([[np.nan]]))


def test_frames_beyond_the_limit_of_the_model_are_refused() -> None:
    program = cached_program(limited_model, PULSE)
    assert program.limit is not None
    blocks = InputBlocks(program)
    (port,) = (port for port in program.inputs if port.streams)
    shape = [program.limit + 1 if axis == port.axis else size for axis, size in enumerate(port.shape)]
    with pytest.raises(InputError, match=f"the model takes at most {program.limit} frames"):
        blocks.check(np.zeros(shape, port.dtype))
