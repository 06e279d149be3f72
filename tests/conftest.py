"""What tests of any folder ask for."""

import signal
from collections.abc import Generator

import pytest


@pytest.fixture
def usual_signals() -> Generator[None]:
    """Signals as in a terminal, also for what a test starts.

    What runs in the background of a script, or under nohup, is deaf to some, and so is all that it starts.
    """
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    if hasattr(signal, "SIGHUP"):
        usual[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
