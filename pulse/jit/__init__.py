"""The language of compiled functions, and how they are compiled, stored, linked and called.

This is the only package that uses the internals of numba and llvmlite. Its parts:

- ``rows``: ``instruction`` declares the rows of a table with named ``fields``; ``pointer`` their operands; ``reach``
  checks rows of files.
- ``language``: what functions compute with: ``raw``, ``simd``, ``stack``, ``tuples``, ``address``, ``atomics``,
  ``foreign``, and ``structs``, writable memory with named fields. ``declared`` collects the declarations of kernels.
- ``codegen``: modules that define the same names for numba. They, and what ``declared`` has, are registered when
  something is compiled, so a process that compiles nothing imports neither numba nor llvmlite.
- ``storage``: the package's machine code (``package_library``), and the ``cache`` of functions compiled here.

``registry`` has the kernels, ``entries`` the functions that Python or a C library calls. ``compiled`` finds a function
in the storage, or compiles it. ``processor`` and ``levels`` describe the target; ``linking`` makes code callable,
``python_call`` without ctypes. ``row_cuts`` divides rows for threads, ``specialised_functions`` have the numbers of a
row as constants, ``lane_bases`` has the memories of several streams, ``events`` wakes event loops.

An instruction is declared once, and its kernel is a plain Python function that numba compiles, once per machine::

    from pulse.jit.rows.instruction import Instruction, Operand, reads, updates
    from pulse.jit.registry import device, kernel
    from pulse.jit.language.simd import LANES, vfma, vload, vload_part, vstore, vstore_part

    class AxpyRow(Instruction):
        '''y[:n] += a * x[:n].'''

        y: Operand = updates("f32", "n")
        x: Operand = reads("f32", "n")
        n: int
        a: float

    @kernel
    def axpy(row: AxpyRow) -> None:
        y, x, n, a = row.y, row.x, row.n, row.a
        i = 0
        while i + LANES <= n:
            vstore(y, i, vfma(a, vload(x, i), vload(y, i)))
            i += LANES
        if i < n:
            rest = n - i
            vstore_part(y, i, rest, vfma(a, vload_part(x, i, rest), vload_part(y, i, rest)))

- Read every field into a local first. An operand is a typed pointer (``p[i]``, ``p[i] = v``, ``p + n``; no checks, no
  wrapped index), a number an int64, a real a float64. ``raw`` sees the bytes of an operand of any type as elements.
- ``packed_weights`` are f32, f16, bf16 or int8: the kernel is compiled for each, and ``weight_scales`` are None except
  for int8.
- Signed ints only. ``p[i]`` of f32 is a float32, a literal ``0.5`` a float64: a scalar loop that mixes them
  computes in float64 (wrap constants: ``np.float32(0.5)``). Vectors always stay float32.
- ``simd`` values are one register (zmm) or several; four independent sums hide the latency of ``vfma``.
- ``each`` of ``tuples`` calls a function for each row, sum or state of a tuple: blocks of 2, 4 or 8 rows share code.
- A scalar loop over pointers vectorises too, with run-time checks that the operands do not overlap.
- A helper is a function marked ``@device``: inlined when compiled, called in plain Python.
  ``@named_kernel(name)`` makes families of kernels in a loop, each closing over its own numbers or device functions.
- No allocation, arrays, exceptions or prints: code that may raise is refused at compilation, including a range whose
  step is a variable, and an int to the power of an int.
- ``math`` functions call libm: slow in a loop.
- LLVM may reorder sums while numba optimises; that order is then fixed for every form of the kernel (decision 26).
  Write ``vfma`` for a fused product. NaN and infinities keep their meaning, and divisions are not replaced: divide once
  and multiply if that is enough.

Test a kernel twice. As Python: ``axpy.python(row, regions)`` or ``machine.run_python(table, regions)`` with uint8
numpy regions; access outside a region, or beyond the declared count of an operand, raises IndexError, and a write to
an operand that is only read raises ValueError. Compiled: ``machine.run(linked.ctypes.data, rows, bases.ctypes.data)``
with ``linked = link(table)`` and ``bases`` the int64 addresses of the regions. ``TableBuilder`` makes tables.
"""
