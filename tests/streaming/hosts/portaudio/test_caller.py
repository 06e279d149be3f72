"""Calls that may never return, and messages that libraries print meanwhile."""

import os
import threading
from collections.abc import Callable

import pytest

from streaming.hosts.portaudio.alsa_messages import capture_alsa_messages
from streaming.hosts.portaudio.caller import Caller

LIMIT_S = 10.0


def test_calls_are_made_in_turn_by_one_thread() -> None:
    caller = Caller("test")
    assert (
        caller(threading.get_ident, LIMIT_S) == caller(threading.get_ident, LIMIT_S) != threading.get_ident()
    )
    calls: list[int] = []
    futures = [caller.submit(lambda number=number: calls.append(number)) for number in range(5)]
    assert all(future.result(LIMIT_S) is None for future in futures)
    assert calls == [0, 1, 2, 3, 4]
    with pytest.raises(ZeroDivisionError):
        caller(lambda: 1 // 0, LIMIT_S)
    assert not caller.stuck
    caller.end()


def test_a_call_that_raises_timeout_error_is_not_stuck() -> None:
    def late() -> None:
        raise TimeoutError("of its own")

    caller = Caller("test")
    with pytest.raises(TimeoutError, match="of its own"):
        caller(late, LIMIT_S)
    assert not caller.stuck
    caller.end()


def test_nothing_is_called_after_a_call_that_does_not_return() -> None:
    """The call may return after all; the thread ends, and calls nothing."""
    caller, hold, began = Caller("stuck"), threading.Event(), threading.Event()
    calls: list[str] = []

    def hangs() -> None:
        began.set()
        hold.wait(LIMIT_S)

    caller.submit(hangs)
    assert began.wait(LIMIT_S)
    with pytest.raises(TimeoutError):
        caller(lambda: calls.append("behind"), 0.01)
    assert caller.stuck
    late = caller.submit(lambda: calls.append("late"))
    with pytest.raises(TimeoutError, match="earlier call"):
        caller(lambda: calls.append("never"), 1.0)
    threads = [thread for thread in threading.enumerate() if thread.name == "stuck"]
    hold.set()
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
    assert not calls
    assert not late.done()


def test_output_of_libraries_becomes_the_reason(capfd: pytest.CaptureFixture[str]) -> None:
    """The last message of ALSA is kept and not shown; later output reaches the terminal."""
    with capture_alsa_messages() as reason:
        assert reason() is None
        os.write(2, b"ALSA lib pcm.c:2666:(snd_pcm_open_noupdate) Unknown PCM front\nother \xff\n")
        os.write(
            2, b"ALSA lib pulse.c:242:(pulse_connect) PulseAudio: Unable to connect: Connection refused\n\n"
        )
        assert reason() == "PulseAudio: Unable to connect: Connection refused"
    os.write(2, b"heard\n")
    assert capfd.readouterr().err == "heard\n"


def test_alsa_messages_are_empty_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_descriptor(descriptor: int) -> int:
        raise OSError(9, "Bad file descriptor")

    monkeypatch.setattr(os, "dup", refuse_descriptor)
    called: list[Callable[[], str | None]] = []
    with capture_alsa_messages() as reason:
        called.append(reason)
    assert called[0]() is None
