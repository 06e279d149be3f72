# pyright: basic, reportArgumentType=false
"""The LLVM code of the functions of ``python_call``."""

from llvmlite import ir

from pulse.jit.python_call import PythonCall

INT, INT64, POINTER = ir.IntType(32), ir.IntType(64), ir.PointerType(ir.IntType(8))
NOTHING = ir.VoidType()
NULL = ir.Constant(POINTER, None)
FUNCTIONS = {
    "PyLong_AsLongLong": (INT64, POINTER),
    "PyLong_FromLongLong": (POINTER, INT64),
    "PyErr_Occurred": (POINTER,),
    "PyErr_BadArgument": (INT,),
    "Py_IncRef": (NOTHING, POINTER),
    "PyEval_SaveThread": (POINTER,),
    "PyEval_RestoreThread": (NOTHING, POINTER),
}
"""The functions of the interpreter's stable interface: result and argument types."""


def code(python: PythonCall, symbol: str, function: str, triple: str) -> str:
    """Return the LLVM code of ``symbol``, a METH_FASTCALL wrapper of a C function of int64.

    Its self is the first argument of a bound function, else None.
    """
    module = ir.Module(symbol)
    module.triple = triple
    functions = {
        name: ir.Function(module, ir.FunctionType(result, arguments), name)
        for name, (result, *arguments) in FUNCTIONS.items()
    }
    c_type = ir.FunctionType(INT64 if python.returns else NOTHING, [INT64] * python.arguments)
    c_function = ir.Function(module, c_type, function)
    wrapper_type = ir.FunctionType(POINTER, [POINTER, POINTER.as_pointer(), INT64])
    wrapper = ir.Function(module, wrapper_type, symbol)
    builder = ir.IRBuilder(wrapper.append_basic_block())
    self_argument, pointer, count = wrapper.args

    def call(name: str, *arguments):
        return builder.call(functions[name], arguments)

    passed = python.arguments - python.bound
    with builder.if_then(builder.icmp_signed("!=", count, INT64(passed)), likely=False):
        call("PyErr_BadArgument")
        builder.ret(NULL)
    arguments = [builder.load(builder.gep(pointer, [INT64(index)])) for index in range(passed)]
    values = []
    for index, argument in enumerate([self_argument, *arguments] if python.bound else arguments):
        if index in python.objects:
            values.append(builder.ptrtoint(argument, INT64))
            continue
        value = call("PyLong_AsLongLong", argument)
        with (
            builder.if_then(builder.icmp_signed("==", value, INT64(-1)), likely=False),
            builder.if_then(builder.icmp_unsigned("!=", call("PyErr_Occurred"), NULL)),
        ):
            builder.ret(NULL)
        values.append(value)
    thread = None if python.keeps_gil else call("PyEval_SaveThread")
    result = builder.call(c_function, values)
    if thread is not None:
        call("PyEval_RestoreThread", thread)
    if python.returns == "int":
        builder.ret(call("PyLong_FromLongLong", result))
    elif python.returns == "object":
        builder.ret(builder.inttoptr(result, POINTER))
    else:
        call("Py_IncRef", self_argument)
        builder.ret(self_argument)
    return str(module)
