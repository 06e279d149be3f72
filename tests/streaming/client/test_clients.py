"""Clients of all kinds: over TLS, inside an executor, with events, and by hand as docs/protocol.md says."""

import os
import re
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

import pulse
from pulse.client import ClientError, connect
from pulse.facts import Array
from pulse.program.program import Program
from streaming import Session
from streaming.builtin import model_path, noisy_path, voice_path
from streaming.events import Segments
from streaming.executor import Executor
from streaming.serve.settings import ModelSettings, ServerSettings
from tests.documents.pages import pages
from tests.streaming.serve.servers import RunningServer, running_server

pytestmark = pytest.mark.anyio
RATE_HZ, PULSE = 16_000, 160
DETECTOR = {"kind": "segments", "min_silence_s": 0.1}


@pytest.fixture(scope="module")
def programs() -> dict[str, Program]:
    return {
        name: pulse.stream(path, pulse=PULSE) for name, path in [("d", model_path()), ("v", voice_path())]
    }


@pytest.fixture(scope="module")
def server(programs: dict[str, Program]) -> Iterator[RunningServer]:
    models = (
        ModelSettings(name="d", streams=4),
        ModelSettings(name="v", streams=4, events={"voice": DETECTOR}),
    )
    with running_server([(model, programs[model.name], RATE_HZ) for model in models], threads=1) as started:
        yield started


@pytest.fixture(scope="module")
def noisy() -> Array:
    return soundfile.read(noisy_path(), dtype="float32")[0]


def stream_audio(program: Program, x: Array) -> Array:
    session = Session(program)
    (first,), (rest,) = session.push(x[None]).values(), session.flush().values()
    return np.concatenate([first, rest], 1)


async def test_clients_connect_over_tls(programs: dict[str, Program], noisy: Array, tmp_path: Path) -> None:
    """A certificate that a client trusts; one that it does not know is refused, and nothing is sent to it."""
    trustme = pytest.importorskip("trustme", reason="needs the extra test")
    import httpx

    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    model = ModelSettings(name="d", streams=2)
    settings = ServerSettings((model,), certificate=certificate, key=key)
    with running_server([(model, programs["d"], RATE_HZ)], settings, threads=1) as server:
        assert server.ws.startswith("wss://")
        async with connect(server.ws, tls=context) as stream:
            for part in np.array_split(noisy[:20_000], 11):
                await stream.send(part)
            output = (await stream.flush())["denoised"]
        np.testing.assert_allclose(output, stream_audio(programs["d"], noisy[:20_000]), rtol=1e-5, atol=1e-6)
        assert httpx.get(f"{server.url}/health", verify=context).json() == {"status": "ok"}
        with pytest.raises(ClientError, match="certificate"):
            async with connect(server.ws):
                raise AssertionError


async def test_a_stream_of_the_server_is_a_source_of_an_executor(
    server: RunningServer, programs: dict[str, Program], noisy: Array
) -> None:
    """The server denoises, the executor here finds the voice in it."""
    x = noisy[:8000]
    async with connect(server.ws, "d") as stream, Executor(programs["v"]) as executor:

        async def blocks():
            async for outputs in stream.process(np.array_split(x, 7)):
                yield outputs["denoised"]

        pieces = [outputs["voice"] async for outputs in executor.stream(blocks())]
    expected = stream_audio(programs["v"], stream_audio(programs["d"], x)[0])
    joined = np.concatenate(pieces, 1)
    np.testing.assert_allclose(joined, expected, rtol=1e-4, atol=1e-5)


async def test_a_stream_of_the_server_is_a_sink_of_an_executor(
    server: RunningServer, programs: dict[str, Program], noisy: Array
) -> None:
    """The executor here denoises, the server finds the voice in it."""
    x = noisy[:8000]
    async with connect(server.ws, "v") as stream, Executor(programs["d"]) as executor:
        await executor.run([block[None] for block in np.array_split(x, 7)], stream.sink())
        output = (await stream.flush())["voice"]
    expected = stream_audio(programs["v"], stream_audio(programs["d"], x)[0])
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("times", [1, 3])
async def test_events_of_the_server_equal_the_detector(
    server: RunningServer, programs: dict[str, Program], noisy: Array, times: int
) -> None:
    """Events count the client's frames at any rate, and arrive while the stream continues."""
    x = noisy if times == 1 else np.repeat(noisy, times)
    async with connect(server.ws, "v", rate_hz=times * RATE_HZ) as stream:
        for part in np.array_split(x, 50):
            await stream.send(part)
        outputs = await stream.flush()
    detector = Segments(RATE_HZ / PULSE, min_silence_s=0.1)
    expected = detector.push(outputs["voice"][0]) + detector.flush()
    assert len(expected) > 2
    rate_hz = times * RATE_HZ
    assert [(event["output"], event["start"], event["end"], event["known"]) for event in stream.events] == [
        ("voice", round(e.start_s * rate_hz), round(e.end_s * rate_hz), round(e.known_s * rate_hz))
        for e in expected
    ]


def by_hand(language: str) -> str:
    """The code block in a language from the section "By hand" of docs/protocol.md."""
    section = pages()["docs/protocol.md"].text.partition("## By hand")[2].partition("\n## ")[0]
    (block,) = re.findall(rf"```{language}\n(.*?)```", section, re.S)
    return block


def test_the_client_by_hand_in_python_runs(
    server: RunningServer, programs: dict[str, Program], noisy: Array
) -> None:
    """The block of the page: nothing but websockets."""
    names = {}
    exec(by_hand("python"), names)
    samples = np.rint(noisy * 32768).clip(-32768, 32767).astype("<i2")
    output = np.frombuffer(names["denoise"](server.ws, samples.tobytes()), "<i2")
    expected = stream_audio(programs["d"], samples.astype(np.float32) / 32768)[0]
    assert output.size == expected.size
    assert np.abs(output - np.rint(expected * 32768)).max() <= 1


def test_the_client_by_hand_in_a_shell_runs(server: RunningServer) -> None:
    """The line of the page, with the command that the package websockets brings."""
    line = by_hand("sh").replace("ws://127.0.0.1:8080", server.ws)
    assert "| websockets " in line
    folder = str(Path(sys.executable).parent)
    answers = subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PATH": folder + os.pathsep + os.environ["PATH"]},
    ).stdout
    assert '"type":"ready"' in answers
    assert '"type":"pong"' in answers
    assert '"type":"flushed"' in answers
