"""What functions that are compiled may call, as plain Python; ``codegen`` gives numba the same functions."""
