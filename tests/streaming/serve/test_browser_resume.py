"""The JavaScript client resumes after a cut, with the same bits, and follows a fleet to the server of its stream."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

import pulse
from streaming.builtin import SAMPLE_RATE_HZ, model_path
from streaming.client import connect
from streaming.serve.settings import ModelSettings
from tests.streaming.chromium import browser, require_browser
from tests.streaming.fleet.local import blocks_of, fleet, small_deployment
from tests.streaming.serve.browser import BrowserPage, join_frames
from tests.streaming.serve.lost_connections import cut_all
from tests.streaming.serve.servers import RunningServer, servers_with_checkpoints
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
require_browser()
PULSE = 160

OPEN = """
async ([urls, options]) => {
  const { PulseStream } = await import("/client.js");
  const test = { found: [], connections: 1, error: null };
  window.test = test;
  test.stream = await PulseStream.open(urls, {
    ...options,
    onframes: ({ first, values }) => test.found.push({ first, values: Array.from(values) }),
    onresume: (count) => { test.connections = count; },
    onclose: (error) => { test.error = error?.code ?? null; },
  });
  return test.stream.ready.stream;
}
"""
SEND = """
async (samples) => {
  const parts = Float32Array.from(samples);
  for (let at = 0; at < parts.length; at += 333) window.test.stream.send(parts.slice(at, at + 333));
}
"""
FLUSH = """
async () => {
  const { sent } = await window.test.stream.flush();
  window.test.stream.close();
  return { sent, found: window.test.found, connections: window.test.connections };
}
"""
RESET = "async () => { await window.test.stream.reset(); window.test.found.length = 0; }"


def denoisers(folder: Path, count: int) -> AbstractContextManager[list[RunningServer]]:
    """Servers that share checkpoints, and that pages of any address may use."""
    program = ModelSettings(streams=4), pulse.stream(model_path(), pulse=PULSE), SAMPLE_RATE_HZ
    return servers_with_checkpoints(program, folder, count, 0.2, origins=("*",))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


def wait_for_checkpoint(server: Any) -> None:
    wait_until(lambda: server.service.counts.checkpoints, "a checkpoint")


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("rate_hz", [16_000, 48_000])
def test_a_stream_has_the_same_bits_after_lost_connections(
    chromium: Any, tmp_path: Path, rate_hz: int, reset: bool
) -> None:
    x = np.random.default_rng(1).uniform(-0.3, 0.3, 3 * rate_hz).astype(np.float32)

    async def whole(url: str) -> Any:
        async with connect(url, rate_hz=rate_hz) as stream:
            await stream.send(x)
            (rest,) = (await stream.flush()).values()
        return rest[0]

    with denoisers(tmp_path, 4) as servers:
        *lost_servers, last, page_server = servers
        page = BrowserPage(chromium, page_server.url)
        urls = [f"{server.ws}/v1/stream" for server in (*lost_servers, last)]
        page.page.evaluate(OPEN, [urls, {"rate": rate_hz, "patience": 10}])
        if reset:
            page.page.evaluate(SEND, x[:rate_hz].tolist())
            page.page.evaluate(RESET)
        for part, server in zip(np.array_split(x, 3)[:2], lost_servers):
            page.page.evaluate(SEND, part.tolist())
            wait_for_checkpoint(server)
            cut_all(server)
        page.page.evaluate(SEND, np.array_split(x, 3)[2].tolist())
        answer = page.page.evaluate(FLUSH)
        assert (answer["connections"], last.service.counts.resumed) == (3, 1)
        with ThreadPoolExecutor() as threads:  # playwright's event loop is in this one
            expected = threads.submit(anyio.run, whole, last.ws).result()
        np.testing.assert_array_equal(join_frames(answer), expected)
        page.context.close()


@pytest.mark.parametrize(("options", "error"), [({}, "connection"), ({"patience": 0.5}, "resume")])
def test_a_stream_that_cannot_resume_ends_with_an_error(
    chromium: Any, tmp_path: Path, options: dict[str, float], error: str
) -> None:
    """The lost connection is the error; with patience it is that no server has the stream."""
    with denoisers(tmp_path, 2) as (first, page_server):
        page = BrowserPage(chromium, page_server.url)
        page.page.evaluate(OPEN, [f"{first.ws}/v1/stream", options])
        cut_all(first)
        page.wait_for(f"() => window.test.error === '{error}'")
        page.context.close()


def test_a_fleet_directs_and_continues_a_stream(chromium: Any, tmp_path: Path) -> None:
    deployment = small_deployment()
    deployment = replace(deployment, server=replace(deployment.server, origins=("*",)))
    blocks, expected = blocks_of(60, 20)
    (name,) = list(expected)[:1]
    names = ("a", "b", "c")
    with (
        denoisers(tmp_path, 1) as (page_server,),
        fleet(names, *((worker, worker, deployment) for worker in names)) as local_fleet,
    ):
        page = BrowserPage(chromium, page_server.url)
        at = set()
        # the first server is asked each time, and another one has the stream of most names
        for _ in range(8):
            stream = page.page.evaluate(
                OPEN, [local_fleet.urls[0], {"model": "filtered", "patience": 10, "outputs": [name]}]
            )
            owner = owner_of(local_fleet, stream)
            at.add(owner)
            if owner != "a":
                break
        assert at - {"a"}
        for number, block in enumerate(blocks):
            page.page.evaluate(SEND, block.ravel().tolist())
            if number == 9:
                worker = local_fleet.workers[owner]
                wait_for_checkpoint(worker)
                local_fleet.tell(
                    workers=tuple(entry for entry in local_fleet.table.workers if entry.name != owner)
                )
                worker.drain()
        answer = page.page.evaluate(FLUSH)
        assert answer["connections"] == 2
        np.testing.assert_array_equal(join_frames(answer), expected[name].ravel())
        page.context.close()


def owner_of(local_fleet: Any, stream: str) -> str:
    """The worker that serves a stream."""
    (owner,) = [
        name
        for name, worker in local_fleet.workers.items()
        if any(connection.id == stream for connection in worker.service.connections)
    ]
    return owner
