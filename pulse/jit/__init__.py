"""The language of compiled functions, and how they are compiled, kept, linked and called.

The only place that uses the inner parts of numba and llvmlite. ``instruction`` declares what a row of a table holds,
``structs`` memory that is written to, both by named ``fields``. ``pointer``, ``raw``, ``simd``, ``stack``,
``address``, ``atomics`` and ``foreign`` are what a function computes with; ``registry`` has the kernels, ``entries``
what Python or a C library calls. ``compiled`` finds a function in the ``library`` that the package carries, or in the
``cache``, or compiles it. What that means to numba stands in modules of the same names (``…_codegen``), and what
kernels declare waits in ``declared``. Both reach numba when something is compiled (``codegen``), so that a process
that compiles nothing imports neither numba nor llvmlite.

An instruction is declared once, and its kernel is a plain Python function that numba compiles, once per machine::

    from pulse.jit.instruction import Instruction, Operand, reads, updates
    from pulse.jit.registry import device, kernel
    from pulse.jit.simd import LANES, vfma, vload, vload_part, vstore, vstore_part

    class Axpy(Instruction):
        '''y[:n] += a * x[:n].'''

        y: Operand = updates("f32", "n")
        x: Operand = reads("f32", "n")
        n: int
        a: float

    @kernel
    def axpy(row: Axpy) -> None:
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
- ``packed_weights`` are of f32, f16, bf16 or int8: there is a kernel for each, and ``weight_scales`` are None but for
  int8.
- Signed ints only. ``p[i]`` of f32 is a float32, a literal ``0.5`` a float64: a scalar loop that mixes them
  computes in float64 (wrap constants: ``np.float32(0.5)``). Vectors always stay float32.
- ``simd`` values are one register (zmm) or several; four independent sums hide the latency of ``vfma``.
- A scalar loop over pointers vectorises too, with run-time checks that the operands do not overlap.
- A helper is a function marked ``@device``: inlined when compiled, itself in plain Python.
  ``@named_kernel(name)`` makes families in a loop, each closing over its own numbers or device functions.
- No allocation, no arrays, no exceptions, no prints: what may raise is refused when it is compiled, and that is also a
  range whose step is a variable, and an int to the power of an int.
- ``math`` functions are calls of libm: slow in a loop.
- LLVM may reorder sums while numba optimises; that order is then fixed for every form of the kernel (decision 26).
  Write ``vfma`` for a fused product. NaN and infinities keep their meaning, and a division is a division: divide once
  and multiply if that is all that is needed.

Test it twice. As Python: ``axpy.python(row, regions)`` or ``machine.run_python(table, regions)`` with uint8
numpy regions, where leaving a region, or the declared count of an operand, is an IndexError, and so is writing to one
that is only read a ValueError. Compiled: ``machine.run(linked.ctypes.data, rows,
bases.ctypes.data)`` with ``linked = link(table)`` and ``bases`` the int64 addresses of the regions.
``TableBuilder`` makes tables.
"""
