"""The limits that Linux sets for a process, and how to change them."""

from pathlib import Path

STATUS_PATH = Path("/proc/thread-self/status")
CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
"""Numbers of capabilities: to lock any memory, to take any priority."""


def status_field(field: str) -> str:
    """Return a field of the kernel's status of this thread: ``VmSize`` is ``583736 kB``. Empty if there is none."""
    lines = STATUS_PATH.read_text().splitlines() if STATUS_PATH.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{field}:")), "")


def is_capable(capability: int) -> bool:
    """Return whether this thread has a capability."""
    return bool(int(status_field("CapEff") or "0", 16) >> capability & 1)


def soft_limit(limit: str) -> float:
    """Return the soft limit of a resource, infinity if there is none: ``RTPRIO``, ``NICE``, ``MEMLOCK``."""
    import resource

    soft, _ = resource.getrlimit(getattr(resource, f"RLIMIT_{limit}"))
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def limit_advice(item: str, value: str) -> str:
    """Return advice on how to raise a limit."""
    return (
        f"put '@audio - {item} {value}' into /etc/security/limits.d/audio.conf, this user into the group audio, and "
        f"log in again; for a service it is Limit{item.upper()}, for a container --ulimit {item}"
    )
