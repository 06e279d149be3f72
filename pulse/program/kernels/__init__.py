"""Kernels: the compiled functions behind the rows of an instruction table; one module for each family.

What they are written in, and how they are tested, is in ``pulse.jit``. ``families`` imports all of them.
"""
