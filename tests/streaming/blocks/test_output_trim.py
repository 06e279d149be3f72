"""Valid frames of results, against slices of all results in numpy: no delay, nothing after the end."""

from collections.abc import Callable

import numpy as np
import pytest

from pulse.facts import Array
from pulse.interface import Port
from pulse.models import TypedModel
from streaming.blocks.output_trim import OutputTrim
from tests.noise import next_noise
from tests.streaming.models import cached_program, decimating_model, ending_model, filter_model

RUNS = 40


def streaming_outputs(trim: OutputTrim) -> list[Port]:
    return [port for port in trim.program.outputs if port.streams]


def valid_frames(port: Port, results: list[dict[str, Array]], total: int) -> Array:
    """All frames of an output after its delay, up to this many."""
    joined = np.concatenate([result[port.name] for result in results], port.axis)
    return np.take(
        joined, np.arange(port.delay, min(port.delay + total, joined.shape[port.axis or 0])), port.axis
    )


@pytest.mark.parametrize("make", [filter_model, decimating_model, ending_model])
@pytest.mark.parametrize("pulse", [3, 12])
def test_frames_begin_after_the_delay_and_stop_at_the_end(
    rng: np.random.Generator, make: Callable[[], TypedModel], pulse: int
) -> None:
    """Whatever the number of pulses that are taken at once, and however a stream ends."""
    program = cached_program(make, pulse)
    delivered = 0
    for _ in range(RUNS):
        trim = OutputTrim(program)
        length = int(rng.integers(1, 6 * pulse))
        steps, whole_pulses = program.steps(length), length // pulse
        results = [
            {port.name: next_noise(rng, *port.shape).astype(port.dtype) for port in program.outputs}
            for _ in range(steps)
        ]
        pieces: dict[str, list[Array]] = {port.name: [] for port in streaming_outputs(trim)}
        while trim.pulses < steps:
            if trim.pulses == whole_pulses:
                trim.end = length
            max_count = (whole_pulses if trim.end is None else steps) - trim.pulses
            count = int(rng.integers(1, max_count + 1))
            ready = trim.take(iter(results[trim.pulses : trim.pulses + count]), count)
            for name, frames in ready.items():
                pieces[name].append(frames)
        for port in streaming_outputs(trim):
            total = port.length.eval({program.model.symbol: length})
            expected = valid_frames(port, results, total)
            assert expected.shape[port.axis or 0] == total
            if trim.end is not None:
                np.testing.assert_array_equal(np.concatenate(pieces[port.name], port.axis), expected)
                assert trim.sent_frames[port.name] == total
                delivered += total
    assert delivered > 200


def test_unchanged_results_are_counted(rng: np.random.Generator) -> None:
    """After the delay a pulse passes unchanged, until the stream ends."""
    trim = OutputTrim(cached_program(filter_model, 3))
    assert not trim.is_passthrough
    trim.take([{port.name: next_noise(rng, *port.shape) for port in trim.program.outputs}], 1)
    assert trim.is_passthrough
    before = dict(trim.sent_frames)
    trim.count_pulses(2)
    assert trim.sent_frames == {name: frames + 6 for name, frames in before.items()}
    trim.end = 9
    assert not trim.is_passthrough


def test_rewinding_gives_the_same_frames_again(rng: np.random.Generator) -> None:
    trim = OutputTrim(cached_program(decimating_model, 6))
    results = [{port.name: next_noise(rng, *port.shape) for port in trim.program.outputs} for _ in range(4)]
    trim.take(results[:1], 1)
    mark = trim.mark()
    first = trim.take(results[1:], 3)
    trim.rewind(mark)
    second = trim.take(results[1:], 3)
    assert first.keys() == second.keys()
    for name, frames in first.items():
        np.testing.assert_array_equal(frames, second[name])
