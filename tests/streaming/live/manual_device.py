"""A device whose callbacks a test calls, for runs with real threads; and a check of leftovers of a run."""

import os
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from pulse.facts import Array
from streaming.hosts.host import Endpoint, StreamRequest
from streaming.live.device_call import DeviceCall
from streaming.live.file_host import FileStream
from tests.waiting import wait_until


class ManualHost:
    """A host of one device; see ``host.Host``. The last stream on it is open as ``stream``."""

    virtual_clock = False
    is_finite = False

    def __init__(self, rate_hz: int = 16000, channels: int = 1) -> None:
        self.endpoint = Endpoint("by hand", 0, channels, rate_hz)
        self.stream = None

    def choose(self, kind: str, expected: object) -> Endpoint:
        return self.endpoint

    def open(self, request: StreamRequest) -> "ManualStream":
        self.stream = ManualStream(request)
        return self.stream

    def refresh(self) -> bool:
        return True


class ManualStream:
    """A stream whose call with a block plays it."""

    note = None
    input_latency_s = output_latency_s = 0.0

    def __init__(self, request: StreamRequest) -> None:
        self.request, self.stopped = request, 0
        self.in_callback = self.hangs = False
        """Whether a call of it has not returned, and will not when it is stopped."""
        self.call = DeviceCall(request)

    def start(self) -> None:
        pass

    def stop(self, limit_s: float) -> bool:
        self.stopped += 1
        self.in_callback = self.hangs
        return not self.in_callback

    def __call__(self, block: Array) -> Array:
        return self.call(block)[0]


class HaltedFile:
    """A file that is played stops before one of its blocks, until it may continue or the run is closed.

    A block waits for the worker, so nothing is silent on a busy machine either.

    block     its number, from 0
    reached   set when the file stands still
    released  lets the file continue
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, block: int = 0) -> None:
        self.reached, self.released = threading.Event(), threading.Event()
        wait, numbers = FileStream.wait_until, count()

        def waits(stream: FileStream, due_s: float | None) -> None:
            if next(numbers) == block:
                self.reached.set()
                wait_until(lambda: self.released.is_set() or stream.stops.is_set(), "the file continues")
            wait(stream, due_s)
            wait(stream, None)

        monkeypatch.setattr(FileStream, "wait_until", waits)


@contextmanager
def assert_nothing_left() -> Generator[None]:
    """Fail if threads or descriptors are left over."""
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    yield
    left = set(threading.enumerate()) - threads
    assert not left, left
    still_open = open_descriptors() - descriptors
    assert not still_open, still_open


def open_descriptors() -> Counter[str]:
    """The descriptors of this process, by their targets."""
    folder = Path("/proc/self/fd" if os.path.exists("/proc/self/fd") else "/dev/fd")
    descriptors: Counter[str] = Counter()
    for path in list(folder.iterdir()):
        with suppress(OSError):  # it has been closed meanwhile, or tells nothing
            descriptors[os.readlink(path)] += 1
    return descriptors


def ramp(frames: int, first: int = 1) -> np.ndarray:
    """Audio in which every frame contains its number."""
    return np.arange(first, first + frames, dtype=np.float32)[:, None]
