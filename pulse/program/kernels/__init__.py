"""Kernels: the compiled functions that run the rows of an instruction table; one module for each family.

Their language, and how they are tested, is in ``pulse.jit``. ``families`` imports all of them.
"""
