"""The limits that the system sets for a process, and where they are changed; Linux."""

from pathlib import Path

STATUS = Path("/proc/thread-self/status")
CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
"""Numbers of capabilities: to lock any memory, to take any priority."""


def status(field: str) -> str:
    """A field of what the kernel says of this thread: ``VmSize`` gives ``583736 kB``. Empty where it says nothing."""
    lines = STATUS.read_text().splitlines() if STATUS.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{field}:")), "")


def is_capable(capability: int) -> bool:
    """Whether this thread has a capability."""
    return bool(int(status("CapEff") or "0", 16) >> capability & 1)


def soft_limit(kind: str) -> float:
    """The limit of a resource that is in force, infinity if there is none: ``RTPRIO``, ``NICE``, ``MEMLOCK``."""
    import resource

    soft, _ = resource.getrlimit(getattr(resource, f"RLIMIT_{kind}"))
    return float("inf") if soft == resource.RLIM_INFINITY else soft


def limit_advice(item: str, value: str) -> str:
    """How a limit is raised."""
    return (
        f"put '@audio - {item} {value}' into /etc/security/limits.d/audio.conf, this user into the group audio, and "
        f"log in again; for a service it is Limit{item.upper()}, for a container --ulimit {item}"
    )
