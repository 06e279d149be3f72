"""The model of everything on each backend."""

import pytest

from pulse.program.program import Program
from tests.backends import BACKENDS


@pytest.fixture(params=BACKENDS)
def program(request: pytest.FixtureRequest) -> Program:
    from tests.pulse.program.streams.model_of_everything import PROGRAMS

    return PROGRAMS[request.param]
