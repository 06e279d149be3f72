# pyright: basic, reportArgumentType=false, reportCallIssue=false, reportOptionalMemberAccess=false
"""``atomics`` for numba: LLVM's ordered loads and stores."""

from collections.abc import Callable

from numba.core import types

from pulse.jit.codegen.pointer import INT64, WORDS, implements_in_numba
from pulse.jit.codegen.simd import defines
from pulse.jit.codegen.structs import StructType, place_of
from pulse.jit.language import atomics
from pulse.support.record import record


@record
class WordType:
    """A word: the types of the two arguments that select it, and the function that builds its address from them."""

    types: tuple[types.Type, types.Type]
    place: Callable


def select_word(words, i) -> WordType | None:
    """Return the word that two arguments select; None if they select none."""
    if isinstance(words, StructType) and isinstance(i, types.StringLiteral):
        name = i.literal_value
        if words.type_of(name) == types.int64:
            return WordType((words, i), lambda builder, args: place_of(builder, words, args[0], name))
    if words == WORDS and isinstance(i, types.Integer):
        return WordType(
            (WORDS, types.int64), lambda builder, args: builder.gep(args[0], [args[1]], inbounds=True)
        )
    return None


@implements_in_numba(atomics.load)
def _load(typingctx, words, i):
    def build(context, builder, sig, args):
        return builder.load_atomic(word.place(builder, args), "acquire", 8)

    word = select_word(words, i)
    return word and (types.int64(*word.types), build)


@implements_in_numba(atomics.store)
def _store(typingctx, words, i, value):
    def build(context, builder, sig, args):
        builder.store_atomic(args[2], word.place(builder, args), "release", 8)
        return context.get_dummy_value()

    word = select_word(words, i)
    return word and (types.none(*word.types, types.int64), build)


@implements_in_numba(atomics.compare_exchange)
def _compare_exchange(typingctx, words, i, old, new):
    def build(context, builder, sig, args):
        address = word.place(builder, args)
        return builder.extract_value(builder.cmpxchg(address, args[2], args[3], "seq_cst"), 1)

    word = select_word(words, i)
    return word and (types.boolean(*word.types, types.int64, types.int64), build)


@implements_in_numba(atomics.increment)
def _increment(typingctx, words, i):
    def build(context, builder, sig, args):
        builder.atomic_rmw("add", word.place(builder, args), INT64(1), "seq_cst")
        return context.get_dummy_value()

    word = select_word(words, i)
    return word and (types.none(*word.types), build)


defines(atomics.fence, types.none)(lambda builder: builder.fence("seq_cst"))
