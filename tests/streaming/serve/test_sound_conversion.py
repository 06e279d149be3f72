"""Clients with other rates or with Opus get the model's output at their own rate."""

from collections.abc import Iterator

import numpy as np
import pytest

import pulse
from pulse.client import ClientError, connect
from pulse.errors import InputError
from pulse.facts import Array
from pulse.program.program import Program
from streaming.builtin import model_path
from streaming.native.resample import NativeResampler
from streaming.protocol.ports import StreamPort
from streaming.serve.port_sound import InputSound
from streaming.serve.settings import ModelSettings
from streaming.session import Session
from tests.streaming.models import channel_filter_model, copy_model, program, stereo_model
from tests.streaming.serve.servers import RunningServer, running_server
from tests.streaming.serve.websocket_client import raw

pytestmark = pytest.mark.anyio
RATE_HZ = 16_000
STEREO = {"planar": "1,2,T,f32", "of two axes": "T,2,f32", "interleaved": "1,T,2,f32"}


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

    server, _ = denoiser
    with raw(server) as client:
        assert client.hello(format="opus", skip=312)["skip"] == 120
        client.send(pack_frames(Header(INPUT, 0, 0, frames, 0), packet))
        assert client.receive_until("error")[-1]["code"] == "message"
        assert client.closing_status() == 1008


@pytest.fixture(scope="module")
def stereo() -> Iterator[tuple[RunningServer, dict[str, Program]]]:
    programs = {name: program(stereo_model(text), 160, "numba") for name, text in STEREO.items()}
    hosted = [(ModelSettings(name=name, streams=4), program, RATE_HZ) for name, program in programs.items()]
    with running_server(hosted, threads=1) as server:
        yield server, programs


@pytest.mark.parametrize("format", ["f32", "pcm16"])
@pytest.mark.parametrize("rate_hz", [48_000, RATE_HZ])
@pytest.mark.parametrize("name", STEREO)
async def test_each_channel_is_converted(
    stereo: tuple[RunningServer, dict[str, Program]], name: str, rate_hz: int, format: str
) -> None:
    """The model swaps two channels."""
    server, programs = stereo
    port, channels = programs[name].inputs[0], [sound(9_000, 1), sound(9_000, 2)]
    samples = port.shape_sound(np.stack(channels, 1))
    async with connect(server.ws, name, rate_hz=rate_hz, format=format) as stream:
        assert [port.kind for port in (*stream.inputs, *stream.outputs)] == ["sound", "sound"]
        for part in np.array_split(samples, 7, port.axis):
            await stream.send(part)
        output = port.read_sound((await stream.flush())["y"])
    expected = channels[::-1]
    if rate_hz != RATE_HZ:
        expected = [resample(resample(x, rate_hz, RATE_HZ), RATE_HZ, rate_hz) for x in expected]
    tolerance = 1e-6 if format == "f32" else 2 / 32768
    np.testing.assert_allclose(output, np.stack(expected, 1), atol=tolerance)


async def test_a_stream_of_two_channels_resumes_from_a_snapshot() -> None:
    """The resamplers of all channels are in it."""
    model = stereo_model(STEREO["planar"])
    port = StreamPort.of_port(0, program(model, 160).inputs[0], RATE_HZ)
    x = np.stack([sound(3_000, 1), sound(3_000, 2)])[None]
    whole, first, then = (InputSound(port, 48_000, RATE_HZ, None) for _ in range(3))
    expected = whole.push(x, x.shape[2])
    parts = [first.push(x[..., :777], 777)]
    then.restore(first.snapshot())
    assert then.received == 777
    parts.append(then.push(x[..., 777:], x.shape[2] - 777))
    np.testing.assert_array_equal(np.concatenate(parts, 2), expected)
    mono = StreamPort.of_port(0, program(copy_model(), 160).inputs[0], RATE_HZ)
    with pytest.raises(InputError, match="and 2 sections instead of 1 and 1"):
        InputSound(mono, 48_000, RATE_HZ, None).restore(first.snapshot())


async def test_other_numbers_of_channels_are_refused(
    stereo: tuple[RunningServer, dict[str, Program]],
) -> None:
    server, _ = stereo
    async with connect(server.ws, "planar") as stream:
        with pytest.raises(
            InputError, match=r"expected \[1, 2, None\], got \[1, 3, 9\]; send .* with 2 channels"
        ):
            await stream.send(np.zeros((1, 3, 9), np.float32))
        with pytest.raises(InputError, match=r"got \[9\]; send an array of this shape, with 2 channels"):
            await stream.send(np.zeros(9, np.float32))
    with raw(server) as client:
        client.hello(model="planar")
        client.send_frames(np.zeros(10), 0)
        error = client.receive_until("error")[-1]
        assert (error["code"], error["hint"]) == (
            "message",
            "a frame has 8 bytes: one sample of each of 2 channels",
        )


async def test_opus_takes_one_channel(stereo: tuple[RunningServer, dict[str, Program]]) -> None:
    server, _ = stereo
    with pytest.raises(ClientError, match=r"one channel, and the input x of planar has 2; send f32 or pcm16"):
        async with connect(server.ws, "planar", format="opus"):
            raise AssertionError


async def test_features_are_not_resampled() -> None:
    model = ModelSettings(name="features", streams=1)
    with running_server([(model, program(channel_filter_model(), 6), 100)], threads=1) as server:
        with pytest.raises(ClientError, match="not sound") as refused:
            async with connect(server.ws, rate_hz=200):
                raise AssertionError
        assert refused.value.code == "rate"
