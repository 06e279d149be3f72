"""The blocks of docs/serve.md, and the paths of a server."""

from collections.abc import Iterator

import numpy as np
import pytest

from pulse.program.program import Program
from streaming.builtin import model_path
from streaming.session import Session
from tests.documents.pages import pages
from tests.noise import normal_noise
from tests.streaming.serve.servers import RunningServer, running_server

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def denoiser() -> Iterator[tuple[RunningServer, Program]]:
    import pulse
    from streaming.serve.settings import ModelSettings

    program = pulse.stream(model_path(), pulse=160)
    with running_server([(ModelSettings(streams=4), program, 16000)]) as server:
        yield server, program


async def test_the_blocks_of_the_page_run(denoiser: tuple[RunningServer, Program]) -> None:
    server, program = denoiser
    names = {}
    for block in pages()["docs/serve.md"].blocks("python"):
        for address in ("ws://127.0.0.1:8080", "ws://10.0.0.1:8080", "ws://10.0.0.2:8080"):
            block = block.replace(address, server.ws)
        exec(block, names)
    noisy = normal_noise(1999, scale=0.1)
    outputs = await names["denoise"](noisy)
    again = await names["denoise_anyway"](noisy)
    assert np.array_equal(again["denoised"], outputs["denoised"])
    session = Session(program)
    first, rest = session.push(noisy[None])["denoised"], session.flush()["denoised"]
    np.testing.assert_allclose(outputs["denoised"], np.concatenate([first, rest], 1), rtol=1e-5, atol=1e-6)


def test_the_documented_paths_answer(denoiser: tuple[RunningServer, Program]) -> None:
    import httpx

    server, _ = denoiser
    with httpx.Client(base_url=server.url) as client:
        (model,) = client.get("/v1/models").json()["models"]
        assert (model["name"], model["rate"], model["pulse"]) == ("denoiser", 16000, 160)
        assert client.get("/health").json() == {"status": "ok"}
        assert "pulse_answer_seconds_bucket" in client.get("/metrics").text
        assert "denoiser" in client.get("/status").text
        assert client.get("/status.json").json()["models"][0]["limit"] == 4
        assert client.get("/v1/models", headers={"Origin": "https://elsewhere.example"}).status_code == 403
        assert client.get("/nowhere").status_code == 404
