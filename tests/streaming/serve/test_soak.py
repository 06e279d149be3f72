"""A long life: clients that come, go, stall and lie; what is flushed is exact, no lane is lost, memory stays flat.

The clients live in another process, so that the memory is the server's.

``PULSE_SOAK_SECONDS=1800 python -m pytest -m slow -s tests/streaming/serve/test_soak.py`` runs half an hour.
"""

import multiprocessing
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

from pulse.client import ClientError, connect
from streaming.serve.settings import LimitSettings, ModelSettings, ServerSettings
from streaming.session import Session
from tests.noise import normal_noise
from tests.streaming.executor.streams import join_pieces, named_program
from tests.streaming.serve.offline_outputs import block_shape
from tests.streaming.serve.servers import PULSE, RATE_HZ, running_server
from tests.waiting import wait_in_task

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
SECONDS = float(os.environ.get("PULSE_SOAK_SECONDS", "40"))
CLIENTS = 24
LANES = 16


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Clients:
    """Streams one after the other, and how many ended in each way."""

    def __init__(self, url, until):
        self.url, self.until = url, until
        self.ends = Counter()
        self.program = named_program("filtered", PULSE)

    async def run_clients(self, seed):
        rng = random.Random(seed)
        while time.monotonic() < self.until:
            try:
                async with connect(self.url, "filtered") as stream:
                    await self.stream(stream, rng)
            except ClientError as error:
                self.ends[error.code] += 1
                await anyio.sleep(0.02)

    async def stream(self, stream, rng):
        (port,) = self.program.inputs
        frames = rng.randrange(1, 60 * PULSE)
        shape = block_shape(port, frames)
        x = normal_noise(*shape, seed=rng.randrange(1 << 30))
        kind = rng.choice(["whole", "whole", "whole", "leaves", "stalls", "lies"])
        for block in np.array_split(x, rng.randrange(1, 9), port.axis):
            await stream.send(block)
            if rng.random() < 0.1:
                await anyio.sleep(rng.choice([0, 0.01, 0.2 if kind == "stalls" else 0.01]))
            if kind == "leaves" and rng.random() < 0.3:
                self.ends["left"] += 1
                return
        if kind == "lies":
            await stream.send(np.full_like(x, np.nan))
        outputs = await stream.flush()
        session = Session(self.program)
        expected = join_pieces([session.push({port.name: x}), session.flush()], self.program)
        for name, array in expected.items():
            np.testing.assert_allclose(outputs[name], array, rtol=1e-5, atol=1e-6)
        self.ends["whole"] += 1


def run_clients(url: str, seconds: float, pipe: Any) -> None:
    """Run all clients in a process and send the counts of how they ended."""

    async def run_all():
        clients = Clients(url, time.monotonic() + seconds)
        async with anyio.create_task_group() as tasks:
            for seed in range(CLIENTS):
                tasks.start_soon(clients.run_clients, seed)
        return clients.ends

    pipe.send(anyio.run(run_all))


async def test_bad_clients_keep_no_lane_and_no_memory() -> None:
    model = ModelSettings(name="filtered", streams=LANES)
    settings = ServerSettings((model,), limits=LimitSettings(speed=1e6), budget=1e6)
    spawning = multiprocessing.get_context("spawn")
    ours, theirs = spawning.Pipe()
    with running_server([(model, named_program("filtered", PULSE), RATE_HZ)], settings, threads=2) as server:
        process = spawning.Process(target=run_clients, args=(server.ws, SECONDS, theirs))
        process.start()
        sizes = []
        while not ours.poll():
            assert process.is_alive()
            sizes.append(resident_bytes())
            await anyio.sleep(SECONDS / 20)
        ends = ours.recv()
        process.join()
        await wait_in_task(lambda: not server.service.connections, "all connections have ended")
        groups = [group for _, group in server.service.models[0].groups]
        assert [sorted(group.free) for group in groups] == [
            list(range(len(group.sessions))) for group in groups
        ]
        counts = server.service.counts
    assert {"whole", "busy", "input", "left"} <= set(ends)
    assert not counts.ended["failed"]
    growth = sizes[-1] - sizes[len(sizes) // 2]
    print(
        f"{dict(ends)}, the server's memory grew by {growth / 2**20:.1f} MiB in the second half of the time"
    )
    print("MiB:", *(f"{size / 2**20:.1f}" for size in sizes))
    assert growth < 8 << 20
