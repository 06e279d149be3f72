"""Flow: one stream between its source and whoever takes its outputs."""

import os
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from math import inf

import anyio
import anyio.lowlevel

from pulse.facts import Array
from pulse.program.program import State
from streaming.delivery import Delivery
from streaming.errors import ExecutorError, only_one
from streaming.executor.account import Tally
from streaming.executor.engine import Slots
from streaming.executor.policy import Policy
from streaming.executor.under_way import Arrival, UnderWay
from streaming.intake import Intake

Block = Array | Mapping[str, Array]
Outputs = dict[str, Array]
CLOSED = "the executor has been closed; what was under way is counted as discarded"


class Flow:
    """Cuts blocks into pulses, has them run, and gives what is ready.

    ``feed`` is a task of its own: it takes blocks from the source and submits pulses. ``next`` is called by whoever
    takes the outputs; when the source has ended it runs what remains. Both are of one event loop, so what happens
    between two awaits is one step for the other, and for the account.

    closing  called once, when the flow takes and gives no more
    """

    def __init__(
        self,
        blocks: AsyncGenerator[Block],
        state: State,
        slots: Slots,
        policy: Policy,
        deadline_s: float | None,
        check_finite: bool,
        closing: Callable[["Flow"], None],
    ) -> None:
        self._blocks = blocks
        self._clock = state.clock
        self._pulse = state.program.pulse
        self._slots = slots
        self._policy = policy
        self._deadline_s = deadline_s or inf
        self._closing = closing
        self._intake = Intake(state.program, check_finite)
        self._delivery = Delivery(state.program)
        self._tally = Tally(deadline_s)
        self._under_way = UnderWay(slots, self._tally)
        self._tail: deque[tuple[Outputs, Arrival]] = deque()
        self._feeding = anyio.CancelScope()
        self._exhausted = False
        self._fed = anyio.Event()
        self._room = anyio.Event()
        self._left = anyio.Event()
        self._alarm: anyio.CancelScope | None = None
        self._listening = False
        self._busy = False
        self._process = os.getpid()
        self._refusal: str | None = None
        self.error: BaseException | None = None
        """What the source raised, as long as it has not come out."""
        self.closed = False

    @property
    def tally(self) -> Tally:
        """What has been counted, as it is now."""
        if not self.closed:
            tally, end = self._tally, self._clock.end
            waiting = (
                self._intake.waiting_frames if end is None else sum(rest.frames for _, rest in self._tail)
            )
            tally.frames_in = self._intake.frames_in if end is None else end + tally.frames_dropped
            tally.frames_in_flight = self._under_way.frames + waiting
        return self._tally

    async def feed(self) -> None:
        """Take all blocks of the source; what it raises is for whoever takes the outputs."""
        try:
            with self._feeding:
                async with aclosing(self._blocks) as blocks:
                    async for block in blocks:
                        await self._accept(block)
                self._exhausted = True
        except Exception as error:
            self.error = only_one(error)
            self._exhausted = True
        finally:
            if not self._exhausted:
                self.close(CLOSED)
            self._fed.set()
            self._tell()

    async def next(self) -> Outputs:
        """The valid frames that are ready, at least one; the last time, what is known only at the end.

        Raises StopAsyncIteration, what the source raised, InputError, ExecutorError
        """
        if self._process != os.getpid():
            raise ExecutorError(
                "this stream belongs to the process before the fork; make an executor in this one"
            )
        if self._busy:
            raise ExecutorError(
                "two tasks take the outputs of one stream; let one take them, or open two streams"
            )
        self._busy = True
        try:
            while not self.closed:
                outputs = self._outputs()
                if outputs is not None:
                    return outputs
                if not self.closed:
                    await self._wait()
        except Exception:
            self.close()
            with anyio.CancelScope(shield=True):
                await self._fed.wait()
            raise
        finally:
            self._busy = False
            if self.closed:
                self._leave()
        await anyio.lowlevel.checkpoint()  # what cancelled the source may be meant for this task too
        if self._refusal is not None:
            raise ExecutorError(self._refusal)
        raise StopAsyncIteration

    def close(self, refusal: str | None = None) -> None:
        """Give up what is under way; ``refusal`` is told to whoever takes outputs later. Does not wait."""
        if self.closed:
            return
        tally = self.tally
        self.closed, self._refusal = True, refusal
        tally.frames_discarded += tally.frames_in_flight
        tally.frames_in_flight = 0
        self._under_way.clear()
        self._tail.clear()
        self._feeding.cancel()
        self._tell()
        if not self._busy:
            self._leave()
        self._closing(self)

    @property
    def is_gone(self) -> bool:
        """Whether it is closed and nothing of it runs."""
        return self._fed.is_set() and self._left.is_set()

    def check(self) -> None:
        """Raise what the source raised, if it has not come out yet."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error

    async def gone(self) -> None:
        """Wait, when it is closed, until nothing of it runs; whatever is cancelled meanwhile."""
        with anyio.CancelScope(shield=True):
            await self._fed.wait()
            await self._left.wait()

    def _leave(self) -> None:
        """Nobody waits for outputs any more."""
        if not self._left.is_set():
            self._left.set()
            self._slots.close()

    async def _accept(self, block: Block) -> None:
        """Submit the pulses that a block completes, each when there is room."""
        if self.closed:
            return
        due_s = anyio.current_time() + self._deadline_s if self._policy.needs_deadline else inf
        arrival = Arrival(time.monotonic_ns(), due_s, self._pulse)
        for _ in range(self._intake.feed(self._intake.checked(block))):
            has_room = self._slots.free > 0
            if not has_room and self._policy.drops:
                has_room = self._drop()
                await anyio.lowlevel.checkpoint()
            elif not has_room:
                has_room = await self._wait_for_room()
            if self.closed:
                return
            if has_room:
                self._submit(self._intake.take(), arrival)
        self._intake.keep()

    async def _wait_for_room(self) -> bool:
        while not self.closed and not self._slots.free:
            self._room = anyio.Event()
            await self._room.wait()
        return True

    def _drop(self) -> bool:
        """Leave out the oldest pulse that is not begun, maybe the next one; whether that has room then."""
        dropped = self._under_way.drop()
        if not dropped:
            self._intake.take()
        self._intake.left_out += 1
        self._tally.pulses_dropped += 1
        self._tally.frames_dropped += self._pulse
        return dropped

    def _submit(self, pulse: Mapping[str, Array], arrival: Arrival) -> None:
        self._under_way.submit(pulse, arrival)
        if self._alarm is not None:
            self._alarm.deadline = self._under_way.due_s

    def _outputs(self) -> Outputs | None:
        """What can be given now; None where that is nothing. Raises what the stream fails with."""
        for give in (self._ready, self._late):
            outputs = give()
            if outputs is not None and _has_frames(outputs):
                return outputs
        return self._rest()

    def _ready(self) -> Outputs | None:
        """The outputs of all pulses that have run; None where none has."""
        count, wanted = self._under_way.ready()
        if not count:
            return None
        outputs = self._delivery.valid(self._under_way.results(count), wanted)
        self._submit_tail()
        self._room.set()
        return outputs

    def _late(self) -> Outputs | None:
        """Silence for the pulses that are late; None where none is."""
        if not self._policy.needs_deadline:
            return None
        now_s = anyio.current_time()
        late = self._under_way.late(now_s)
        if not late:
            return None
        self._tally.pulses_late += late
        if self._policy.aborts:
            raise self._abortion(now_s - self._under_way.due_s + self._deadline_s)
        self._under_way.owe(late)
        return self._delivery.valid([self._delivery.silence()] * late, late)

    def _abortion(self, waited_s: float) -> ExecutorError:
        number = self._delivery.pulses
        return ExecutorError(
            f"late: pulse {number} (frames {number * self._pulse} to {(number + 1) * self._pulse}) is not ready "
            f"{waited_s * 1e3:.1f} ms after its last sample came, and may take {self._deadline_s * 1e3:g} ms; "
            f"{len(self._under_way)} pulses are under way. Take a smaller model, another policy or a longer deadline_s"
        )

    def _rest(self) -> Outputs | None:
        """When the source has ended and all that was submitted has been taken: run what remains, then the last."""
        if self._slots.failure is not None:
            raise self._slots.failure
        if not self._exhausted or self._under_way:
            return None
        if self._clock.end is None:
            self._begin_end()
        self._submit_tail()
        if self._under_way:
            return None
        outputs, finals = self._delivery.valid((), 0), self._delivery.finals()
        self.close()
        return outputs | finals if finals or _has_frames(outputs) else None

    def _begin_end(self) -> None:
        """Find out what remains to be run. Raises what the source raised, or InputError."""
        self.check()
        self._delivery.check_end(self._intake.frames_in - self._tally.frames_dropped)
        pulses = self._slots.end(self._intake.rest())
        self._intake.clear()
        self._delivery.end = self._clock.end
        left = (self._clock.end or 0) - self._delivery.pulses * self._pulse
        now_ns = time.monotonic_ns()
        for pulse in pulses:
            frames = min(max(left, 0), self._pulse)
            self._tail.append((pulse, Arrival(now_ns, inf, frames)))
            left -= frames

    def _submit_tail(self) -> None:
        while self._tail and self._slots.free:
            self._submit(*self._tail.popleft())

    async def _wait(self) -> None:
        """Until there may be something to give."""
        if self._slots.listen():
            return
        self._listening = True
        try:
            if self._policy.needs_deadline:
                with anyio.CancelScope(deadline=self._under_way.due_s) as self._alarm:
                    await anyio.wait_readable(self._slots.event.to_read)
                if self._alarm.cancelled_caught:
                    return
            else:
                await anyio.wait_readable(self._slots.event.to_read)
            self._slots.event.clear()
        finally:
            self._listening = False
            self._alarm = None

    def _tell(self) -> None:
        """Have whoever waits for outputs look again."""
        if self._listening:
            self._slots.event.set()


def _has_frames(outputs: Outputs) -> bool:
    return any(array.size for array in outputs.values())
