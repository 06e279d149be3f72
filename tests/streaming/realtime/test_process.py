"""Locked memory, a quiet collector, and all of it without rights: obtained or reported, and undone at the end."""

import ctypes
import gc
import json
import mmap
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pulse.errors import InputError
from streaming.realtime import Realtime, RealtimeSetting, apply_to_process, apply_to_thread, locked_memory
from streaming.realtime.realtime_settings import UNCHANGED, cpu_count
from streaming.realtime.rights import CAP_IPC_LOCK, status_field
from tests.streaming.platform_marks import capable, linux

ONLY_LOCK = Realtime(priority=None, freeze_gc=False)
ONLY_GC = Realtime(priority=None, lock_memory=False)

WITHOUT_RIGHTS = """
import json, os, resource
from streaming.realtime import Realtime, apply_to_thread, apply_to_process
for kind, limit in (("RTPRIO", 0), ("NICE", 0), ("MEMLOCK", 1 << 20)):
    resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (limit, limit))
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
with apply_to_process(Realtime()) as settings:
    settings += apply_to_thread(Realtime())
print(json.dumps([[setting.name, setting.is_granted, setting.granted, str(setting)] for setting in settings]))
"""


def locked_kib() -> int:
    return int(status_field("VmLck").removesuffix(" kB"))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"priority": 0}, "priority 0: give 1 to 99"),
        ({"priority": 100}, "priority 100"),
        ({"cpu": 9999}, f"cpu=9999: this machine has CPUs 0 to {cpu_count() - 1}; omit it for all of them"),
        ({"cpu": -1}, "cpu=-1: this machine"),
        ({"switch_interval_s": 0.0}, "switch_interval_s 0: give at least 1e-06"),
        ({"switch_interval_s": float("nan")}, "switch_interval_s nan"),
    ],
)
def test_settings_that_cannot_be_granted_are_refused(wish: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Realtime(**wish)


def test_a_setting_has_its_value_and_reason() -> None:
    assert str(RealtimeSetting("memory", "locked", "locked")) == "memory: locked"
    setting = RealtimeSetting("priority", "FIFO 70", "normal", "no rights; ask for them")
    assert not setting.is_granted
    assert str(setting) == "priority: normal instead of FIFO 70: no rights; ask for them"


def test_default_settings_change_nothing() -> None:
    switch_interval, frozen = sys.getswitchinterval(), gc.get_freeze_count()
    with apply_to_process(UNCHANGED) as settings:
        assert settings == apply_to_thread(UNCHANGED) == []
        assert sys.getswitchinterval() == switch_interval
        assert gc.get_freeze_count() <= frozen  # fewer, if a frozen object of another test is deleted


@linux
def test_a_user_without_rights_gets_reasons_and_streams() -> None:
    """A user of no rights: the collector is frozen, for the rest there is a reason and a way out."""
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIGHTS], capture_output=True, text=True, timeout=60, check=True
    )
    settings = {name: (granted, value, text) for name, granted, value, text in json.loads(process.stdout)}
    assert list(settings) == ["collector", "memory", "priority"]
    assert settings["collector"][0]
    granted, value, text = settings["memory"]
    assert (granted, value) == (False, "not locked")
    assert "may lock 1 (ulimit -l); put '@audio - memlock unlimited' into /etc/security/limits.d" in text
    granted, value, text = settings["priority"]
    assert (granted, value) == (False, f"nice {os.nice(0)}" if os.nice(0) else "normal")
    assert "the limit of this user is 0 (ulimit -r); put '@audio - rtprio 70'" in text
    assert process.stderr == ""


@capable(CAP_IPC_LOCK)
def test_memory_is_locked_until_the_last_stream_ends() -> None:
    before = locked_kib()
    with apply_to_process(ONLY_LOCK) as settings:
        assert settings == [RealtimeSetting("memory", "locked", "locked")]
        first = locked_kib()
        assert first > before + 10_000
        mapped = mmap.mmap(-1, 64 << 20)
        with apply_to_process(ONLY_LOCK):
            assert locked_kib() >= first + (60 << 10)
        assert locked_kib() >= first
        mapped.close()
    assert locked_kib() == 0


@linux
def test_refused_memory_locks_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Libc:
        def mlockall(self, flags):
            assert flags == locked_memory.MCL_CURRENT | locked_memory.MCL_ONFAULT
            ctypes.set_errno(12)
            return -1

    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Libc())
    monkeypatch.setattr(locked_memory, "is_capable", lambda _: True)
    monkeypatch.setattr(locked_memory, "unlock_all", lambda: pytest.fail("it was not locked"))
    with apply_to_process(ONLY_LOCK) as settings:
        (setting,) = settings
    assert (
        str(setting) == "memory: not locked instead of locked: the kernel refused it: Cannot allocate memory"
    )


def test_the_collector_excludes_existing_objects() -> None:
    with apply_to_process(ONLY_GC) as settings:
        frozen = gc.get_freeze_count()
        assert settings == [RealtimeSetting("collector", "frozen", "frozen")]
        assert frozen > 1000
        more = [[] for _ in range(5000)]
        with apply_to_process(ONLY_GC):
            assert gc.get_freeze_count() > frozen + 4000
        assert gc.get_freeze_count() > frozen
        del more
    assert gc.get_freeze_count() == 0


def test_the_shortest_switch_interval_counts() -> None:
    """A server of another test, whose interval is 0.5 ms, may run in this process."""
    before = sys.getswitchinterval()
    slow, fast = (Realtime(None, False, None, False, seconds) for seconds in (2e-4, 1e-4))
    with apply_to_process(slow) as settings:
        assert settings == [RealtimeSetting("switch interval", "0.2 ms", "0.2 ms")]
        with apply_to_process(fast):
            assert sys.getswitchinterval() == pytest.approx(1e-4)
            with apply_to_process(slow) as (setting,):
                assert str(setting) == (
                    "switch interval: 0.1 ms instead of 0.2 ms: another stream of this process requests it"
                )
        assert sys.getswitchinterval() == pytest.approx(2e-4)
    assert sys.getswitchinterval() == before


def test_settings_of_the_process_are_undone_after_an_error() -> None:
    before = sys.getswitchinterval()
    with (
        pytest.raises(RuntimeError, match="in the stream"),
        apply_to_process(Realtime(switch_interval_s=1e-3)),
    ):
        raise RuntimeError("in the stream")
    assert gc.get_freeze_count() == 0
    assert sys.getswitchinterval() == before
    assert sys.platform != "linux" or locked_kib() == 0


def test_settings_hold_until_the_last_stream_ends_in_any_order() -> None:
    """Eight streams in threads: while any runs the collector is frozen, at the end it is not."""
    barrier, frozen = threading.Barrier(8, timeout=30), []

    def stream(number):
        with apply_to_process(Realtime(switch_interval_s=1e-3 * (number + 1))):
            barrier.wait()
            frozen.append(gc.get_freeze_count() > 0)

    before = sys.getswitchinterval()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(stream, range(8)))
    assert frozen == [True] * 8
    assert gc.get_freeze_count() == 0
    assert sys.getswitchinterval() == before


def test_windows_continues_and_reports_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with apply_to_process(Realtime()) as settings:
        all_settings = [*settings, *apply_to_thread(Realtime(cpu=0))]
    assert {setting.name: setting.is_granted for setting in all_settings} == {
        "collector": True,
        "memory": False,
        "priority": False,
        "cpu": False,
    }
    assert all(setting.is_granted or setting.reason == "not available on win32" for setting in all_settings)
