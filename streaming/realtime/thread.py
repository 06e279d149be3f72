"""The thread that runs a model: its priority and its CPU. It keeps both for as long as it lives."""

import ctypes
import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress

from streaming.realtime.realtime_settings import Realtime, RealtimeSetting
from streaming.realtime.rights import CAP_SYS_NICE, is_capable, limit_advice, soft_limit

NICE = -11
"""The nice value that sound servers use without real-time priority."""
QOS_USER_INTERACTIVE = 0x21
"""From macOS' sys/qos.h."""


def apply_to_thread(options: Realtime) -> list[RealtimeSetting]:
    """Take priority and CPU for the calling thread; call it first thing in the engine's thread.

    Without the right to this priority, the thread gets the highest allowed one, else a better nice value.
    Threads that this one starts do not inherit the priority.

    Returns  one setting for each request
    """
    settings: list[RealtimeSetting] = []
    if options.priority is not None:
        settings.append(_set_priority(options.priority))
    if options.cpu is not None:
        settings.append(_set_cpu(options.cpu))
    return settings


def share_priority(threads: Iterable[int]) -> None:
    """Set the priority of threads of this process, by their ids in the system, to that of the calling one; on Linux.

    This needs the right that the calling thread has used; if refused, the threads are unchanged.
    """
    if sys.platform != "linux":
        return
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    for thread in threads:
        with suppress(OSError):
            os.sched_setscheduler(thread, policy, parameters)
            os.setpriority(os.PRIO_PROCESS, thread, nice)


def _set_priority(priority: int) -> RealtimeSetting:
    requested = f"FIFO {priority}"
    if sys.platform == "linux":
        reason = _take_fifo(priority)
        granted = _describe_scheduling()
        return RealtimeSetting("priority", requested, granted, None if granted == requested else reason)
    if sys.platform == "darwin":
        return RealtimeSetting(
            "priority", requested, _take_quality(), "macOS gives threads a class and no FIFO priority"
        )
    return RealtimeSetting("priority", requested, "normal", f"not available on {sys.platform}")


def _take_fifo(priority: int) -> str | None:
    """Take real-time priority, or the next best. Returns the reason if it is not the requested one."""
    error = _try_priority(priority)
    if error is None:
        return None
    limit = soft_limit("RTPRIO")
    if is_capable(CAP_SYS_NICE) or limit >= priority:
        _take_nice()
        return (
            f"the kernel refused it ({error.strerror}); the control group of this process may have no real-time "
            "budget: see cpu.rt_runtime_us of the group"
        )
    if limit < 1 or _try_priority(int(limit)) is not None:
        _take_nice()
    return f"the limit of this user is {limit:.0f} (ulimit -r); {limit_advice('rtprio', str(priority))}"


def _try_priority(priority: int) -> OSError | None:
    """Request a real-time priority for this thread. Returns the error if refused."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    except OSError as error:
        return error
    return None


def _take_nice() -> None:
    """Take a better nice value for this thread, as far as allowed; ``_describe_scheduling`` returns the granted one."""
    thread = threading.get_native_id()
    for nice in (NICE, 20 - int(min(20 - NICE, soft_limit("NICE")))):
        if nice < os.getpriority(os.PRIO_PROCESS, thread):
            try:
                os.setpriority(os.PRIO_PROCESS, thread, nice)
            except PermissionError:
                continue


def _describe_scheduling() -> str:
    """Describe the scheduling of this thread."""
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    named = {os.SCHED_FIFO: "FIFO", os.SCHED_RR: "RR"}.get(policy)
    if named is not None:
        return f"{named} {os.sched_getparam(0).sched_priority}"
    nice = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    return f"nice {nice}" if nice else "normal"


def _take_quality() -> str:
    """Take the quality of service of threads that a user waits for; macOS."""
    refused = ctypes.CDLL(None).pthread_set_qos_class_self_np(QOS_USER_INTERACTIVE, 0)
    return "normal" if refused else "user interactive"


def _set_cpu(cpu: int) -> RealtimeSetting:
    requested = f"CPU {cpu}"
    if sys.platform != "linux":
        return RealtimeSetting("cpu", requested, "any CPU", f"not available on {sys.platform}")
    try:
        os.sched_setaffinity(0, {cpu})
    except OSError as error:
        allowed = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
        reason = f"{error.strerror}; the CPUs of this process are {allowed}: choose one of these, or widen its cpuset"
        return RealtimeSetting("cpu", requested, f"CPU {allowed}", reason)
    return RealtimeSetting("cpu", requested, requested)
