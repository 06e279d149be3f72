"""Workers of a fleet, without Ray: streams are where they belong, and resume elsewhere with the same bits."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace

import anyio
import pytest

from tests.agreement import assert_outputs_equal
from tests.held_clock import HeldClock
from tests.streaming.fleet.local import LocalFleet

pytest.importorskip("uvicorn", reason="needs the extra serve")

from pulse.client import connect
from streaming.fleet.rendezvous import ranking
from streaming.fleet.stream_name import StreamName
from tests.streaming.fleet.local import blocks_of, fleet, small_deployment, wires
from tests.waiting import wait_in_task

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", pytest.param("trio", marks=pytest.mark.slow)])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop of the client; other tests run clients on both loops."""
    return request.param


@pytest.fixture(scope="module")
def three() -> Iterator[LocalFleet]:
    """Three workers on three nodes."""
    deployment = small_deployment()
    with fleet("abc", *((f"w{node}", node, deployment) for node in "abc")) as local_fleet:
        yield local_fleet


async def test_a_stream_runs_on_the_worker_of_its_hash(three: LocalFleet) -> None:
    blocks, expected = blocks_of(20, 3)
    owners = set()
    for _ in range(12):
        async with connect(three.urls[0], reconnect_timeout_s=5) as stream:
            best = ranking(StreamName.of_text(stream.resume_name).key, three.workers)[0]
            assert three.worker_of(stream) == best
            owners.add(best)
            for block in blocks:
                await stream.send(block)
            assert_outputs_equal(await stream.flush(), expected)
    assert len(owners) > 1


async def test_clients_that_do_not_redirect_are_served(three: LocalFleet) -> None:
    from tests.streaming.serve.websocket_client import WebSocketClient

    def open_raw(url):
        from websockets.sync.client import connect as connect_raw

        with connect_raw(f"{url}/v1/stream", compression=None) as socket:
            return WebSocketClient(socket).hello()

    for url in three.urls:
        answer = await anyio.to_thread.run_sync(open_raw, url)
        assert answer["type"] == "ready"
        assert len(answer["urls"]) == 2
        assert url not in answer["urls"]


async def test_a_server_that_drains_hands_its_streams_over() -> None:
    deployment = small_deployment()
    blocks, expected = blocks_of(60, 41)
    with fleet("ab", ("wa", "a", deployment), ("wb", "b", deployment)) as local_fleet:
        async with connect(local_fleet.urls, reconnect_timeout_s=10) as stream:
            for number, block in enumerate(blocks):
                await stream.send(block)
                if number == 20:
                    first = local_fleet.worker_of(stream)
                    (other,) = local_fleet.workers.keys() - {first}
                    await wait_in_task(partial(local_fleet.has_saved, first), f"a checkpoint of {first}")
                    local_fleet.workers[first].drain()
                    await wait_in_task(
                        partial(local_fleet.has_resumed, other), f"a stream resumed by {other}"
                    )
            outputs = await stream.flush()
            assert local_fleet.workers[other].status().resumed == 1
            assert local_fleet.workers[first].status().streams == 0
            assert local_fleet.workers[first].status().draining
        assert_outputs_equal(outputs, expected)


async def test_lost_holders_are_skipped() -> None:
    deployment = small_deployment(copies=2)
    blocks, expected = blocks_of(60, 41)
    with fleet("abcd", ("wa", "a", deployment), ("wb", "b", deployment)) as local_fleet:
        async with connect(local_fleet.urls, reconnect_timeout_s=10) as stream:
            name = stream.resume_name

            def holders():
                """The answering holders that have the stream's checkpoint."""
                return [
                    holder_name
                    for holder_name, holder in local_fleet.holders.holders.items()
                    if holder_name not in local_fleet.holders.lost and holder.load(name) is not None
                ]

            for number, block in enumerate(blocks):
                await stream.send(block)
                if number == 15:
                    await wait_in_task(lambda: len(holders()) == 2, "two holders")
                    local_fleet.holders.lost.add(holders()[0])
                if number == 25:
                    await wait_in_task(lambda: len(holders()) == 2, "a third holder has the next checkpoint")
                    first = local_fleet.worker_of(stream)
                    (other,) = local_fleet.workers.keys() - {first}
                    local_fleet.workers[first].drain()
                    await wait_in_task(
                        partial(local_fleet.has_resumed, other), f"a stream resumed by {other}"
                    )
            assert_outputs_equal(await stream.flush(), expected)


