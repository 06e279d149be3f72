"""Models of one operator or few, in floats and in codes: each compared with LiteRT."""

from importlib import import_module

from tests.pulse.tflite.cases.case import TfliteCase

NAMES = (
    *("conv", "matmul", "elementwise", "shape", "shape_blocks", "slice", "concat", "gather", "pad", "resize"),
    *("pool", "reduce", "cumulative", "spectral"),
)
FAMILIES = {name: import_module(f"tests.pulse.tflite.cases.{name}") for name in NAMES}


def all_cases() -> list[TfliteCase]:
    """Every case, in the same order each time."""
    return [case for family in FAMILIES.values() for generator in family.ALL for case in generator()]
