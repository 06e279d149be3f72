"""Commands to a pipeline that are interrupted, and those that another thread is just applying."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from streaming.live import control
from streaming.native import control_block as cb
from tests.noise import normal_noise
from tests.streaming.live.runs import RATE, fields, runs, sum_model
from tests.streaming.models import cached_program


class Interrupted(KeyboardInterrupt):
    """Ctrl-C at a moment that a test chooses."""


def interrupt(_: float) -> None:
    raise Interrupted


def test_an_interrupted_command_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is released then, so it must not be applied later."""
    with runs(cached_program(sum_model)) as (host, live):
        host.run(normal_noise(800))
        before = live.control.snapshot()
        live.control.running = True
        monkeypatch.setattr(control.time, "sleep", interrupt)
        for command in (live.control.reset, live.control.snapshot, lambda: live.control.restore(before)):
            with pytest.raises(Interrupted):
                command()
            assert fields(live).command == cb.NONE
        with pytest.raises(Interrupted):
            live.control.swap(cached_program(sum_model))
        live.control.running = False
        host.run(normal_noise(RATE, seed=1))
        assert not live.control.is_swapping
        assert fields(live).next_instances == 0
        assert fields(live).load_count == 0, "neither the reset nor the restore was applied"


def test_an_interrupt_that_comes_too_late_keeps_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command is already applied: the successor plays, so its memory stays."""
    with runs(cached_program(sum_model)) as (host, live):
        host.run(normal_noise(800))
        old, apply = live.pipeline.instances, control.apply_now.call

        def apply_and_interrupt(address: int) -> None:
            apply(address)
            raise Interrupted

        monkeypatch.setattr(control, "apply_now", SimpleNamespace(call=apply_and_interrupt))
        with pytest.raises(Interrupted):
            live.control.swap(cached_program(sum_model), 0.01)
        assert live.control.is_swapping
        host.run(normal_noise(RATE))
        assert not live.control.is_swapping
        assert live.pipeline.instances is not old
        assert fields(live).instances == live.pipeline.instances.address


def test_a_command_is_applied_by_one_thread_only() -> None:
    with runs(cached_program(sum_model)) as (host, live):
        host.run(normal_noise(800))
        before = live.control.snapshot()
        shared = fields(live)
        shared.argument_memory, shared.argument_number, shared.command = 0, 0, cb.TAKEN
        control.apply_now.call(live.pipeline.address)
        assert fields(live).command == cb.TAKEN
        shared.command = cb.NONE
        assert live.control.snapshot() == before


class ObservedLock:
    """A lock that reports when a thread has to wait for it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_waited_for = threading.Event()

    def __enter__(self) -> None:
        if not self.lock.acquire(blocking=False):
            self.is_waited_for.set()
            self.lock.acquire()

    def __exit__(self, *error: object) -> None:
        self.lock.release()


def test_a_device_that_returns_waits_until_a_command_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device computes no pulse while this thread applies a command to the memory."""
    lock = ObservedLock()
    monkeypatch.setattr(control, "threading", SimpleNamespace(RLock=lambda: lock))
    with runs(cached_program(sum_model)) as (_, live):
        is_applied, may_continue = threading.Event(), threading.Event()
        apply = control.apply_now.call

        def apply_slowly(address: int) -> None:
            is_applied.set()
            may_continue.wait(60)
            apply(address)

        monkeypatch.setattr(control, "apply_now", SimpleNamespace(call=apply_slowly))
        commands = threading.Thread(target=live.control.reset)
        commands.start()
        assert is_applied.wait(60)
        device = threading.Thread(target=setattr, args=(live.control, "running", True))
        device.start()
        assert lock.is_waited_for.wait(60)
        assert not live.control.running
        may_continue.set()
        commands.join()
        device.join()
        assert live.control.running
        live.control.running = False


def test_unmuting_fades_from_the_present_gain() -> None:
    """The wanted gain may change while a pulse is mixed: the next pulse starts at the gain where that one ended."""
    with runs(cached_program()) as (host, live):
        sound = np.ones(1600, np.float32)
        host.run(sound)
        live.control.muted = True
        host.run(sound[:160])
        gains = live.pipeline.memory.gains
        assert not gains.words.any()
        live.control.muted = False
        assert (gains.model, gains.wanted_model, gains.wanted_bypass) == (0, 1, 0)
