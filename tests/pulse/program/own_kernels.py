"""The project's own kernels, without those that tests declare."""

from pulse.jit.registry import Kernel


def is_of_pulse(kernel: Kernel) -> bool:
    """Whether the kernel is declared in the package."""
    return kernel.function.__module__.startswith("pulse.")
