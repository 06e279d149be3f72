# pyright: basic, reportArgumentType=false
"""Compile a Python function to standalone object code, with numba and LLVM.

The result has one global symbol and needs only C functions by name, so llvmlite alone can link it. Code that numba
adds for exceptions and memory is removed if it is unreachable; otherwise the function is refused.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from numba.core import compiler, target_extension
from numba.core.codegen import AOTCodeLibrary, JITCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.descriptors import TargetDescriptor
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target

from pulse.errors import CompileError
from pulse.jit import python_call
from pulse.jit.codegen.python_call import code as python_code
from pulse.jit.codegen.registration import register_with_numba
from pulse.jit.processor import processor, target_machine
from pulse.jit.storage.kernel_file import NativeCode

RUNTIME_PREFIXES = ("Py", "_Py", "NRT_", "numba_", ".numba")
"""The prefixes of names of the interpreter and of numba's own library."""
REORDERING_FLAGS = re.compile(r"(= f(?:add|sub|mul|div|neg)) (?:(?:reassoc|nsz|contract) )+")
"""The flags that let LLVM reorder sums and contract products with them."""
DEFAULT_SETTINGS = {"opt": 3, "loop_vectorize": 1, "slp_vectorize": 0}
"""Numba's default settings of LLVM's passes."""
KEPT_APART = "= { noinline }"
"""The attributes with which numba's C wrapper calls the compiled function."""


class _Library(AOTCodeLibrary):
    """The LLVM code of a function. A helper's is optimised once: where it is inlined."""

    is_helper = True

    def _optimize_final_module(self) -> None:
        if not self.is_helper:
            super()._optimize_final_module()


class _Codegen(JITCPUCodegen):
    """Numba's compiler for the target processor; it links nothing into the process."""

    _library_class = _Library

    def _init(self, llvm_module) -> None:
        self._tm, self._tm_features = target_machine(), processor().features
        self._target_data = self._tm.target_data
        self._data_layout = str(self._target_data)
        self._loopvect, self._opt_level = False, 0  # the settings of the passes over helpers

    def _pass_builder(self, **settings):
        """Return numba's passes with its default settings, whatever NUMBA_OPT and other variables say."""
        return super()._pass_builder(**{**DEFAULT_SETTINGS, **settings})

    def _create_empty_module(self, name):
        module = super()._create_empty_module(name)
        module.triple = processor().triple
        return module

    def _add_module(self, module) -> None:
        pass


class _Target(target_extension.CPU):
    """The target of kernels for numba.

    Numba compiles every helper that a kernel calls separately. With its default target it would make machine code of
    each for the processor of this process, and link it, only to inline the LLVM code afterwards.
    """


class _Description(TargetDescriptor):
    options = cpu_target.options

    @property
    def typing_context(self):
        return cpu_target.typing_context

    @property
    def target_context(self):
        return _target_context()


class _HelperDispatcher(Dispatcher):
    targetdescr = _Description("pulse")

    def _insert(self, *entry) -> None:
        """Store nothing for calls from Python, since Python does not call kernels."""


def _jit(**options):
    """Return the decorator that numba applies to helpers."""
    for_kernels = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return lambda function: _HelperDispatcher(function, targetoptions={**options, **for_kernels})


target_extension.dispatcher_registry[_Target] = _HelperDispatcher
target_extension.jit_registry[_Target] = _jit


@cache
def _target_context():
    def executable(library, fndesc, env):
        """Return a key for numba's tables, in place of the function that Python would call."""
        return object()

    return cpu_target.target_context.subtarget(  # pyright: ignore[reportAttributeAccessIssue]
        _internal_codegen=_Codegen("pulse"), target=_Target, get_executable=executable
    )


@global_compiler_lock
def _numba_code(name: str, function: Callable, signature: Any, options: Mapping[str, Any]):
    """Return numba's optimised LLVM code and the name of its C function. Raises CompileError: numba refuses it."""
    register_with_numba()
    flags = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, {"nopython": True, **options})
    flags.no_cpython_wrapper = flags.no_compile = True  # pyright: ignore[reportAttributeAccessIssue]
    flags.no_cfunc_wrapper = flags.enable_pyobject = False  # pyright: ignore[reportAttributeAccessIssue]
    # Inline the compiled function into the C function.
    flags.forceinline = True  # pyright: ignore[reportAttributeAccessIssue]
    try:
        result = compiler.compile_extra(
            cpu_target.typing_context,
            _target_context(),
            function,
            args=signature.args,
            return_type=signature.return_type,
            flags=flags,
            locals={},
        )
    except NumbaError as error:
        raise CompileError(f"{name}: numba cannot compile it: {error}") from error
    result.library.is_helper = False
    bitcode = result.library.emit_bitcode()
    if result.library.has_dynamic_globals:
        raise CompileError(
            f"{name}: refers to an address of this process, such as a ctypes function or an array of more than 1 MB, "
            "which no other process has; pass it as an argument"
        )
    return llvm.parse_bitcode(bitcode), result.fndesc.llvm_cfunc_wrapper_name


def optimise(
    name: str,
    symbol: str,
    function: Callable,
    signature: Any,
    options: Mapping[str, Any],
    python: python_call.PythonCall | None = None,
):
    """Return the LLVM code of a function, for ``emit_code``; ``symbol`` is its one global function.

    signature  numba's
    python     how Python calls it; None: only C does
    Raises     CompileError: it can raise an exception, allocates memory, or contains an address of this process
    """
    module, c_name = _numba_code(name, function, signature, options)
    module.get_function(c_name).name = c_name = f"{symbol}.c" if python else symbol
    if python:
        module.link_in(llvm.parse_assembly(python_code(python, symbol, c_name, module.triple)))
    module = _in_fixed_order(module)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != symbol:
            value.linkage = "internal"
    for value in module.functions:
        if not value.is_declaration:
            value.add_function_attribute("nounwind")
    passes = llvm.create_new_module_pass_manager()
    passes.add_ipsccp_pass()
    passes.add_simplify_cfg_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(target_machine(), llvm.create_pipeline_tuning_options()))
    allowed = python_call.INTERPRETER_FUNCTIONS if python else ()
    if inside := [
        need for need in _needed_symbols(module) if need.startswith(RUNTIME_PREFIXES) and need not in allowed
    ]:
        raise CompileError(
            f"{name}: may raise an exception, or needs Python or memory ({', '.join(inside[:3])} …), so it cannot run "
            "without Python: omit raise, assert, print, arrays, ranges whose step is a variable, int ** int"
        )
    return module


def _in_fixed_order(module: Any) -> Any:
    """Forbid further reordering and contraction of sums, so that code with constant arguments computes the same bits.

    Numba's function may be inlined into the C function.
    """
    return llvm.parse_assembly(
        REORDERING_FLAGS.sub(r"\1 ", str(module)).replace(KEPT_APART, "= { nounwind }")
    )


def emit_code(module: Any, symbol: str) -> NativeCode:
    """Return the machine code of a module from ``optimise``."""
    return NativeCode(symbol, _needed_symbols(module), target_machine().emit_object(module))


def _needed_symbols(module: Any) -> tuple[str, ...]:
    everything = (*module.functions, *module.global_variables)
    return tuple(
        sorted(
            value.name for value in everything if value.is_declaration and not value.name.startswith("llvm.")
        )
    )
