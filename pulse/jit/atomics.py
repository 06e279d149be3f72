# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
"""Words that threads share without a lock: ordered loads and stores; only in compiled code."""

from numba.core import types
from numba.extending import intrinsic

from pulse.jit.pointer_lowering import INT64, WORDS


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
def advance(typingctx, words, i):
    """``words[i] += 1``; nothing that comes later is done before it, not even a load."""

    def build(context, builder, sig, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        builder.atomic_rmw("add", place, INT64(1), "seq_cst")
        return context.get_dummy_value()

    return types.none(WORDS, types.int64), build


@intrinsic
def fence(typingctx):
    """What was stored before is seen by others before anything is loaded after."""

    def build(context, builder, sig, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.none(), build
