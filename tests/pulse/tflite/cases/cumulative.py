"""Running sums."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.tflite.builder import SubgraphBuilder
from tests.pulse.tflite.cases.case import TfliteCase, case_of


def running_sums() -> Iterator[TfliteCase]:
    graph = SubgraphBuilder()
    yield case_of(
        "CUMSUM",
        graph,
        graph.result(
            "CUMSUM", [graph.input((3, 5)), graph.constant(np.array(1, np.int32))], (3, 5), "CumsumOptions"
        ),
    )


ALL = (running_sums,)
