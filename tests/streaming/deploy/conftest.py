"""The program of most tests of built libraries."""

import pytest

from pulse.program.native.native_program import NativeProgram


@pytest.fixture(scope="module")
def program() -> NativeProgram:
    """The program of a small filter model, in pulses of ``PULSE`` frames."""
    from tests.streaming.deploy.building import PULSE, compile_program
    from tests.streaming.models import filter_model

    return compile_program(filter_model(), PULSE)
