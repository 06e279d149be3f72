"""Calls that may never return, with a limit for the waiting thread."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

from pulse.support.not_copyable import NotCopyable

ResultT = TypeVar("ResultT")


class Caller(NotCopyable, reason="it has a thread; make another one"):
    """A thread that makes calls one after another.

    stuck  whether a call has exceeded its limit: then no more calls are made, even if it returns later
    """

    def __init__(self, name: str) -> None:
        self.stuck = False
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while (task := self._calls.get()) is not None and not self.stuck:
            future, call = task
            try:
                future.set_result(call())
            except BaseException as error:  # raised in the waiting thread
                future.set_exception(error)

    def submit(self, call: Callable[[], ResultT]) -> "Future[ResultT]":
        """Make a call after the previous ones have returned."""
        future: Future[ResultT] = Future()
        self._calls.put((future, call))
        return future

    def __call__(self, call: Callable[[], ResultT], limit_s: float) -> ResultT:
        """Make a call and wait for it.

        Raises  TimeoutError: this call or an earlier one exceeded its limit; and the errors of the call
        """
        if self.stuck:
            raise TimeoutError("an earlier call has not returned")
        future = self.submit(call)
        try:
            return future.result(limit_s)
        except TimeoutError:
            self.stuck = self.stuck or not future.done()
            raise

    def end(self) -> None:
        """End the thread when it has made all calls."""
        self._calls.put(None)
