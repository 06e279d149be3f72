"""Kernels: the compiled functions behind the rows of an instruction table.

A kernel is a plain Python function that numba compiles, once per machine::

    from pulse.program.kernels.pointer import f32, number, real
    from pulse.program.kernels.registry import device, kernel
    from pulse.program.kernels.simd import LANES, vfma, vload, vload_part, vstore, vstore_part

    @kernel
    def axpy(row, bases):
        '''y[:n] += a * x[:n].  Arguments: y, x (operands), n, a (real).'''
        y, x, n, a = f32(row, bases, 0), f32(row, bases, 1), number(row, 2), real(row, 3)
        i = 0
        while i + LANES <= n:
            vstore(y, i, vfma(a, vload(x, i), vload(y, i)))
            i += LANES
        if i < n:
            rest = n - i
            vstore_part(y, i, rest, vfma(a, vload_part(x, i, rest), vload_part(y, i, rest)))

- Read every argument into a local first. ``f32 f64 i64 i32 u8`` give typed pointers (``p[i]``, ``p[i] = v``,
  ``p + n``; no checks, no wrapped index), ``number`` an int64, ``real`` a float packed by ``real_bits``.
- Signed ints only. ``p[i]`` of f32 is a float32, a literal ``0.5`` a float64: a scalar loop that mixes them
  computes in float64 (wrap constants: ``np.float32(0.5)``). Lanes always stay float32.
- ``simd`` values are one register (zmm) or several; four independent sums hide the latency of ``vfma``.
- A scalar loop over pointers vectorises too, with run-time checks that the operands do not overlap.
- A helper is a function marked ``@device``: inlined when compiled, itself in plain Python.
  ``@named_kernel(name)`` makes families in a loop, each closing over its own numbers or device functions.
- No allocation, no arrays, no exceptions, no prints: what may raise is refused when it is compiled, and that is also a
  range whose step is a variable, and an int to the power of an int.
- ``math`` functions are calls of libm: slow in a loop.
- Sums may be reordered and products contracted (FASTMATH); NaN and infinities keep their meaning, and
  a division is a division: divide once and multiply where that is all that is needed.

Test it twice. As Python: ``axpy.python(row, regions)`` or ``machine.run_python(table, regions)`` with uint8
numpy regions, where leaving a region is an IndexError. Compiled: ``machine.run(linked.ctypes.data, rows,
bases.ctypes.data)`` with ``linked = link(table)`` and ``bases`` the int64 addresses of the regions.
``TableBuilder`` makes tables.
"""
