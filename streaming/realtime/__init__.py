"""Protection of the engine from other work of the machine: priority, locked memory, one CPU, a frozen collector.

Results do not depend on any of it, and a process often lacks the rights for it. So each request has a
fallback, and a ``RealtimeSetting`` says what was requested, what was granted, why they differ and what to do:

    options = Realtime(priority=70, cpu=1)
    with apply_to_process(options) as settings:      # settings of the process; undone at the end
        ...                                 # and in the engine's thread: apply_to_thread(options)

Denormals need no request: the machine treats them as zero while it runs.
"""

from streaming.realtime.locked_memory import prefault
from streaming.realtime.process import apply_to_process
from streaming.realtime.realtime_settings import UNCHANGED, Realtime, RealtimeSetting
from streaming.realtime.thread import apply_to_thread, share_priority

__all__ = [
    "UNCHANGED",
    "Realtime",
    "RealtimeSetting",
    "apply_to_process",
    "apply_to_thread",
    "prefault",
    "share_priority",
]
