"""Stream: an async iterator over the outputs of one source."""

import threading
from collections.abc import Callable
from types import TracebackType

from pulse.facts import Array
from pulse.support.not_copyable import NotCopyable
from streaming.errors import ExecutorError
from streaming.executor.flow import Flow, merge_errors


class Stream(NotCopyable, reason="it belongs to a running executor; call its stream() again"):
    """The stream of ``Executor.stream``: an async iterator over outputs, and a context manager that closes it.

    Nothing is taken from the source before the first output is requested. An abandoned stream is closed when it is
    no longer referenced, or by ``async with``, ``aclose``, or its executor.
    """

    def __init__(self, begin: Callable[[], Flow]) -> None:
        self._begin = begin
        self._flow: Flow | None = None
        self._closed = False
        self._thread = threading.get_ident()

    def __aiter__(self) -> "Stream":
        if self._closed or (self._flow is not None and self._flow.closed):
            raise ExecutorError("the stream has ended; ask the executor for another one")
        return self

    async def __anext__(self) -> dict[str, Array]:
        """Return output name -> the valid frames that are ready, which the caller owns; some output has at least one.

        Outputs known only at the end of the stream come with the last frames. Raises the source's error, after all
        earlier frames; InputError: blocks, or a length, that the model does not take; ExecutorError: late, or closed.
        """
        if self._closed:
            raise StopAsyncIteration
        if self._flow is None:
            self._flow = self._begin()
        return await self._flow.next()

    async def aclose(self) -> None:
        """Discard the pulses in flight and close the source. Raises the source's error if it is still pending."""
        await self._end(None)

    async def __aenter__(self) -> "Stream":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end(error)

    async def _end(self, error: BaseException | None) -> None:
        """Close the stream while ``error`` is being raised."""
        self._closed = True
        if self._flow is not None:
            self._flow.close()
            await self._flow.wait_until_finished()
            whole_error = merge_errors(error, self._flow.take_errors())
            if whole_error is not error and whole_error is not None:
                raise whole_error

    def __del__(self) -> None:
        if self._flow is not None and not self._flow.closed and threading.get_ident() == self._thread:
            self._flow.close()
