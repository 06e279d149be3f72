"""Models of one operator or few, in floats and in codes: each compared with LiteRT."""

from tests.pulse.tflite.cases import elementwise, movements, reductions, windows
from tests.pulse.tflite.cases.case import TfliteCase


def all_cases() -> list[TfliteCase]:
    """Every case, in the same order each time."""
    families = (windows, elementwise, movements, reductions)
    return [case for family in families for generator in family.ALL for case in generator()]
