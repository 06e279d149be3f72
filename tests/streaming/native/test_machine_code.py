"""The callback's machine code: the functions that it calls, and the stack that it needs."""

import threading
import time
from typing import Any

import pytest
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from pulse.jit.codegen.foreign import external
from pulse.jit.codegen.pointer import INT64
from pulse.jit.entries import ENTRIES, Callback
from pulse.jit.events import NativeEvent
from pulse.jit.language.foreign import c_signature
from pulse.program.machine import team as team
from streaming.native import callback as callback
from streaming.native import gate as gate
from streaming.native import resample as resample
from streaming.native import slots as slots
from streaming.native.control_block import ControlBlock, control_at
from streaming.native.pulse_loop import work
from tests.pulse.jit.assembly import assert_only_known_calls, llvm_code

PATH = sorted(
    name
    for name, entry in ENTRIES.items()
    if entry.function.__module__.startswith(("streaming.native.", "pulse.program.machine.team"))
)
SYSTEM = {"read", "write", "clock_gettime"}
"""Functions of the C library that wait for an event, set one or read the time."""
STACK_BYTES = 1 << 16
WAKES = 5000


@pytest.mark.parametrize("name", PATH)
def test_the_callback_calls_nothing_that_waits_or_fails(name: str) -> None:
    """The code calls no interpreter and no allocator, takes no lock and raises no exception."""
    assert_only_known_calls(llvm_code(ENTRIES[name]), pointers=True, allowed=SYSTEM)


def test_the_check_finds_stack_in_a_loop() -> None:
    @intrinsic
    def careless(typingctx, fd):
        def build(context, builder, sig, args):
            place = builder.alloca(INT64)
            kind = ir.FunctionType(INT64, [INT64, place.type, INT64])
            read = external(builder, "read", kind)
            return builder.call(read, [args[0], place, INT64(8)])

        return types.int64(types.int64), build

    def loop(fd: int) -> int:
        total = 0
        while total < 1000:
            total += careless(fd)
        return total

    with pytest.raises(AssertionError, match="takes stack on its way"):
        assert_only_known_calls(
            llvm_code(Callback("test.loop", loop, c_signature("i64", "i64"))), allowed=SYSTEM
        )


def test_a_worker_needs_no_more_stack_the_longer_it_lives() -> None:
    count = Callback("test.count_calls", count_pulse, c_signature(None, "i64"))
    control, event = ControlBlock.new(), NativeEvent()
    control.wait, control.pump = event.to_read, count.address
    work.prepare()
    before = threading.stack_size(STACK_BYTES)
    try:
        thread = threading.Thread(target=work.call, args=(control.address,), daemon=True)
        thread.start()
    finally:
        threading.stack_size(before)
    try:
        for calls in range(1, WAKES + 1):
            event.set()
            while control.pulses <= calls and thread.is_alive():
                time.sleep(0)
    finally:
        control.stop = 1
        event.set()
        thread.join(60)
    assert not thread.is_alive()
    assert control.pulses > WAKES
    event.close()


def count_pulse(address: Any) -> None:
    """Count a pulse, in place of ``pump``."""
    control: Any = control_at(address)
    control.pulses += 1
