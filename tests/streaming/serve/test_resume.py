"""If a server is lost, another one resumes its streams from checkpoints, with the same bits."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest

import pulse
from pulse.client import ClientError, connect
from pulse.program.program import Program
from streaming.builtin import model_path
from streaming.protocol.binary_messages import HEADER, OUTPUT, Header, pack_frames, unpack_header
from streaming.protocol.errors import ProtocolError
from streaming.serve.checkpoints import Checkpoint, CheckpointFolder
from streaming.serve.settings import ModelSettings
from streaming.serve.unconfirmed import Unconfirmed
from tests.agreement import assert_outputs_equal
from tests.noise import next_noise, normal_noise
from tests.streaming.executor.streams import named_program
from tests.streaming.serve.lost_connections import cut_all
from tests.streaming.serve.offline_outputs import block_shape, expected_outputs
from tests.streaming.serve.servers import PULSE, RATE_HZ, RunningServer, servers_with_checkpoints
from tests.streaming.serve.websocket_client import raw
from tests.waiting import WAIT_TIMEOUT_S, wait_in_task

pytestmark = pytest.mark.anyio
SOUND_HZ, SOUND_PULSE = 16_000, 160


async def wait_for_checkpoint(server: RunningServer, number: int = 1) -> None:
    """Wait until this many checkpoints of streams of the server are on the disk."""
    await wait_in_task(lambda: server.service.counts.checkpoints >= number, f"checkpoint {number}")


async def wait_for_frames(server: RunningServer, frames: int) -> None:
    """Wait until the server has read this many frames from its sockets."""
    await wait_in_task(lambda: server.service.counts.frames_in >= frames, f"{frames} frames are read")


def servers(folder: Path, count: int) -> AbstractContextManager[list[RunningServer]]:
    """Servers of a small model; they make a checkpoint in three pulses."""
    program = ModelSettings(name="filtered", streams=4), named_program("filtered", PULSE), RATE_HZ
    return servers_with_checkpoints(program, folder, count, 3 * PULSE / RATE_HZ)


@cache
def denoiser() -> Program:
    """The program of the built-in denoiser."""
    return pulse.stream(model_path(), pulse=SOUND_PULSE)


def denoisers(folder: Path, count: int) -> AbstractContextManager[list[RunningServer]]:
    """Servers of the built-in denoiser, which takes sound."""
    return servers_with_checkpoints((ModelSettings(streams=4), denoiser(), SOUND_HZ), folder, count, 0.2)


@pytest.mark.parametrize("reset", [False, True])
async def test_a_stream_has_the_same_bits_after_a_server_is_lost(tmp_path: Path, reset: bool) -> None:
    program = named_program("filtered", PULSE)
    (port,) = program.inputs
    rng = np.random.default_rng(5)
    x = next_noise(rng, *block_shape(port, 60 * PULSE))
    blocks = np.array_split(x, 37, port.axis)
    with servers(tmp_path, 3) as started:
        async with connect([server.ws for server in started], reconnect_timeout_s=10) as stream:
            if reset:
                await stream.send(x)
                await stream.reset()
            for number, block in enumerate(blocks):
                await stream.send(block)
                if number in (12, 25):
                    await wait_for_checkpoint(started[number // 13])
                    cut_all(started[number // 13])
            outputs = await stream.flush()
        assert_outputs_equal(outputs, expected_outputs(program, {port.name: x}))
        assert started[1].service.counts.resumed + started[2].service.counts.resumed >= 2


@pytest.mark.parametrize("rate_hz", [44_100, 8_000, 48_000])
async def test_a_stream_at_another_rate_has_the_same_bits_after_losses(tmp_path: Path, rate_hz: int) -> None:
    x = np.random.default_rng(7).uniform(-0.3, 0.3, rate_hz).astype(np.float32)
    blocks = np.split(x, np.sort(np.random.default_rng(8).integers(0, x.size, 60)))
    with denoisers(tmp_path, 3) as started:
        async with connect(started[2].ws, rate_hz=rate_hz) as stream:
            await stream.send(x)
            expected = await stream.flush()
        urls = [server.ws for server in started]
        async with connect(urls, rate_hz=rate_hz, reconnect_timeout_s=10) as stream:
            for number, block in enumerate(blocks):
                await stream.send(block)
                if number in (20, 40):
                    await wait_for_checkpoint(started[number // 20 - 1])
                    cut_all(started[number // 20 - 1])
            outputs = await stream.flush()
        assert stream.connections == 3
        assert started[2].service.counts.resumed == 1
        (name,) = expected
        assert outputs[name].shape == expected[name].shape == (1, x.size)
        assert_outputs_equal(outputs, expected)


async def test_a_stream_is_resumed_only_at_its_rate(tmp_path: Path) -> None:
    with denoisers(tmp_path, 2) as (first, second):
        async with connect([first.ws, second.ws], rate_hz=48_000, reconnect_timeout_s=1) as stream:
            await stream.send(np.zeros(48_000, np.float32))
            await wait_for_checkpoint(first)
            with raw(second) as client:
                assert client.hello(rate=8_000, resume=stream.resume_name)["type"] == "ready"
                (error,) = client.receive_until("error")[-1:]
        assert (error["code"], "rate" in error["message"]) == ("resume", True)


def test_a_refused_resumption_is_not_counted(tmp_path: Path) -> None:
    name = "0" * 32
    assert CheckpointFolder(tmp_path, 60).save(name, 0, Checkpoint("filtered", 0, (6,), (6,), b""))
    with servers(tmp_path, 1) as (server,), ExitStack() as stack:
        for _ in range(4):
            assert stack.enter_context(raw(server)).hello()["type"] == "ready"
        assert stack.enter_context(raw(server)).hello(resume=name)["code"] == "busy"
        assert server.service.counts.resumed == 0


async def test_a_server_with_checkpoints_refuses_opus(tmp_path: Path) -> None:
    with denoisers(tmp_path, 1) as (server,), raw(server) as client:
        refusal = client.hello(format="opus")
        assert refusal["code"] == "rate"
        assert "checkpoints do not contain Opus coders" in refusal["message"]


async def test_a_stream_lost_before_its_first_checkpoint_begins_again(tmp_path: Path) -> None:
    program = named_program("filtered", PULSE)
    (port,) = program.inputs
    x = np.ones(block_shape(port, PULSE + 1), np.float32)
    with servers(tmp_path, 2) as (first, second):
        async with connect([first.ws, second.ws], reconnect_timeout_s=10) as stream:
            await stream.send(x)
            await wait_for_frames(first, PULSE + 1)
            cut_all(first)
            outputs = await stream.flush()
            assert stream.connections == 2
        assert [server.service.counts.resumed for server in (first, second)] == [0, 0]
        assert not first.service.counts.checkpoints
        assert_outputs_equal(outputs, expected_outputs(program, {port.name: x}))


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[anyio.CancelScope]:
    """The time limits of attempts to resume, the current one last: each expires only when a test sets its deadline."""
    limits, fail_after = [], anyio.fail_after

    @contextmanager
    def keep_limit(delay: float | None) -> Iterator[anyio.CancelScope]:
        with fail_after(delay) as limit:
            limits.append(limit)
            yield limit

    monkeypatch.setattr(anyio, "fail_after", keep_limit)
    monkeypatch.setattr("streaming.client.connecting.RESUME_TIMEOUT_S", WAIT_TIMEOUT_S)
    return limits


async def test_a_server_that_does_not_answer_is_skipped(
    tmp_path: Path, limits: list[anyio.CancelScope]
) -> None:
    program = named_program("filtered", PULSE)
    (port,) = program.inputs
    x = np.ones(block_shape(port, 9 * PULSE), np.float32)
    with servers(tmp_path, 2) as (first, second), socket.create_server(("127.0.0.1", 0)) as mute:
        urls = [first.ws, f"ws://127.0.0.1:{mute.getsockname()[1]}", second.ws]
        async with connect(urls, reconnect_timeout_s=WAIT_TIMEOUT_S) as stream:
            await stream.send(x)
            await wait_for_frames(first, 9 * PULSE)
            cut_all(first)
            await wait_in_task(lambda: select.select([mute], [], [], 0)[0], "the silent server is asked")
            limits[-1].deadline = anyio.current_time()
            outputs = await stream.flush()
            assert stream.connections == 2
        assert_outputs_equal(outputs, expected_outputs(program, {port.name: x}))


async def test_an_attempt_that_takes_too_long_keeps_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: list[anyio.CancelScope]
) -> None:
    """The server has resumed the stream by then; the client does not know it, and tries again."""
    from streaming.client import connecting

    receive, attempts = connecting.receive_ready, []

    async def receive_late(socket):
        attempts.append(socket)
        ready = await receive(socket)
        if len(attempts) == 2:
            limits[-1].deadline = anyio.current_time()
            await anyio.sleep_forever()
        return ready

    monkeypatch.setattr(connecting, "receive_ready", receive_late)
    program = named_program("filtered", PULSE)
    (port,) = program.inputs
    x = np.ones(block_shape(port, 9 * PULSE), np.float32)
    with servers(tmp_path, 2) as (first, second):
        async with connect([first.ws, second.ws], reconnect_timeout_s=WAIT_TIMEOUT_S) as stream:
            await stream.send(x)
            await wait_for_checkpoint(first)
            cut_all(first)
            outputs = await stream.flush()
            assert stream.connections == 2
            assert len(attempts) >= 3
        assert_outputs_equal(outputs, expected_outputs(program, {port.name: x}))


async def test_a_stream_that_no_server_resumes_is_an_error(tmp_path: Path) -> None:
    with servers(tmp_path, 1) as (server,):
        async with connect(server.ws, reconnect_timeout_s=0.3) as stream:
            cut_all(server)
            with pytest.raises(ClientError, match="no server resumes"):
                await stream.flush()


async def test_a_stream_that_ends_well_leaves_no_checkpoint(tmp_path: Path) -> None:
    with servers(tmp_path, 1) as (server,):
        async with connect(server.ws, reconnect_timeout_s=1) as stream:
            (port,) = stream.inputs
            await stream.send(np.ones([99 if size is None else size for size in port.shape], np.float32))
            await stream.flush()
        await wait_in_task(lambda: not server.service.connections, "the connection has ended")
        assert not list(tmp_path.iterdir())


def outputs_by_number(messages: list[bytes]) -> tuple[dict[int, dict[Any, Any]], dict[int, int]]:
    """Port -> frame number -> values of binary messages, and port -> the first number."""
    values, begins = {}, {}
    for message in messages:
        if isinstance(message, bytes):
            header = unpack_header(message)
            begins.setdefault(header.port, header.first)
            values.setdefault(header.port, {})[header.first] = np.frombuffer(message[HEADER.size :], "<f4")
    return values, begins


@pytest.mark.parametrize("confirms", [False, True])
async def test_lost_outputs_are_sent_again(tmp_path: Path, confirms: bool) -> None:
    """A client that can confirm but has not gets all outputs again; one that cannot gets those since the checkpoint."""
    x = normal_noise(60 * PULSE, seed=3)
    with servers(tmp_path, 2) as (first_server, second_server):
        with raw(first_server) as client:
            ready_message = client.hello(confirms=confirms)
            for number in range(1, 6):  # checkpoints, each of three pulses
                begin, end = 3 * (number - 1) * PULSE, 3 * number * PULSE
                client.send_frames(x[begin:end], begin)
                await wait_for_checkpoint(first_server, number)
            cut_all(first_server)
        with raw(second_server) as client:
            again = client.hello(confirms=confirms, resume=ready_message["resume"])
            (received,) = again["received"]
            assert received >= 6 * PULSE
            assert received % (3 * PULSE) == 0
            client.send_frames(x[received:], received)
            client.send({"type": "flush"})
            values, begins = outputs_by_number(client.receive_until("flushed"))
        whole = expected_outputs(named_program("filtered", PULSE), {"x": x[None]})
    streaming = [port for port in again["outputs"] if port["kind"] != "final"]
    assert len(streaming) == 2
    for port in streaming:
        begin, parts = begins[port["port"]], values[port["port"]]
        if confirms:
            assert begin == 0
        else:
            assert 0 < begin <= again["sent"][0]
        joined_values = np.concatenate([parts[first] for first in sorted(parts)])
        np.testing.assert_array_equal(joined_values, whole[port["name"]].reshape(-1)[begin:])


def test_confirmed_outputs_are_forgotten() -> None:
    message = pack_frames(Header(OUTPUT, 0, 0, 1, 0), bytes(4))
    outputs = Unconfirmed(confirms=True)
    outputs.add(0, [message, {"type": "event"}])
    first = outputs.complete(Checkpoint("m", 0, (6,), (1,), b""))
    outputs.add(0, [message, message])
    second = outputs.complete(Checkpoint("m", 0, (12,), (3,), b""))
    assert (len(first.outputs), len(second.outputs)) == (1, 3)
    outputs.confirm(0, (7,))  # of no checkpoint
    outputs.confirm(1, (6,))  # of another epoch
    assert len(outputs.complete(second).outputs) == 3
    outputs.confirm(0, (6,))
    assert len(outputs.complete(second).outputs) == 2
    resumed = Unconfirmed(True, second)
    assert resumed.complete(second).outputs == second.outputs
    resumed.add(1, [message])
    assert resumed.complete(second).outputs == (message,)


def test_the_bytes_of_unconfirmed_outputs_are_limited() -> None:
    message = pack_frames(Header(OUTPUT, 0, 0, 1 << 18, 0), bytes(1 << 20))
    outputs = Unconfirmed(confirms=True)
    outputs.add(0, [message] * 6)
    assert len(outputs.complete(Checkpoint("m", 0, (6,), (6 << 18,), b"")).outputs) == 3


async def test_a_gap_in_an_output_ends_the_stream() -> None:
    """The client ends a stream if the server lost frames, and does not join its parts."""
    from websockets.sync.server import serve

    def answer(socket):
        socket.recv()
        port = {
            "port": 0,
            "name": "x",
            "kind": "sound",
            "dtype": "f32",
            "shape": [1, None],
            "axis": 1,
            "rate": 1.0,
        }
        about = {
            "stream": "s",
            "model": "m",
            "rate": 1,
            "format": "f32",
            "pulse": 1,
            "epoch": 0,
            "resume": "r",
        }
        ports = {
            "inputs": [port],
            "outputs": [{**port, "name": "y", "delay": 0}],
            "received": [0],
            "sent": [0],
        }
        limits = {"message_bytes": 1024, "window": 9, "idle_s": 9.0}
        socket.send(
            json.dumps({"type": "ready", "version": 1, **about, **ports, "events": [], "limits": limits})
        )
        for first in (0, 3):
            socket.send(pack_frames(Header(OUTPUT, 0, 0, 1, first), bytes(4)))
        socket.recv()

    with serve(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        async with connect(address, reconnect_timeout_s=5) as stream:
            assert (await anext(stream))["y"].shape == (1, 1)
            with pytest.raises(ClientError, match="output y: frames 1 to 2 are lost"):
                await anext(stream)
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("safe", [None, 3, [-1], [1.0], ["6"]])
def test_a_wrong_confirmation_is_refused(tmp_path: Path, safe: int | list[Any] | None) -> None:
    with servers(tmp_path, 1) as (server,), raw(server) as client:
        client.hello(confirms=True)
        client.send({"type": "confirm", "epoch": 0, "safe": safe})
        assert client.receive_until("error")[-1]["code"] == "message"


def test_late_damaged_or_unknown_checkpoints_are_refused(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, 60)
    name = folder.new_name()
    output = pack_frames(Header(OUTPUT, 0, 2, 1, 2), bytes(4))
    saved = Checkpoint("filtered", 2, (12,), (3, 4), b"snapshot", b"sound", (output, output))
    folder.save(name, 1, saved)
    folder.save(name, 0, Checkpoint("filtered", 0, (6,), (0, 0), b"of a server that writes late"))
    assert folder.load(name) == (saved, 1)
    folder.save(name, 2, saved)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for cut in range(len(whole) - len(saved.snapshot)):
        path.write_bytes(whole[:cut])
        with pytest.raises(ProtocolError, match="the checkpoint is damaged"):
            folder.load(name)
    with pytest.raises(ProtocolError, match="no checkpoint has this name"):
        folder.load(folder.new_name())
    for wrong in ("", "../etc/passwd", "0" * 31, "g" * 32):
        with pytest.raises(ProtocolError, match="no checkpoint has such a name"):
            folder.load(wrong)
    os.utime(path, (0, 0))
    assert folder.sweep() == (1, 0)


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Any]:
    """Starts servers as a user does; those that are left are killed."""
    left = []

    def start():
        command = [sys.executable, "-c", "from streaming.cli import main; main()", "serve", "--port", "0"]
        command += ["--checkpoints", str(tmp_path), "--threads", "1"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        left.append(process)
        for line in process.stderr:
            if '"url": "' in line:
                return process, line.split('"url": "')[1].split('"')[0].replace("http", "ws")
        raise AssertionError(f"ended with {process.wait()}")

    yield start
    for process in left:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize("rate_hz", [SOUND_HZ, 48_000])
async def test_a_stream_has_the_same_bits_after_its_server_is_killed(
    commands: Any, tmp_path: Path, rate_hz: int
) -> None:
    x = normal_noise(1, rate_hz * 6, scale=0.1)
    alive = [commands() for _ in range(2)]
    async with connect(
        [url for _, url in alive], "denoiser", rate_hz=rate_hz, reconnect_timeout_s=30
    ) as stream:
        for number, block in enumerate(np.split(x, 600, 1)):
            await stream.send(block)
            if number == 250:
                await wait_in_task(lambda: any(tmp_path.iterdir()), "a checkpoint")
                os.kill(alive[0][0].pid, signal.SIGKILL)
        outputs = await stream.flush()
        assert stream.connections == 2
    if rate_hz == SOUND_HZ:
        expected = expected_outputs(pulse.stream(model_path(), pulse=SOUND_PULSE), {"audio": x})
    else:  # a stream of the server that is left, without a loss
        async with connect(alive[1][1], "denoiser", rate_hz=rate_hz) as stream:
            await stream.send(x)
            expected = await stream.flush()
    assert_outputs_equal(outputs, expected)
