"""Priority and CPU of the engine's thread: from real time to nice to normal."""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from streaming.realtime import Realtime, RealtimeSetting, apply_to_thread, locked_memory, thread
from streaming.realtime.rights import CAP_SYS_NICE
from tests.streaming.platform_marks import capable, linux


def in_a_thread(call: Callable[..., Any]) -> tuple[Any, ...]:
    """The result of a call in a thread of its own, whose settings end with it."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result(30)


def policy() -> tuple[int, int]:
    return os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, os.sched_getparam(0).sched_priority


@capable(CAP_SYS_NICE)
def test_priority_is_of_the_thread_alone() -> None:
    """Neither the thread that starts the engine nor one that the engine starts has it, nor does a process."""

    def engine():
        settings = apply_to_thread(Realtime(priority=42))
        code = "import os; print(os.sched_getscheduler(0))"
        child = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)
        return settings, policy(), in_a_thread(policy), int(child.stdout)

    settings, of_engine, of_its_thread, of_its_process = in_a_thread(engine)
    assert settings == [RealtimeSetting("priority", "FIFO 42", "FIFO 42")]
    assert of_engine == (os.SCHED_FIFO, 42)
    assert of_its_thread == (os.SCHED_OTHER, 0)
    assert of_its_process == os.SCHED_OTHER
    assert policy() == (os.SCHED_OTHER, 0)


@linux
def test_a_cpu_is_chosen_for_the_thread_alone() -> None:
    before = os.sched_getaffinity(0)
    chosen = max(before)
    wish = Realtime(priority=None, cpu=chosen)
    settings_and_cpus = in_a_thread(lambda: (apply_to_thread(wish), os.sched_getaffinity(0)))
    assert settings_and_cpus == ([RealtimeSetting("cpu", f"CPU {chosen}", f"CPU {chosen}")], {chosen})
    assert os.sched_getaffinity(0) == before


@linux
def test_forbidden_cpus_are_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    (setting,) = apply_to_thread(Realtime(priority=None, cpu=0))
    assert not setting.is_granted or os.sched_getaffinity(0) == {0}
    assert "Invalid argument; the CPUs of this process are 0" in setting.reason


class Scheduler:
    """A stand-in for the kernel's scheduler that grants up to a priority and a niceness."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fifo: int, nice: int, capable: bool = False) -> None:
        self.fifo, self.lowest = fifo, nice
        self.priority = self.nice = 0
        monkeypatch.setattr(os, "sched_setscheduler", self.take)
        monkeypatch.setattr(os, "setpriority", self.renice)
        monkeypatch.setattr(
            os, "sched_getscheduler", lambda _: os.SCHED_FIFO if self.priority else os.SCHED_OTHER
        )
        monkeypatch.setattr(os, "sched_getparam", lambda _: os.sched_param(self.priority))
        monkeypatch.setattr(os, "getpriority", lambda *_: self.nice)
        monkeypatch.setattr(thread, "is_capable", lambda _: capable)
        monkeypatch.setattr(thread, "soft_limit", {"RTPRIO": fifo, "NICE": 20 - nice}.get)

    def take(self, _: int, policy: int, param: Any) -> None:
        assert policy & os.SCHED_RESET_ON_FORK
        if param.sched_priority > self.fifo:
            raise PermissionError(1, "Operation not permitted")
        self.priority = param.sched_priority

    def renice(self, kind: int, who: int, nice: int) -> None:
        assert kind == os.PRIO_PROCESS
        assert who == threading.get_native_id()
        if nice < self.lowest:
            raise PermissionError(13, "Permission denied")
        self.nice = nice


@linux
@pytest.mark.parametrize(
    ("fifo", "nice", "granted"),
    [
        (70, 0, "FIFO 70"),
        (20, -20, "FIFO 20"),
        (0, -20, "nice -11"),
        (0, -4, "nice -4"),
        (0, 0, "normal"),
        (0, 20, "normal"),
    ],
)
def test_a_refused_priority_falls_back_to_nice_and_to_normal(
    monkeypatch: pytest.MonkeyPatch, fifo: int, nice: int, granted: str
) -> None:
    Scheduler(monkeypatch, fifo, nice)
    (setting,) = apply_to_thread(Realtime())
    assert (setting.requested, setting.granted) == ("FIFO 70", granted)
    assert (
        setting.reason is None
        if setting.is_granted
        else f"the limit of this user is {fifo} (ulimit -r)" in setting.reason
    )


@linux
def test_a_refusal_names_the_setting_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    Scheduler(monkeypatch, 0, -20, capable=True)
    (setting,) = apply_to_thread(Realtime())
    assert setting.granted == "nice -11"
    assert "Operation not permitted" in setting.reason
    assert "cpu.rt_runtime_us" in setting.reason


@pytest.mark.parametrize(("refused", "granted"), [(0, "user interactive"), (1, "normal")])
def test_macos_has_classes_of_threads(monkeypatch: pytest.MonkeyPatch, refused: int, granted: str) -> None:
    class System:
        def pthread_set_qos_class_self_np(self, quality, relative):
            assert (quality, relative) == (0x21, 0)
            return refused

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_: System())
    priority, cpu = apply_to_thread(Realtime(cpu=0))
    assert (priority.granted, cpu.granted) == (granted, "any CPU")
    assert priority.reason
    assert cpu.reason == "not available on darwin"
    assert locked_memory.lock_all() == "not available on darwin"
