"""Conditions of the system that the tests of priority and memory need."""

import sys

import pytest

from streaming.realtime.rights import is_capable

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def capable(capability: int) -> pytest.MarkDecorator:
    """Skip tests for a user who lacks a capability."""
    return pytest.mark.skipif(
        sys.platform != "linux" or not is_capable(capability), reason="this user lacks the capability"
    )
