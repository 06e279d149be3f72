"""Models of one operator or few, in floats and in codes: each compared with LiteRT."""

from tests.pulse.tflite.cases import conv, cumulative, elementwise, matmul, movements, pool, reduce, spectral
from tests.pulse.tflite.cases.case import TfliteCase


def all_cases() -> list[TfliteCase]:
    """Every case, in the same order each time."""
    families = (conv, matmul, elementwise, movements, pool, reduce, cumulative, spectral)
    return [case for family in families for generator in family.ALL for case in generator()]
