"""Remote streams return the outputs of a session, flush included, for blocks of any size."""

import anyio
import numpy as np
import pytest

from pulse.facts import Array
from pulse.program.program import Program
from streaming.client import connect
from tests.agreement import assert_outputs_close
from tests.streaming.executor.streams import MODELS, join_pieces, named_program
from tests.streaming.serve.offline_outputs import block_shape, expected_outputs
from tests.streaming.serve.servers import PULSE, RATE_HZ, RunningServer

pytestmark = pytest.mark.anyio


def inputs_of(program: Program, frames: int, seed: int) -> dict[str, Array]:
    """Noise for every input, as long as its rate says."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for port in program.inputs:
        if not port.streams:
            continue
        shape = block_shape(port, int(frames * port.rate))
        inputs[port.name] = (0.3 * rng.standard_normal(shape)).astype(port.dtype)
    return inputs


def random_pieces(
    inputs: dict[str, Array], program: Program, count: int, seed: int
) -> list[dict[str, Array]]:
    """Return the inputs cut at random into ``count`` blocks."""
    rng = np.random.default_rng(seed)
    parts = {}
    for port in program.inputs:
        if not port.streams:
            continue
        array = inputs[port.name]
        cuts = np.sort(rng.integers(0, array.shape[port.axis] + 1, count - 1))
        parts[port.name] = np.split(array, cuts, port.axis)
    return [{name: blocks[number] for name, blocks in parts.items()} for number in range(count)]


@pytest.mark.parametrize("name", MODELS)
async def test_streams_agree_with_sessions(server: RunningServer, name: str) -> None:
    program = named_program(name, PULSE)
    inputs = inputs_of(program, program.limit or 16 * PULSE + 1, 1)
    async with connect(server.ws, name, rate_hz=RATE_HZ) as stream:
        for part in random_pieces(inputs, program, 7, 2):
            await stream.send(part)
        outputs = await stream.flush()
    assert_outputs_close(outputs, expected_outputs(program, inputs))


async def test_many_streams_at_once_with_resets_agree_with_sessions(server: RunningServer) -> None:
    program = named_program("filtered", PULSE)

    async def stream_three_times(seed):
        async with connect(server.ws, "filtered") as stream:
            for turn in range(3):
                inputs = inputs_of(program, 20 + 13 * seed, 10 * seed + turn)
                for part in random_pieces(inputs, program, 1 + seed % 5, seed):
                    await stream.send(part)
                if turn == 1:
                    await stream.reset()
                    continue
                assert_outputs_close(await stream.flush(), expected_outputs(program, inputs))
                if turn == 0:
                    await stream.reset()

    async with anyio.create_task_group() as tasks:
        for seed in range(20):
            tasks.start_soon(stream_three_times, seed)


async def test_outputs_are_received_while_a_stream_is_sent(server: RunningServer) -> None:
    program = named_program("filtered", PULSE)
    inputs = inputs_of(program, 10 * PULSE, 3)
    async with connect(server.ws, "filtered") as stream:
        pieces_out = [outputs async for outputs in stream.process(random_pieces(inputs, program, 9, 4))]
    assert len(pieces_out) > 2
    assert_outputs_close(join_pieces(pieces_out, program), expected_outputs(program, inputs))
