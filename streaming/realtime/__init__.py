"""What keeps other work of the machine away from the engine: priority, locked memory, one CPU, a quiet collector.

Nothing here is needed for a right result, and a process often lacks the rights for it. So each wish has a fallback, and
a ``Measure`` tells what was had, why, and what to do:

    options = Realtime(priority=70, cpu=1)
    with prepare(options) as measures:      # what is of the process; undone at the end
        ...                                 # and in the engine's thread: on_this_thread(options)

Denormals need no wish: the machine counts them as zero while it runs.
"""

from streaming.realtime.memory import prefault
from streaming.realtime.options import NOTHING, Measure, Realtime
from streaming.realtime.process import prepare
from streaming.realtime.thread import on_this_thread

__all__ = ["NOTHING", "Measure", "Realtime", "on_this_thread", "prefault", "prepare"]