async def test_a_stream_without_holders_is_unsafe_but_continues() -> None:
    deployment = small_deployment()
    blocks, expected = blocks_of(30, 7)
    with fleet("ab", ("wa", "a", deployment), ("wb", "b", deployment)) as local_fleet:
        local_fleet.holders.lost.update(local_fleet.holders.holders)
        async with connect(local_fleet.urls, reconnect_timeout_s=5) as stream:
            for block in blocks:
                await stream.send(block)
            first = local_fleet.worker_of(stream)
            (other,) = local_fleet.workers.keys() - {first}
            await wait_in_task(
                lambda: local_fleet.workers[first].service.counts.checkpoints_refused,
                "a checkpoint is refused",
            )
            assert stream.is_whole
            local_fleet.workers[first].drain()
            await wait_in_task(partial(local_fleet.has_streams, other), f"a stream of {other}")
            assert_outputs_equal(await stream.flush(), expected)


async def test_a_fleet_that_has_no_holder_yet_serves_streams() -> None:
    blocks, expected = blocks_of(30, 7)
    with fleet("", ("wa", "a", small_deployment())) as local_fleet:
        counts = local_fleet.workers["wa"].service.counts
        async with connect(local_fleet.urls, reconnect_timeout_s=5) as stream:
            for block in blocks:
                await stream.send(block)
            await wait_in_task(lambda: counts.checkpoints_refused, "a checkpoint is refused")
            assert_outputs_equal(await stream.flush(), expected)
            assert stream.connections == 1
        await wait_in_task(lambda: counts.ended["left"], "the stream has ended")


@pytest.mark.parametrize("resumes", [True, False], ids=["checkpoint", "whole"])
async def test_streams_keep_their_version(resumes: bool) -> None:
    old, new = small_deployment("old"), small_deployment("new", weight=1.0)
    blocks, expected = blocks_of(60, 41)
    workers = [("o1", "a", old), ("o2", "b", old)]
    with fleet("ab", *workers) as local_fleet:
        async with connect(local_fleet.urls, reconnect_timeout_s=10) as stream:
            assert StreamName.of_text(stream.resume_name).version == "old"
            local_fleet.add("n1", "a", new)
            local_fleet.tell(deployments={"old": small_deployment("old", weight=0.0), "new": new})
            for number, block in enumerate(blocks):
                await stream.send(block)
                if number == 20:
                    first = local_fleet.worker_of(stream)
                    (other,) = {"o1", "o2"} - {first}
                    if resumes:
                        await wait_in_task(partial(local_fleet.has_saved, first), f"a checkpoint of {first}")
                    local_fleet.workers[first].drain()
                    await wait_in_task(partial(local_fleet.has_streams, other), f"a stream of {other}")
            await wait_in_task(
                lambda: local_fleet.workers[other].status().streams == 1, "one stream of the other worker"
            )
            async with connect(local_fleet.urls, reconnect_timeout_s=5) as another:
                assert local_fleet.worker_of(another) == "n1"
            assert_outputs_equal(await stream.flush(), expected)


async def test_a_version_that_has_ended_is_named() -> None:
    deployment = small_deployment("b")
    with fleet("ab", ("w", "a", deployment)) as local_fleet:
        name = str(StreamName.new("a"))
        from tests.streaming.serve.websocket_client import WebSocketClient

        def ask():
            from websockets.sync.client import connect as connect_raw

            with connect_raw(f"{local_fleet.urls[0]}/v1/stream", compression=None) as socket:
                return WebSocketClient(socket).hello(resume=name)

        answer = await anyio.to_thread.run_sync(ask)
        assert answer["code"] == "resume"
        assert "version a of the models has ended" in answer["message"]


async def test_a_silent_server_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that loses power is silent like this: the connection does not end, and nothing comes over it."""
    deployment = small_deployment()
    blocks, expected = blocks_of(60, 41)
    clock, server_timeout_s = HeldClock(), 0.04
    monkeypatch.setattr("streaming.client.connecting.time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr("streaming.client.remote_stream.time", SimpleNamespace(monotonic=lambda: clock.now_s))
    with (
        fleet("ab", ("wa", "a", deployment), ("wb", "b", deployment)) as local_fleet,
        wires(local_fleet) as wire_of,
    ):
        urls = [wire.url for wire in wire_of.values()]
        async with connect(urls, reconnect_timeout_s=10, server_timeout_s=server_timeout_s) as stream:
            first = local_fleet.worker_of(stream)
            for block in blocks[:21]:
                await stream.send(block)
            for _ in range(4):
                clock.now_s += 0.6 * server_timeout_s
                await wait_in_task(lambda: stream.answered_s == clock.now_s, "the answer to a ping")
                readings = clock.readings
                await wait_in_task(partial(clock.was_read_since, readings), "the answer is noticed")
            assert local_fleet.worker_of(stream) == first, "quiet, and yet alive"
            assert stream.connections == 1
            wire_of[first].silent.set()
            clock.now_s += 2 * server_timeout_s
            (other,) = local_fleet.workers.keys() - {first}
            await wait_in_task(partial(local_fleet.has_streams, other), f"a stream of {other}")
            for block in blocks[21:]:
                await stream.send(block)
            assert_outputs_equal(await stream.flush(), expected)
            assert local_fleet.workers[other].status().resumed == 1
