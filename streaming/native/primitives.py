# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
"""What threads need that share memory without a lock: ordered loads and stores, a clock, events; compiled code only."""

import time

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import alloca_once
from numba.extending import intrinsic

from pulse.jit.address import external
from pulse.jit.pointer_lowering import INT64, WORDS

INT32, BYTE_POINTER = ir.IntType(32), ir.PointerType(ir.IntType(8))
MONOTONIC = int(getattr(time, "CLOCK_MONOTONIC", 1))
"""The clock of ``time.monotonic_ns`` on Linux and macOS."""


@intrinsic
def load(typingctx, words, i):
    """``words[i]``; what its writer wrote before ``store`` is then seen."""

    def build(context, builder, sig, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(WORDS, types.int64), build


@intrinsic
def store(typingctx, words, i, value):
    """``words[i] = value``, after all that was written before."""

    def build(context, builder, sig, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        builder.store_atomic(args[2], place, "release", 8)
        return context.get_dummy_value()

    return types.none(WORDS, types.int64, types.int64), build


@intrinsic
def replace(typingctx, words, i, old, new):
    """``words[i] = new`` where it is ``old``, as one step among all threads; whether it was."""

    def build(context, builder, sig, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], "seq_cst"), 1)

    return types.boolean(WORDS, types.int64, types.int64, types.int64), build


@intrinsic
def fence(typingctx):
    """What was stored before is seen by others before anything is loaded after."""

    def build(context, builder, sig, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.none(), build


@intrinsic
def monotonic_ns(typingctx):
    """Nanoseconds of the clock of ``time.monotonic_ns``."""

    def build(context, builder, sig, args):
        place = alloca_once(builder, ir.ArrayType(INT64, 2))
        seconds = builder.bitcast(place, ir.PointerType(INT64))
        read = external(builder, "clock_gettime", INT32, INT32, BYTE_POINTER)
        builder.call(read, [INT32(MONOTONIC), builder.bitcast(place, BYTE_POINTER)])
        fraction = builder.load(builder.gep(seconds, [INT64(1)]))
        return builder.add(builder.mul(builder.load(seconds), INT64(1_000_000_000)), fraction)

    return types.int64(), build


def _event(name):
    def event(typingctx, fd):
        def build(context, builder, sig, args):
            place = alloca_once(builder, INT64)
            builder.store(INT64(1), place)
            function = external(builder, name, INT64, INT32, BYTE_POINTER, INT64)
            arguments = [builder.trunc(args[0], INT32), builder.bitcast(place, BYTE_POINTER), INT64(8)]
            builder.call(function, arguments)
            return context.get_dummy_value()

        return types.none(types.int64), build

    return event


wait_event = intrinsic(_event("read"))
"""Wait until the event of a descriptor to read is set, and clear it; a signal may end it earlier."""
set_event = intrinsic(_event("write"))
"""Set the event of a descriptor to write; never waits."""
