"""Clients with other rates or with Opus get the model's output at their own rate."""

from collections.abc import Iterator

import numpy as np
import pytest

import pulse
from pulse.client import ClientError, connect
from pulse.facts import Array
from pulse.program.program import Program
from streaming.builtin import model_path
from streaming.native.resample import NativeResampler
from streaming.serve.settings import ModelSettings
from streaming.session import Session
from tests.streaming.serve.servers import RunningServer, running_server

pytestmark = pytest.mark.anyio
RATE_HZ = 16_000


@pytest.fixture(scope="module")
def denoiser() -> Iterator[tuple[RunningServer, Program]]:
    program = pulse.stream(model_path(), pulse=160)
    with running_server([(ModelSettings(streams=4), program, RATE_HZ)], threads=1) as server:
        yield server, program


def sound(samples: int, seed: int = 0) -> Array:
    """A sum of tones up to 3 kHz at 48 kHz, which no resampler cuts off."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / 48_000
    tones = [
        0.05 * np.sin(2 * np.pi * (f * t + p)) for f, p in zip(rng.uniform(100, 3000, 20), rng.random(20))
    ]
    return np.sum(tones, 0).astype(np.float32)


def resample(x: Array, rate_in_hz: int, rate_out_hz: int) -> Array:
    """A whole signal at another rate, by the resampler of the live path."""
    resampler = NativeResampler(rate_in_hz, rate_out_hz, "medium")
    silence = np.zeros(resampler.delay_frames, np.float32)
    return np.concatenate([resampler.process(x), resampler.process(silence)])


def denoise(program: Program, x: Array) -> Array:
    session = Session(program)
    return np.concatenate([session.push(x[None])["denoised"], session.flush()["denoised"]], 1)[0]


@pytest.mark.parametrize("rate_hz", [48_000, 44_100, 8_000])
async def test_the_server_resamples_input_and_output(
    denoiser: tuple[RunningServer, Program], rate_hz: int
) -> None:
    server, program = denoiser
    x = sound(12_345)
    expected = resample(denoise(program, resample(x, rate_hz, RATE_HZ)), RATE_HZ, rate_hz)
    async with connect(server.ws, rate_hz=rate_hz) as stream:
        assert stream.rate_hz == rate_hz
        assert stream.outputs[0].rate == rate_hz
        for _ in range(2):
            for part in np.array_split(x, 17):
                await stream.send(part)
            output = (await stream.flush())["denoised"][0]
            np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6)
            assert stream.stepped == [x.size]
            await stream.reset()


async def test_an_output_arrives_within_the_delay_of_the_hello(
    denoiser: tuple[RunningServer, Program],
) -> None:
    server, program = denoiser
    x = sound(48_000)
    async with connect(server.ws, rate_hz=48_000) as stream:
        delay, pulse_frames = stream.outputs[0].delay, 3 * program.pulse
        assert delay > 3 * program.outputs[0].delay
        received = 0
        for first in range(0, x.size, 480):
            await stream.send(x[first : first + 480])
            due = first + 480 - delay - pulse_frames
            while received < due:
                received += (await anext(stream))["denoised"].shape[1]
        assert received > 40_000
        with pytest.raises(ClientError, match="rates") as refused:
            async with connect(server.ws, rate_hz=8_000_000):
                raise AssertionError
        assert refused.value.code == "rate"


async def test_opus_is_decoded_and_encoded(denoiser: tuple[RunningServer, Program]) -> None:
    pytest.importorskip("av", reason="needs the extra opus")
    server, program = denoiser
    x = sound(48_000)
    expected = resample(denoise(program, resample(x, 48_000, RATE_HZ)), RATE_HZ, 48_000)
    async with connect(server.ws, format="opus") as stream:
        assert stream.rate_hz == 48_000
        for _ in range(2):
            for part in np.array_split(x, 29):
                await stream.send(part)
            output = (await stream.flush())["denoised"][0]
            assert expected.size <= output.size < expected.size + 2 * 480
            level = np.sqrt(np.mean((output[: expected.size] - expected) ** 2) / np.mean(expected**2))
            assert level < 0.1  # 20 dB beneath, twice coded; one sample too early or late gives more
            late = np.sqrt(np.mean((output[1 : expected.size + 1] - expected) ** 2) / np.mean(expected**2))
            assert level < late
            await stream.reset()


@pytest.mark.parametrize(
    ("packet", "frames"),
    [(b"\xff" * 40, 480), (b"", 480), (b"\xfc" + bytes(60), 480), (b"\0" * 9, 9000)],
    ids=["no frames", "empty", "of code 0", "other length"],
)
async def test_an_invalid_packet_of_opus_ends_only_its_stream(
    denoiser: tuple[RunningServer, Program], packet: bytes, frames: int
) -> None:
    pytest.importorskip("av", reason="needs the extra opus")
    from streaming.protocol.binary_messages import INPUT, Header, pack_frames
    from tests.streaming.serve.websocket_client import raw

    server, _ = denoiser
    with raw(server) as client:
        assert client.hello(format="opus", skip=312)["skip"] == 120
        client.send(pack_frames(Header(INPUT, 0, 0, frames, 0), packet))
        assert client.receive_until("error")[-1]["code"] == "message"
        assert client.closing_status() == 1008


async def test_features_are_not_resampled() -> None:
    from tests.streaming.executor.streams import named_program

    model = ModelSettings(name="decimated", streams=1)
    with running_server([(model, named_program("decimated", 6), 100)], threads=1) as server:
        with pytest.raises(ClientError, match="not sound") as refused:
            async with connect(server.ws, rate_hz=200):
                raise AssertionError
        assert refused.value.code == "rate"
