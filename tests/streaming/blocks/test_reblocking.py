"""Re-blocking against slices of the whole in numpy: pulses, waiting frames, marks, copies."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from pulse.dim import TDim
from pulse.facts import Array
from pulse.interface import Port
from streaming.blocks.reblocking import Reblocker
from tests.noise import next_noise

PULSE = 3
RUNS, BLOCKS = 60, 30


def port(axis: int) -> Port:
    """A port whose pulses have three frames of [2, 4]."""
    shape = [2, 4]
    shape.insert(axis, PULSE)
    return Port("x", tuple(shape), np.dtype(np.float32), axis, 0, Fraction(1), TDim.of(0))


def slice_of(whole: Array, axis: int, start: int, stop: int) -> Array:
    return np.take(whole, np.arange(start, stop), axis)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_pulses_and_waiting_frames_are_slices_of_the_whole(rng: np.random.Generator, axis: int) -> None:
    """Whatever the blocks, which their caller overwrites, and however many pulses a call takes, or leaves."""
    counts = Counter[str]()
    for _ in range(RUNS):
        queue = Reblocker(port(axis))
        whole, taken = np.zeros(queue.shape(0), np.float32), 0
        for _ in range(BLOCKS):
            block = next_noise(rng, *queue.shape(int(rng.integers(0, 3 * PULSE))))
            whole = np.concatenate([whole, block], axis)
            pending = queue.pending_frames
            queue.feed(block)
            ready = queue.pending_frames // PULSE
            while ready and rng.integers(4):
                pulses = int(rng.integers(1, ready + 1))
                expected = slice_of(whole, axis, taken, taken + pulses * PULSE)
                np.testing.assert_array_equal(queue.take(pulses), expected)
                counts["pulses"] += pulses
                counts["pulses of several blocks"] += pending % PULSE > 0
                ready, taken = ready - pulses, taken + pulses * PULSE
            queue.keep()
            block[:] = np.nan
            counts["left pulses"] += ready
            np.testing.assert_array_equal(
                queue.pending_block(), slice_of(whole, axis, taken, whole.shape[axis])
            )
            assert queue.pending_frames == whole.shape[axis] - taken
            assert queue.is_empty == (whole.shape[axis] == taken)
    assert counts["pulses"] > 1000
    assert min(counts["pulses of several blocks"], counts["left pulses"]) > 100


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_rewinding_gives_the_frames_of_the_mark_again(rng: np.random.Generator, axis: int) -> None:
    """After any blocks and pulses since the mark, as often as it is asked for."""
    rewinds = 0
    for _ in range(RUNS):
        queue = Reblocker(port(axis))
        for _ in range(BLOCKS):
            waiting, mark = queue.pending_block().copy(), queue.mark()
            for _ in range(int(rng.integers(1, 4))):
                queue.feed(next_noise(rng, *queue.shape(int(rng.integers(0, 3 * PULSE)))))
                if queue.pending_frames >= PULSE:
                    queue.take(queue.pending_frames // PULSE)
                queue.keep()
            if rng.integers(2):
                queue.rewind(mark)
                np.testing.assert_array_equal(queue.pending_block(), waiting)
                rewinds += waiting.size > 0
    assert rewinds > 300


@pytest.mark.parametrize("frames", [0, 1, 2, 7])
def test_stored_frames_wait_in_another_queue(frames: int, rng: np.random.Generator) -> None:
    first, second = Reblocker(port(1)), Reblocker(port(1))
    block = next_noise(rng, 2, frames, 4)
    first.feed(block)
    first.keep()
    memory = first.dump()
    assert len(memory) == first.nbytes(frames)
    second.load(memory, frames)
    np.testing.assert_array_equal(second.pending_block(), block)


@pytest.mark.parametrize(
    ("shape", "fits"),
    [
        ((2, 3, 4), True),
        ((2, 0, 4), True),
        ((2, 99, 4), True),
        ((2, 3, 5), False),
        ((2, 3), False),
        ((), False),
    ],
)
def test_blocks_fit_if_only_their_frames_differ(shape: tuple[int, ...], fits: bool) -> None:
    assert Reblocker(port(1)).fits(np.zeros(shape, np.float32)) is fits
