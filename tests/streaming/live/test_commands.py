"""Commands to a pipeline that are interrupted, and those that another thread is just applying."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from pulse.errors import InputError, PulseError
from streaming.live import control
from streaming.native import control_block as cb
from tests.streaming.live.runs import RATE, cached_program, fields, noise, runs, sum_model


class Interrupted(KeyboardInterrupt):
    """Ctrl-C at a moment that a test chooses."""


def interrupt(_: float) -> None:
    raise Interrupted


def test_an_interrupted_command_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory may go then: it is not applied later."""
    with runs(cached_program(sum_model)) as (host, live):
        host.run(noise(800))
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
        host.run(noise(RATE, seed=1))
        assert not live.control.swapping and fields(live).next_instances == 0
        assert live.control.snapshot() != before


def test_an_interrupt_that_comes_too_late_keeps_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command has been applied: the successor plays, so its memory stays."""
    with runs(cached_program(sum_model)) as (host, live):
        host.run(noise(800))
        old, apply = live.pipeline.instances, control.apply_now.call

        def apply_and_interrupt(address: int) -> None:
            apply(address)
            raise Interrupted

        monkeypatch.setattr(control, "apply_now", SimpleNamespace(call=apply_and_interrupt))
        with pytest.raises(Interrupted):
            live.control.swap(cached_program(sum_model), 0.01)
        assert live.control.swapping
        host.run(noise(RATE))
        assert not live.control.swapping and live.pipeline.instances is not old
        assert fields(live).instances == live.pipeline.instances.address


def test_a_command_is_applied_by_one_thread_only() -> None:
    with runs(cached_program(sum_model)) as (host, live):
        host.run(noise(800))
        before = live.control.snapshot()
        shared = fields(live)
        shared.argument_memory, shared.argument_number, shared.command = 0, 0, cb.TAKEN
        control.apply_now.call(live.pipeline.address)
        assert fields(live).command == cb.TAKEN
        shared.command = cb.NONE
        assert live.control.snapshot() == before


def test_who_computes_changes_between_two_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that comes back computes no pulse while a command is applied here."""
    with runs(cached_program(sum_model)) as (_, live):
        inside, go = threading.Event(), threading.Event()
        apply = control.apply_now.call

        def slowly(address: int) -> None:
            inside.set()
            go.wait(60)
            apply(address)

        monkeypatch.setattr(control, "apply_now", SimpleNamespace(call=slowly))
        commands = threading.Thread(target=live.control.reset)
        commands.start()
        assert inside.wait(60)
        device = threading.Thread(target=setattr, args=(live.control, "running", True))
        device.start()
        device.join(0.02)
        assert not live.control.running
        go.set()
        commands.join()
        device.join()
        assert live.control.running
        live.control.running = False


def test_a_run_is_entered_once() -> None:
    with runs(cached_program(sum_model)) as (_, live):
        pass
    with pytest.raises(InputError, match="entered once; make another one"), live:
        pass


def test_mute_fades_from_where_it_is() -> None:
    """What is wanted may change while a pulse is mixed: the next one begins where that one ended."""
    with runs(cached_program()) as (host, live):
        sound = np.ones(1600, np.float32)
        host.run(sound)
        live.control.muted = True
        host.run(sound[:160])
        gains = live.pipeline.memory.gains
        assert not gains.words.any()
        live.control.muted = False
        assert (gains.model, gains.wanted_model, gains.wanted_bypass) == (0, 1, 0)


def test_no_thread_applies_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    with runs(cached_program(sum_model)) as (_, live):
        live.control.running = True
        monkeypatch.setattr(control, "ANSWER_TIMEOUT_S", 0.01)
        with pytest.raises(PulseError, match=r"no pulse has ended within 0\.01 s"):
            live.control.reset()
        assert fields(live).command == cb.NONE
        live.control.running = False
