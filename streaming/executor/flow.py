"""Flow: one stream between its source and the reader of its outputs, as tasks of an event loop."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from math import inf

import anyio
import anyio.lowlevel

from pulse.facts import Array
from streaming.blocks.input_blocks import InputBlock
from streaming.errors import ExecutorError, unwrap_single_error
from streaming.executor.engine import PulseQueue
from streaming.executor.executor_statistics import StreamCounters
from streaming.executor.stream_steps import StreamSteps
from streaming.policies import Policy

CLOSED_MESSAGE = "the executor has been closed; pulses in flight are counted as discarded"


class Flow:
    """Drives the steps of a stream: ``feed`` from its source, ``next`` for the reader of its outputs.

    ``feed`` is a separate task. ``next`` is called by the reader of the outputs; when the source has ended, it runs
    what remains. Both are in one event loop, so what happens between two awaits is atomic for the other, and for the
    statistics.

    on_close  called once, when the flow no longer accepts blocks or returns outputs
    """

    def __init__(
        self,
        blocks: AsyncGenerator[InputBlock],
        steps: StreamSteps,
        queue: PulseQueue,
        policy: Policy,
        on_close: Callable[["Flow"], None],
    ) -> None:
        self._blocks = blocks
        self._steps = steps
        self._queue = queue
        self._policy = policy
        self._on_close = on_close
        self._feeding = anyio.CancelScope()
        self._exhausted = False
        self._feeding_ended = anyio.Event()
        self._space = anyio.Event()
        self._queue_released = anyio.Event()
        self._alarm: anyio.CancelScope | None = None
        self._waiting = False
        self._busy = False
        self._process = os.getpid()
        self._refusal: str | None = None
        self._error: BaseException | None = None
        self.closed = False

    def update_counters(self) -> StreamCounters:
        """Bring the counters up to date and return them."""
        return self._steps.update_counters()

    async def feed(self) -> None:
        """Take all blocks of the source. Its errors are passed to the reader of the outputs."""
        try:
            with self._feeding:
                async with aclosing(self._blocks) as blocks:
                    async for block in blocks:
                        await self._accept(block)
                self._exhausted = True
        except Exception as error:
            self._error = unwrap_single_error(error)
            self._exhausted = True
        finally:
            if not self._exhausted:
                self.close(CLOSED_MESSAGE)
            self._feeding_ended.set()
            self._wake()

    async def next(self) -> dict[str, Array]:
        """Return the valid frames that are ready, at least one; the last item has the final outputs.

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
                await self._feeding_ended.wait()
            raise
        finally:
            self._busy = False
            if self.closed:
                self._release_queue()
        await anyio.lowlevel.checkpoint()  # a cancellation of the source may be meant for this task too
        if self._refusal is not None:
            raise ExecutorError(self._refusal)
        raise StopAsyncIteration

    def close(self, refusal: str | None = None) -> None:
        """Discard the pulses in flight, without waiting; later requests for outputs raise ``refusal``."""
        if self.closed:
            return
        self._steps.discard_all()
        self.closed, self._refusal = True, refusal
        self._feeding.cancel()
        self._wake()
        if not self._busy:
            self._release_queue()
        self._on_close(self)

    @property
    def is_finished(self) -> bool:
        """Whether the flow is closed and none of its pulses runs."""
        return self._feeding_ended.is_set() and self._queue_released.is_set()

    async def wait_until_finished(self) -> None:
        """Wait until no pulse of a closed flow runs, even if the task is cancelled."""
        with anyio.CancelScope(shield=True):
            await self._feeding_ended.wait()
            await self._queue_released.wait()

    def take_errors(self) -> list[BaseException]:
        """Return the pending errors of the source; the caller handles them."""
        error, self._error = self._error, None
        return [] if error is None else [error]

    async def _accept(self, block: InputBlock) -> None:
        """Submit the pulses that a block completes, as the queue has space."""
        if self.closed:
            return
        steps = self._steps
        arrival = steps.arrival(anyio.current_time() if self._policy.needs_deadline else inf)
        for _ in range(steps.feed(block)):
            has_space = steps.has_space
            if not has_space and self._policy.drops:
                has_space = steps.drop()
                await anyio.lowlevel.checkpoint()
            elif not has_space:
                await self._wait_for_space()
                has_space = True
            if self.closed:
                return
            if has_space:
                steps.submit(arrival)
                if self._alarm is not None:
                    self._alarm.deadline = steps.due_s
        steps.keep()

    async def _wait_for_space(self) -> None:
        while not self.closed and not self._steps.has_space:
            self._space = anyio.Event()
            await self._space.wait()

    def _outputs(self) -> dict[str, Array] | None:
        """Return the outputs that are ready; None if there are none. Raises the error that ended the stream."""
        steps = self._steps
        failure = self._queue.failure  # read before the results: the engine continues meanwhile
        outputs = steps.take_ready()
        if steps.has_space:
            self._space.set()
        if outputs is None and self._policy.needs_deadline:
            outputs = steps.take_late(anyio.current_time())
        if outputs is not None:
            return outputs
        if failure is not None:
            raise failure
        if self._exhausted and steps.is_empty and not steps.has_ended:
            for error in self.take_errors():
                raise error
            steps.end()
        if self._exhausted and steps.is_empty:
            outputs = steps.take_last()
            self.close()
        return outputs

    async def _wait(self) -> None:
        """Wait until there may be outputs."""
        if self._queue.listen():
            return
        self._waiting = True
        try:
            if self._policy.needs_deadline:
                with anyio.CancelScope(deadline=self._steps.due_s) as self._alarm:
                    await anyio.wait_readable(self._queue.event.to_read)
                if self._alarm.cancelled_caught:
                    return
            else:
                await anyio.wait_readable(self._queue.event.to_read)
            self._queue.clear()
        finally:
            self._waiting = False
            self._alarm = None

    def _wake(self) -> None:
        """Wake the reader that waits for outputs."""
        if self._waiting:
            self._queue.event.set()

    def _release_queue(self) -> None:
        """Record that the reader no longer waits for outputs."""
        if not self._queue_released.is_set():
            self._queue_released.set()
            self._queue.close()


def merge_errors(error: BaseException | None, others: Sequence[BaseException]) -> BaseException | None:
    """Return one error to raise in place of several.

    error   the error being raised; None if there is none
    others  the other errors: they replace a cancellation or None, and are notes on any other error
    """
    if not others:
        return error
    if error is None or isinstance(error, anyio.get_cancelled_exc_class()):
        return unwrap_single_error(
            BaseExceptionGroup("errors of sources, raised after the last output was taken", others)
        )
    for other in others:
        error.add_note(f"besides: {type(other).__name__}: {other}")
    return error
