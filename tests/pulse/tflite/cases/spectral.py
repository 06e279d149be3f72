"""Fourier transforms."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import TfliteCase, case_of


def spectra() -> Iterator[TfliteCase]:
    """RFFT2D and the operators that read complex numbers."""
    for kind, options in (("COMPLEX_ABS", ""), ("REAL", ""), ("IMAG", "")):
        graph = SubgraphBuilder()
        x, lengths = graph.input((3, 1, 16)), graph.constant(np.array([1, 16], np.int32))
        y = graph.result("RFFT2D", [x, lengths], (3, 1, 9), "Rfft2dOptions", dtype="complex64")
        shape = graph.constant(np.array([3, 9], np.int32))
        y = graph.result("RESHAPE", [y, shape], (3, 9), "ReshapeOptions", dtype="complex64")
        yield case_of(f"RFFT2D {kind}", graph, graph.result(kind, [y], (3, 9), options))


ALL = (spectra,)
