"""Functions as object code that stands on its own: how Python calls them, what they may need, what is refused."""

import ctypes
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core import types

from pulse.errors import CompileError
from pulse.jit.codegen.native_code import emit_code, optimise
from pulse.jit.entries import Callback, Entry
from pulse.jit.language.address import words_at
from pulse.jit.language.atomics import load, store
from pulse.jit.language.foreign import c_function, c_signature
from pulse.jit.linking import link

LIMIT = 1 << 62


def compile_plain(function, signature, symbol="plain"):
    return emit_code(optimise("plain", symbol, function, signature, {"error_model": "numpy"}), symbol)


def spins(address, limit):
    """Read a word until it is not 0, at most ``limit`` times; return how many times are left."""
    words = words_at(address)
    while limit > 0 and load(words, 0) == 0:
        store(words, 1, 1)
        limit -= 1
    return limit


def weighs(a, b, c, d, e, f):
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f


def empty_function():
    pass


@pytest.fixture(scope="module")
def weigh():
    return Entry("test.weigh", weighs, 6, returns="int").call


def test_ints_go_in_and_come_out(weigh: Callable[..., int]) -> None:
    assert weigh(1, 10, 100, 1000, 10000, 100000) == 654321
    assert weigh(-1, 0, 0, 0, 0, 0) == -1
    assert weigh(-(1 << 63), 0, 0, 0, 0, 0) == -(1 << 63)
    assert weigh(np.int64(7), True, 0, 0, 0, 0) == 9
    assert weigh.__name__ == "test.weigh"


def test_an_entry_without_result_returns_none() -> None:
    assert Entry("test.nothing", empty_function, 0).call() is None


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None has a constant reference count")
def test_an_entry_without_result_keeps_the_references_of_none() -> None:
    call = Entry("test.nothing", empty_function, 0).call
    before = sys.getrefcount(None)
    for _ in range(1000):
        call()
    assert abs(sys.getrefcount(None) - before) < 500


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((1, 2, 3), TypeError),
        ((1,) * 7, TypeError),
        ((1, 2, 3, 4, 5, "6"), TypeError),
        ((1.5, 2, 3, 4, 5, 6), TypeError),
        ((1, 2, 3, 4, 5, 1 << 63), OverflowError),
    ],
)
def test_other_arguments_raise(
    weigh: Callable[..., int], arguments: tuple[Any, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        weigh(*arguments)
    with pytest.raises(TypeError):
        weigh(1, 2, 3, 4, 5, f=6)


def distance_plus_number(first, number, second):
    """The distance of two objects, and a number more."""
    return first + number - second


@pytest.mark.parametrize("keeps_gil", [True, False])
def test_an_entry_may_keep_the_gil(keeps_gil: bool) -> None:
    """Another thread of Python runs while an entry does, but not while one that keeps the GIL does."""
    words = np.zeros(2, np.int64)
    call = Entry(f"test.spins_{keeps_gil}", spins, 2, returns="int", keeps_gil=keeps_gil).call
    began = threading.Event()

    def other():
        began.set()
        while words[1] == 0:
            pass
        words[0] = 1

    thread = threading.Thread(target=other)
    thread.start()
    began.wait()
    left = call(words.ctypes.data, 1000 if keeps_gil else LIMIT)
    thread.join()
    assert (left == 0) == keeps_gil


def test_an_entry_may_take_objects() -> None:
    """The entry gets their addresses, of any class, and holds none of them; the other arguments are ints."""
    call = Entry("test.beside", distance_plus_number, 3, returns="int", objects=(0, 2)).call
    argument = object()
    before = sys.getrefcount(argument)
    for first, third in ((argument, "text"), (None, argument), (7, 1 << 80)):
        assert call(first, 5, third) == id(first) + 5 - id(third)
    assert sys.getrefcount(argument) == before
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        call(argument, argument, argument)


def first_of(first, other):
    """Return the first argument."""
    return first


def test_bound_functions_keep_their_own_argument_and_owner() -> None:
    entry = Entry("test.first_of", first_of, 2, returns="int", bound=True)
    kept = np.zeros(3)
    watched = weakref.ref(kept)
    functions = [entry.bind(number, kept) for number in (3, -(1 << 62))]
    del kept
    assert [function(0) for function in functions] == [3, -(1 << 62)]
    with pytest.raises(TypeError):
        functions[0](0, 0)
    functions.pop()
    assert watched() is not None
    assert functions[0](0) == 3
    functions.pop()
    assert watched() is None


def test_an_entry_may_give_an_object_with_a_reference() -> None:
    argument = object()
    call = Entry("test.holds", first_of, 2, returns="object", objects=(0,)).call
    before = sys.getrefcount(argument)
    increment = ctypes.pythonapi.Py_IncRef
    increment.argtypes = [ctypes.py_object]
    increment(argument)
    assert call(argument, 0) is argument
    assert sys.getrefcount(argument) == before


def test_names_of_different_objects_never_meet() -> None:
    """Where two have the same symbol, each keeps its own code."""
    addresses = [
        link("plain", compile_plain(lambda: number, types.int64(), "same"))  # noqa: B023
        for number in range(3)
    ]
    assert [ctypes.CFUNCTYPE(ctypes.c_int64)(address)() for address in addresses] == [0, 1, 2]


def test_object_code_has_one_global_symbol_and_lists_its_calls() -> None:
    code = compile_plain(lambda x: np.tanh(x), types.float64(types.float64))
    assert (code.symbol, code.needs) == ("plain", ("tanh",))
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(link("plain", code))(0.5) == np.tanh(0.5)
    for name in (b"Py", b"NRT_", b"numba_"):
        assert name not in code.object


def test_object_code_is_linked_without_numba() -> None:
    """Object code of one process, in one that has llvmlite alone."""
    code = compile_plain(lambda x: np.tanh(x), types.float64(types.float64))
    script = (
        "import ctypes, sys, llvmlite.binding as llvm\n"
        "llvm.initialize_native_target(); llvm.initialize_native_asmprinter()\n"
        "machine = llvm.Target.from_default_triple().create_target_machine(jit=True)\n"
        "engine = llvm.create_mcjit_compiler(llvm.parse_assembly(''), machine)\n"
        "engine.add_object_file(llvm.ObjectFileRef.from_data(sys.stdin.buffer.read()))\n"
        "address = engine.get_function_address('plain')\n"
        "print(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(0.5), 'numba' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], input=code.object, capture_output=True, check=True
    )
    assert process.stdout.decode().split() == [str(np.tanh(0.5)), "False"]


elsewhere = c_function("function_of_nobody", c_signature("i64"))


def test_a_c_function_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        CompileError, match=r"test\.elsewhere: calls function_of_nobody, which no library of this pro"
    ):
        Callback("test.elsewhere", lambda: elsewhere(), c_signature("i64")).prepare()


def test_addresses_of_this_process_are_refused() -> None:
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(("cos", ctypes.CDLL(None)))
    with pytest.raises(CompileError, match="plain: refers to an address of this process"):
        compile_plain(lambda x: function(x), types.float64(types.float64))


def test_functions_that_numba_does_not_support_are_refused() -> None:
    with pytest.raises(CompileError, match=r"plain: numba cannot compile it: (?s:.*)no_such_name"):
        compile_plain(lambda x: no_such_name(x), types.float64(types.float64))  # noqa: F821
