"""Functions for single rows of a kernel: loaded from the disk, or compiled and stored there."""

import ctypes
from collections.abc import Sequence

from pulse.jit.compiled import COMPILING
from pulse.jit.registry import Kernel
from pulse.support.record import record

_linked: dict[str, "SpecialisedFunctions"] = {}


@record
class SpecialisedFunctions:
    """The functions of some rows of a kernel.

    addresses  the address for each row, with the C signature of the kernel; the function ignores its row argument
    nbytes     the bytes of their object code
    """

    addresses: tuple[int, ...]
    nbytes: int


def specialised_functions(
    kernel: Kernel, rows: Sequence[tuple[int, ...]], *, compiles: bool, applied: frozenset[int] | None = None
) -> SpecialisedFunctions | None:
    """Return the functions of rows, given by their words without the kernel and the length.

    compiles  compile functions that are not on the disk, which takes seconds; otherwise the result is then None
    applied   the rows of dispatchers that they apply, if they are known; no others are compiled
    Raises    CompileError: the code cannot be compiled
    """
    from pulse.jit.linking import link

    stored = kernel.cache_entry.of_rows(rows)
    with COMPILING:
        if functions := _linked.get(stored.symbol):
            return functions
        code = stored.read()
        if code is None:
            if not compiles:
                return None
            from pulse.jit.codegen.specialised_code import specialised_code

            code = specialised_code(kernel, stored.symbol, rows, applied)
            stored.write(code)
        table = ctypes.CFUNCTYPE(ctypes.c_void_p)(link(stored.name, code))()
        addresses = (ctypes.c_int64 * len(rows)).from_address(table or 0)
        _linked[stored.symbol] = functions = SpecialisedFunctions(tuple(addresses), len(code.object))
        return functions
