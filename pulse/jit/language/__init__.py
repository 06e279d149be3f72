"""What functions that are compiled may call, as plain Python; ``codegen`` declares the same functions to numba."""
