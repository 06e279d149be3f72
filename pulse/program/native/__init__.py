"""The numba backend: its programs, and their streams one by one, in groups of lanes, and sixteen in one memory."""
