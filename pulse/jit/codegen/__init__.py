"""The language for numba, one module for each of ``language`` and ``rows``, and the machine code of a function."""
