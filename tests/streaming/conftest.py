"""Coroutine tests run on both event loops; one server serves most tests of servers and clients."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from tests.streaming.serve.servers import RunningServer

CONSTANTS = {"two_rates": {"gain": 1.5}}

NEED_WEBSOCKETS = ("serve", "client")
"""The folders whose tests need the package of clients."""


class SkippedModule(pytest.Module):
    """A module whose tests need a package that is missing."""

    def collect(self) -> NoReturn:
        pytest.skip("needs the extra serve", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Skip the modules that import a client where it is missing."""
    if module_path.parent.name in NEED_WEBSOCKETS and find_spec("websockets") is None:
        return SkippedModule.from_parent(parent, path=module_path)
    return None


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
