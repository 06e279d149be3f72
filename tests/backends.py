"""The backends whose programs most tests run."""

BACKENDS = ("numba", "numpy")
