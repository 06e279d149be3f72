"""A kernel is named after its instruction: ``TableLookupRow`` is run by ``table_lookup``."""

import re

from pulse.jit.registry import KERNELS, Kernel
from pulse.program.kernels import families as families

ALL = [kernel for kernel in KERNELS.values() if kernel.function.__module__.startswith("pulse.")]


def kernel_name(class_name: str) -> str:
    """The name of the kernel for a class of instructions; digits belong to the word before them."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", class_name.removesuffix("Row")).lower()


def lanes_suffix(kernel: Kernel) -> str:
    """``_lanes`` for the variant of a kernel that takes several lanes, nothing for the kernel itself."""
    name = kernel.instruction.in_form(kernel.instruction.kernel, kernel.form)
    return "_lanes" if KERNELS[name].lanes is kernel else ""


def test_functions_are_called_after_their_instructions() -> None:
    assert len({kernel.function for kernel in ALL}) > 50
    names = {kernel.function.__name__: kernel_name(kernel.instruction.__name__) for kernel in ALL}
    suffixes = {kernel.function.__name__: lanes_suffix(kernel) for kernel in ALL}
    assert {*suffixes.values()} == {"", "_lanes"}
    assert {name: stem for name, stem in names.items() if name != stem + suffixes[name]} == {}


def test_kernels_are_registered_by_function_name_and_form() -> None:
    for name, kernel in KERNELS.items():
        if kernel in ALL:
            stem = kernel_name(kernel.instruction.__name__)
            expected = kernel.instruction.in_form(stem, kernel.form) + lanes_suffix(kernel)
            assert name == kernel.name == expected
            assert kernel.instruction.kernel == stem
