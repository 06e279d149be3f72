# pyright: basic, reportArgumentType=false
"""``dispatch`` for numba: LLVM functions that are not inlined, one of them with a switch over loops."""

from llvmlite import ir
from numba.core import types
from numba.core.targetconfig import ConfigStack
from numba.core.typing.templates import signature
from numba.extending import lower_builtin

from pulse.jit.codegen.pointer import INT64, PointerType, declare_type
from pulse.jit.codegen.simd import FLOATS, accepts
from pulse.jit.codegen.simd_memory import vector_pointer
from pulse.jit.codegen.structs import DOUBLE
from pulse.jit.language.declared import DISPATCHED_ROWS, Chooser, Dispatcher, Outlined, PythonFunction
from pulse.jit.language.dispatch import names_of
from pulse.jit.language.simd import LANES

POINTERS = {"f32": PointerType(types.float32), "f64": PointerType(types.float64)}


def declare_dispatcher(declared: Dispatcher) -> None:
    pointer = POINTERS[declared.element]
    parameters = (types.int64, *[pointer] * 4, types.int64, types.float64, types.float64)

    def fill(context, builder, _, args) -> None:
        code, d, a, b, c, count, p, q = args
        done = builder.append_basic_block("done")
        switch = builder.switch(code, done)
        only = DISPATCHED_ROWS.get()
        for code, (row, lanes) in enumerate(declared.rows):
            if only is not None and code not in only:
                continue
            block = builder.append_basic_block(f"row{code}")
            switch.add_case(code, block)
            builder.position_at_end(block)
            _loop(context, builder, row, lanes, (d, a, b, c), count, (p, q))
            builder.branch(done)
        builder.position_at_end(done)

    def resolve(args):
        return signature(types.none, *parameters) if len(args) == len(parameters) else None

    _declare_apart(declared.apply, resolve, fill)


def declare_chooser(declared: Chooser) -> None:
    """Declare a chooser to numba: a switch inside its caller, into which the functions are inlined."""
    parameters = {"code": types.int64, "a": FLOATS, "b": FLOATS, "p": types.float64, "q": types.float64}
    kinds = tuple(parameters.values())

    def resolve(args):
        fits = len(args) == len(kinds) and all(map(accepts, args, kinds))
        return signature(FLOATS, *kinds) if fits else None

    declare_type(declared.choose, resolve)

    @lower_builtin(declared.choose, *kinds)
    def _choose(context, builder, _, args):
        values = dict(zip(parameters, args))
        blocks = [builder.append_basic_block() for _ in declared.functions]
        chosen = builder.append_basic_block("chosen")
        switch = builder.switch(values["code"], blocks[-1])
        for code, block in enumerate(blocks[:-1]):
            switch.add_case(code, block)
        results = []
        for function, block in zip(declared.functions, blocks):
            builder.position_at_end(block)
            names = names_of(function)
            kind = signature(FLOATS, *(parameters[name] for name in names))
            result = _call_inlined(context, builder, function, kind, [values[name] for name in names])
            results.append((result, builder.block))
            builder.branch(chosen)
        builder.position_at_end(chosen)
        choice = builder.phi(FLOATS.data)
        for result in results:
            choice.add_incoming(*result)
        return choice


def declare_outlined(declared: Outlined) -> None:
    """Declare a helper that is not inlined to numba, with the types of its calls' arguments."""

    def fill(context, builder, sig, args) -> None:
        _call_inlined(context, builder, declared.function, sig, args)

    def resolve(args):
        return signature(types.none, *map(types.unliteral, args))

    _declare_apart(declared.function, resolve, fill)


def _declare_apart(function: PythonFunction, resolve: PythonFunction, fill: PythonFunction) -> None:
    """Make ``function`` separate LLVM functions, one for each LLVM type of a call: the kernel keeps its registers."""
    name = function.__name__
    declare_type(function, resolve)

    @lower_builtin(function, types.VarArg(types.Any))
    def _build(context, builder, sig, args):
        kind = ir.FunctionType(ir.VoidType(), [arg.type for arg in args])
        symbol = name
        while (apart := builder.module.globals.get(symbol)) is not None and apart.function_type != kind:
            symbol += "."
        if apart is None:
            apart = ir.Function(builder.module, kind, symbol)
            apart.linkage = "internal"
            apart.attributes.add("noinline")
            inside = ir.IRBuilder(apart.append_basic_block("entry"))
            fill(context, inside, sig, apart.args)
            inside.ret_void()
        builder.call(apart, args)
        return context.get_dummy_value()


def _call_inlined(context, builder, function: PythonFunction, sig, args):
    flags = ConfigStack().top().copy()
    flags.forceinline = True
    compiled = context.compile_subroutine(builder, function, sig, flags=flags)
    return context.call_internal_no_propagate(builder, compiled.fndesc, compiled.signature, args)[1]


def _loop(context, builder, row: PythonFunction, lanes: bool, registers, count, params) -> None:
    """Build ``for i in range(0, count, step): d[i] = row(...)``, count > 0."""
    element = FLOATS if lanes else types.float64
    names = names_of(row)
    kinds = [types.float64 if name in "pq" else element for name in names]
    before, body = builder.block, builder.append_basic_block("body")
    builder.branch(body)
    builder.position_at_end(body)
    i = builder.phi(INT64)
    i.add_incoming(INT64(0), before)
    values = [
        params["pq".index(name)]
        if name in "pq"
        else _element(builder, registers[1 + "abc".index(name)], i, lanes)
        for name in names
    ]
    result = _call_inlined(context, builder, row, signature(element, *kinds), values)
    _store(builder, registers[0], i, result, lanes)
    following = builder.add(i, INT64(LANES if lanes else 1))
    i.add_incoming(following, builder.block)
    after = builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed("<", following, count), body, after)
    builder.position_at_end(after)


def _element(builder, p, i, lanes: bool):
    if lanes:
        return builder.load(vector_pointer(builder, p, i), align=4)
    value = builder.load(builder.gep(p, [i], inbounds=True))
    return value if value.type == DOUBLE else builder.fpext(value, DOUBLE)


def _store(builder, p, i, value, lanes: bool) -> None:
    where = vector_pointer(builder, p, i) if lanes else builder.gep(p, [i], inbounds=True)
    if not lanes and where.type.pointee != DOUBLE:
        value = builder.fptrunc(value, where.type.pointee)
    builder.store(value, where, align=4 if lanes else None)
