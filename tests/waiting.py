"""Wait for what other threads, processes or tasks bring about."""

import time
from collections.abc import Callable

WAIT_TIMEOUT_S = 60.0
"""Beyond it a test fails: what it awaits does not happen. Far longer than anything takes on a busy machine."""


def becomes_true(condition: Callable[[], object], limit_s: float = WAIT_TIMEOUT_S) -> bool:
    """Whether a condition holds within a limit."""
    end_s = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.001)
    return True


def wait_until(condition: Callable[[], object], awaited: str) -> None:
    """Wait until a condition holds; a failure says what was awaited."""
    assert becomes_true(condition), f"did not happen in {WAIT_TIMEOUT_S:.0f} s: {awaited}"


async def wait_in_task(condition: Callable[[], object], awaited: str) -> None:
    """Wait until a condition holds, while other tasks of the event loop run."""
    import anyio

    end_s = time.monotonic() + WAIT_TIMEOUT_S
    while not condition():
        assert time.monotonic() < end_s, f"did not happen in {WAIT_TIMEOUT_S:.0f} s: {awaited}"
        await anyio.sleep(0.001)
