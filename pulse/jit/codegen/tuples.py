# pyright: basic, reportArgumentType=false
"""``tuples`` for numba: one call for each element, one after another."""

from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer, infer_global, signature
from numba.extending import lower_builtin

from pulse.jit.codegen.pointer import INT64, declare_type
from pulse.jit.language import tuples


def _length(arguments) -> int | None:
    lengths = {len(kind) for kind in arguments if isinstance(kind, types.BaseTuple)}
    return lengths.pop() if len(lengths) == 1 else None


def _elements(arguments, i: int):
    return [kind[i] if isinstance(kind, types.BaseTuple) else kind for kind in arguments]


@infer
class _EachTemplate(AbstractTemplate):
    """The types of ``each``: those of the function for each element."""

    key = tuples.each

    def generic(self, args, kws):
        function, *arguments = args
        length = _length(arguments)
        if kws or length is None:
            return None
        calls = [
            self.context.resolve_function_type(function, _elements(arguments, i), {}) for i in range(length)
        ]
        if None in calls:
            return None
        results = [call.return_type for call in calls]
        result = types.none if types.none in results else types.Tuple(results)
        return signature(result, *args)


infer_global(tuples.each, types.Function(_EachTemplate))


@lower_builtin(tuples.each, types.VarArg(types.Any))
def _each(context, builder, sig, args):
    function, *arguments = sig.args
    results = []
    for i in range(_length(arguments)):
        kinds = _elements(arguments, i)
        values = [
            builder.extract_value(value, i) if isinstance(kind, types.BaseTuple) else value
            for kind, value in zip(arguments, args[1:])
        ]
        call = context.typing_context.resolve_function_type(function, kinds, {})
        values = [context.cast(builder, *part) for part in zip(values, kinds, call.args)]
        results.append(context.get_function(function, call)(builder, values))
    if sig.return_type == types.none:
        return context.get_dummy_value()
    return context.make_tuple(builder, sig.return_type, results)


declare_type(
    tuples.copies,
    lambda args: (
        signature(types.UniTuple(args[0], len(args[1])), *args)
        if len(args) == 2 and isinstance(args[1], types.BaseTuple)
        else None
    ),
)
declare_type(
    tuples.indices,
    lambda args: (
        signature(types.UniTuple(types.int64, len(args[0])), *args)
        if len(args) == 1 and isinstance(args[0], types.BaseTuple)
        else None
    ),
)


@lower_builtin(tuples.copies, types.Any, types.BaseTuple)
def _copies(context, builder, sig, args):
    return context.make_tuple(builder, sig.return_type, [args[0]] * len(sig.args[1]))


@lower_builtin(tuples.indices, types.BaseTuple)
def _indices(context, builder, sig, args):
    return context.make_tuple(builder, sig.return_type, [INT64(i) for i in range(len(sig.args[0]))])
