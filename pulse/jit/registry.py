"""Kernels by name: declared as Python functions, compiled at first use, stored on disk."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, cast, get_type_hints

import numpy as np

from pulse.errors import LoadError
from pulse.jit.compiled import CompiledFunction
from pulse.jit.language.declared import helper
from pulse.jit.rows.fields import layout_text
from pulse.jit.rows.instruction import Form, Instruction
from pulse.jit.rows.pointer import Bases, Row

KernelFunction = Callable[..., None]
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

FASTMATH = {"reassoc", "contract", "nsz"}
"""The flags of LLVM for kernels. With ``arcp``, it makes 1/sqrt(0) and 1/sqrt(inf) NaN."""
OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": FASTMATH}
KERNEL_PLUGINS = "pulse.kernels"
"""The entry points of plugins whose import declares kernels, and how ops are lowered to them."""


class Kernel(CompiledFunction):
    """The kernel of an instruction.

    ``function`` is plain Python, ``address`` is the address of the compiled ``void(int64* row, int64* bases)``.
    """

    def __init__(self, name: str, function: KernelFunction, number: int, form: Form = "f32") -> None:
        self.instruction = _instruction_of(function)
        super().__init__(name, function, OPTIONS)
        self.number = number
        self.form: Form = form
        """The form of its weights."""
        self.forms: dict[Form, Kernel] = {form: self}
        """The kernels for all forms of weights, including this one."""
        self.lanes: Kernel | None = None
        """The kernel for several streams at once, if it exists."""

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @property
    def signature(self) -> Any:
        from pulse.jit.codegen.row import kernel_signature

        return kernel_signature(self.instruction, self.form)

    @property
    def signature_text(self) -> str:
        return f"{self.form}({layout_text(self.instruction)})"

    def python(self, row: Row, regions: Bases) -> None:
        """Run as plain Python on a whole row and uint8 regions. Raises IndexError: an access is out of bounds."""
        with np.errstate(all="ignore"):
            self.function(self.instruction.from_words(row, 0, regions, self.form))


KERNELS: dict[str, Kernel] = {}
_by_number: list[Kernel] = []


def _qualified_name(function: KernelFunction) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def kernel(function: KernelFunction) -> Kernel:
    """Declare a kernel with the name of its function. Raises ValueError: another function has it."""
    return named_kernel(function.__name__)(function)


def named_kernel(name: str) -> Callable[[KernelFunction], Kernel]:
    """Declare a kernel under a given name, for families of kernels that a loop makes.

    The type of its parameter is the instruction that it runs. If that has weights, each form gets a kernel.
    """

    def declare(function: KernelFunction) -> Kernel:
        instruction = _instruction_of(function)
        if not instruction.__dict__.get("kernel"):
            instruction.kernel = name
        kernels: dict[Form, Kernel] = {
            form: _declare(instruction.in_form(name, form), function, form) for form in instruction.forms()
        }
        for kernel_of_form in kernels.values():
            kernel_of_form.forms = kernels
        return kernels[instruction.forms()[0]]

    return declare


@cache
def _instruction_of(function: KernelFunction) -> type[Instruction]:
    """Return the type of a kernel's parameter. Raises TypeError: that is not an instruction."""
    kind_or_none = next((kind for name, kind in get_type_hints(function).items() if name != "return"), None)
    if not (isinstance(kind_or_none, type) and issubclass(kind_or_none, Instruction)):
        raise TypeError(f"kernel {function.__name__}: its parameter must have an Instruction as its type")
    return kind_or_none


def _declare(name: str, function: KernelFunction, form: Form) -> Kernel:
    taken = KERNELS.get(name)
    if taken and _qualified_name(taken.function) != _qualified_name(function):
        raise ValueError(
            f"kernel {name}: the name is already used by {_qualified_name(taken.function)}; choose another"
        )
    KERNELS[name] = declared = Kernel(name, function, len(_by_number), form)
    _by_number.append(declared)
    return declared


def lanes_kernel(single: Kernel) -> Callable[[KernelFunction], Kernel]:
    """Declare the variant of a kernel that runs one row for several streams; see ``lane_bases``."""

    def declare(function: KernelFunction) -> Kernel:
        for form, single_of_form in single.forms.items():
            single_of_form.lanes = _declare(f"{single_of_form.name}_lanes", function, form)
        return cast(Kernel, single.lanes)

    return declare


def kernel_of(number: int) -> Kernel:
    """Return the kernel with this number, as in the rows of an unlinked table."""
    return _by_number[number]


def device(function: FunctionT) -> FunctionT:
    """Declare a helper that kernels may call: inlined when compiled, called in plain Python."""
    return helper(function, forceinline=True, **OPTIONS)


def exact_device(function: FunctionT) -> FunctionT:
    """Declare a ``device`` without reordered or contracted arithmetic: the same bits wherever it is inlined."""
    return helper(function, forceinline=True, fastmath=False, error_model="numpy")


def routine(function: FunctionT) -> FunctionT:
    """Declare a helper that is not inlined: one that is large, or called in several places."""
    return helper(function, **OPTIONS)


def compile_kernels(names: Iterable[str]) -> Sequence[Kernel]:
    """Load or compile the named kernels."""
    kernels = [KERNELS[name] for name in dict.fromkeys(names)]
    for declared in kernels:
        declared.prepare()
    return kernels


def modules_of(names: Iterable[str]) -> dict[str, str]:
    """Return the module that declares each kernel: name -> module."""
    return {name: KERNELS[name].function.__module__ for name in names}


def require_kernels(modules: Mapping[str, str]) -> None:
    """Import the modules of kernels that are not declared yet. Raises LoadError: one cannot be found."""
    for name, module in modules.items():
        if name in KERNELS:
            continue
        try:
            import_module(module)
        except ImportError as error:
            raise LoadError(
                f"kernel {name}: its module {module} cannot be imported here ({error}); make it importable"
            ) from error
        if name not in KERNELS:
            raise LoadError(
                f"kernel {name}: module {module} does not declare it here; use the version that does"
            )
