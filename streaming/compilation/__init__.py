"""Compilation in other processes: kernels before their first use, specialised kernels while streams run."""
