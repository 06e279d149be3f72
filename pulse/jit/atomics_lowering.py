# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
"""``atomics`` for numba: LLVM's ordered loads and stores."""

from numba.core import types

from pulse.jit import atomics
from pulse.jit.pointer_lowering import INT64, WORDS, means


@means(atomics.load)
def _load(typingctx, words, i):
    def build(context, builder, sig, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(WORDS, types.int64), build


@means(atomics.store)
def _store(typingctx, words, i, value):
    def build(context, builder, sig, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        builder.store_atomic(args[2], place, "release", 8)
        return context.get_dummy_value()

    return types.none(WORDS, types.int64, types.int64), build


@means(atomics.replace)
def _replace(typingctx, words, i, old, new):
    def build(context, builder, sig, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        return builder.extract_value(builder.cmpxchg(place, args[2], args[3], "seq_cst"), 1)

    return types.boolean(WORDS, types.int64, types.int64, types.int64), build


@means(atomics.advance)
def _advance(typingctx, words, i):
    def build(context, builder, sig, args):
        place = builder.gep(args[0], [args[1]], inbounds=True)
        builder.atomic_rmw("add", place, INT64(1), "seq_cst")
        return context.get_dummy_value()

    return types.none(WORDS, types.int64), build


@means(atomics.fence)
def _fence(typingctx):
    def build(context, builder, sig, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.none(), build
