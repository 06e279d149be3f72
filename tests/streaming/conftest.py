"""Coroutine tests run on both event loops; one server serves most tests of servers and clients."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.streaming.serve.servers import RunningServer

CONSTANTS = {"two_rates": {"gain": 1.5}}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def server() -> "Iterator[RunningServer]":
    """All small models, 40 streams each."""
    from streaming.serve.settings import LimitSettings, ModelSettings, ServerSettings
    from tests.streaming.executor.streams import MODELS, named_program
    from tests.streaming.serve.servers import PULSE, RATE_HZ, running_server

    limits = LimitSettings(speed=1e6, streams_per_address=100)
    programs = [
        (
            ModelSettings(name=name, streams=40, constants=CONSTANTS.get(name, {})),
            named_program(name, PULSE),
            RATE_HZ,
        )
        for name in MODELS
    ]
    settings = ServerSettings(tuple(model for model, _, _ in programs), limits=limits, budget=1.0)
    with running_server(programs, settings) as started:
        yield started
