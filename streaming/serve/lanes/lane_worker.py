"""LaneWorker: a thread that steps groups of lanes."""

import asyncio
import logging
import threading
import time
from collections import deque
from queue import SimpleQueue

from pulse.errors import InputError
from pulse.jit.events import NativeEvent
from pulse.support.not_copyable import NotCopyable
from streaming.serve.lanes.group import LaneGroup
from streaming.serve.lanes.lane_stream import Answer, LaneStream
from streaming.serve.lanes.loop_pacing import LoopPacing

MAX_UNSENT_BYTES = 1 << 20
"""A lane stalls while more bytes than this wait to be sent to its client."""
logger = logging.getLogger("pulse.serve")


class LaneWorker(NotCopyable, reason="it has a thread"):
    """Steps the lanes whose streams have a pulse, all of a group at once; the others stall.

    The GIL is held while blocks become pulses and results become messages, and released while lanes step.

    pacing    the pacing of the event loop
    answered  set when there are answers: the event loop then calls ``deliver``
    """

    def __init__(self, index: int, pacing: LoopPacing) -> None:
        self.groups: list[LaneGroup] = []
        self._pacing = pacing
        self.answered = NativeEvent()
        self._group_of: dict[LaneStream, LaneGroup] = {}
        self._woken: deque[LaneStream] = deque()
        self._wakeups: SimpleQueue[bool] = SimpleQueue()
        self._is_asleep = self._wake_pending = False
        self._answers: deque[tuple[LaneStream, Answer]] = deque()
        self._thread = threading.Thread(target=self._run, name=f"pulse lanes {index}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after its current step."""
        self._wakeups.put(False)
        self._thread.join()
        self.answered.close()

    def join(self, stream: LaneStream, group: LaneGroup) -> None:
        """Start to step a stream, in a group of this worker."""
        self._group_of[stream] = group
        group.open_count += 1
        self._pacing.streams += 1

    def wake(self, stream: LaneStream) -> None:
        """Request work on a stream that has blocks, commands, or space for answers. Called in the event loop.

        The thread is woken once for all that the loop receives in one iteration.
        """
        self._woken.append(stream)
        self._pacing.record_traffic()
        if not self._wake_pending:
            self._wake_pending = True
            asyncio.get_running_loop().call_soon(self._wake_thread)

    def deliver(self) -> None:
        """Deliver the answers to their streams. Called in the event loop."""
        self._pacing.record_traffic()
        while self._answers:
            stream, answer = self._answers.popleft()
            if answer.closed:
                group = self._group_of.pop(stream)
                group.open_count -= 1
                self._pacing.streams -= 1
                group.free.append(stream.lane)
            stream.deliver(answer)

    def _run(self) -> None:
        active: dict[LaneStream, None] = {}
        while self._receive(active):
            for stream in active:
                self._prepare(stream)
            active = {}
            now_ns = time.monotonic_ns()
            for group in self.groups:
                if group.ready and group.due_ns() <= now_ns:
                    active.update(dict.fromkeys(self._step(group)))
            if self._answers:
                self.answered.set()

    def _wake_thread(self) -> None:
        self._wake_pending = False
        if self._is_asleep:
            self._wakeups.put(True)

    def _receive(self, active: dict[LaneStream, None]) -> bool:
        """Add the streams that have work; wait if there are none. Returns False at the end."""
        due = [] if active else [group.due_ns() for group in self.groups if group.ready]
        if due:  # asleep, the thread is not woken for every block that arrives meanwhile
            time.sleep(max(0.0, (min(due) - time.monotonic_ns()) / 1e9))
        elif not active and not self._woken:
            self._is_asleep = True
            continues = bool(self._woken) or self._wakeups.get()
            self._is_asleep = False
            if not continues:
                return False
        while not self._wakeups.empty():
            if not self._wakeups.get():
                return False
        while self._woken:
            active[self._woken.popleft()] = None
        return True

    def _prepare(self, stream: LaneStream) -> None:
        group = self._group_of.get(stream)
        if group is None:
            return
        stalls = stream.unsent_bytes > MAX_UNSENT_BYTES and not stream.commands
        while not stalls and (answer := stream.prepare()) is not None:
            self._answers.append((stream, answer))
            if answer.closed:
                group.ready.pop(stream, None)
                return
        if stream.waiting_pulses and not stalls:
            group.ready[stream] = None
        else:
            group.ready.pop(stream, None)

    def _step(self, group: LaneGroup) -> list[LaneStream]:
        """Step a group. Returns the streams that were stepped and have more work."""
        streams = list(group.ready)
        try:
            self._answers.extend(group.step())
        except Exception as error:
            logger.exception("a step of %s failed", group.program.model.title)
            group.ready = {}
            self._answers.extend(
                (stream, stream.fail(InputError(f"the step failed: {error}"))) for stream in streams
            )
        return [stream for stream in streams if stream.has_work or stream.waiting_pulses]
