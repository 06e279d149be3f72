"""Memory that is loaded before it is needed, and locked."""

import ctypes
import mmap
import os
import sys

import numpy as np
from numpy.lib.array_utils import byte_bounds

from pulse.facts import Array
from streaming.realtime.rights import CAP_IPC_LOCK, is_capable, limit_advice, soft_limit, status_field

MCL_CURRENT, MCL_ONFAULT = 1, 4
"""From Linux' bits/mman.h: lock the present mappings; lock each page when it is first touched."""


def prefault(*arrays: Array) -> None:
    """Touch every page of arrays, so that no first access waits for the system. Values do not change.

    No other thread may write to the arrays at the same time. Read-only arrays are read.
    """
    for array in arrays:
        if array.size:
            low, high = byte_bounds(array)
            memory = np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))
            for touched in (memory[:: mmap.PAGESIZE], memory[-1:]):
                if array.flags.writeable:
                    touched |= 0
                else:
                    touched.sum()


def lock_all() -> str | None:
    """Lock in memory all present mappings of this process, as far as they have been touched or will be.

    Pages that were never touched are not loaded: that would read whole libraries and mapped files. So call it after
    the first pulses have run; later mappings need another call.

    Returns  None if granted, else the reason and what to do
    """
    if sys.platform != "linux":
        return f"not available on {sys.platform}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MCL_CURRENT | MCL_ONFAULT) == 0:
        return None
    error = ctypes.get_errno()
    limit = soft_limit("MEMLOCK")
    mapped = int(status_field("VmSize").partition(" ")[0] or 0) << 10
    if is_capable(CAP_IPC_LOCK) or mapped <= limit:
        return f"the kernel refused it: {os.strerror(error)}"
    return (
        f"this process has {mapped >> 20} MiB and may lock {limit / 2**20:.0f} (ulimit -l); "
        f"{limit_advice('memlock', 'unlimited')}"
    )


def unlock_all() -> None:
    """Undo ``lock_all``, and every other lock of this process."""
    if sys.platform == "linux":
        ctypes.CDLL(None).munlockall()
