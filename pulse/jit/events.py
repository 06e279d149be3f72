"""Events that wake a thread in compiled code, or an event loop."""

import os
import sys
import threading

import numpy as np

from pulse.errors import PulseError
from pulse.jit.language.address import address_of
from pulse.jit.language.foreign import c_function, c_signature
from pulse.jit.language.stack import stack_i64
from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import device
from pulse.support.not_copyable import NotCopyable

EVENT_BYTES = 8


class EventWord(Struct):
    """The bytes that are written to set an event."""

    value: int


word_at = struct_at(EventWord)
_read = c_function("read", c_signature("i64", "i32", "i64", "i64"))
_write = c_function("write", c_signature("i64", "i32", "i64", "i64"))


@device
def wait_event(fd: int) -> None:
    """Wait until the event of a read descriptor is set, and clear it; a signal may end the wait earlier."""
    _read(np.int32(fd), address_of(stack_i64(1)), EVENT_BYTES)


@device
def set_event(fd: int) -> None:
    """Set the event of a write descriptor; never waits."""
    word = word_at(address_of(stack_i64(1)))
    word.value = 1
    _write(np.int32(fd), address_of(word), EVENT_BYTES)


class NativeEvent(NotCopyable, reason="it has file descriptors; make another one"):
    """An event with file descriptors.

    to_read   readable while the event is set; blocking
    to_write  writing eight bytes sets the event; never blocks
    """

    def __init__(self) -> None:
        if sys.platform == "linux":
            self.to_read = self.to_write = os.eventfd(0, os.EFD_CLOEXEC)
        elif os.name == "posix":
            self.to_read, self.to_write = os.pipe()
            os.set_blocking(self.to_write, False)
        else:
            raise PulseError("threads without the GIL need Linux or macOS; on Windows use WSL")
        self.closed = False
        """Whether the descriptors have been closed."""
        self._closing = threading.Lock()

    def set(self) -> None:
        """Set the event, from any thread. Does nothing if it is set already or closed."""
        with self._closing:
            if not self.closed:
                try:
                    os.write(self.to_write, (1).to_bytes(8, sys.byteorder))
                except BlockingIOError:
                    return  # the pipe is full, so the event is set

    def wait(self) -> None:
        """Wait until the event is set, and clear it."""
        os.read(self.to_read, 8)

    def close(self) -> None:
        """Close the descriptors. No thread may be waiting."""
        with self._closing:
            if not self.closed:
                self.closed = True
                for descriptor in {self.to_read, self.to_write}:
                    os.close(descriptor)
