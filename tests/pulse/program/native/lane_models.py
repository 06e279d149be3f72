"""Models that step in lanes, and what each lane must give."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import onnx
from numpy.typing import NDArray

import pulse
from bench.models import tcn
from pulse.facts import Array
from pulse.jit.registry import kernel_of
from pulse.program.kernels import families as families
from pulse.program.program import Program
from pulse.program.table.table import RowTable, row_starts
from tests.agreement import assert_outputs_close
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.recurrent import weights

HIDDEN, FEATURES = 21, 5
assert_lanes_close = partial(assert_outputs_close, rtol=1e-4, atol=2e-5)


class LaneMemories:
    """The memories of all lanes for kernels as plain Python: region by ``[i]``, other lanes by ``+``."""

    def __init__(self, words: Sequence[NDArray[np.uint8] | int], start: int = 0) -> None:
        self.words, self.start = words, start

    def __add__(self, count: int) -> "LaneMemories":
        return LaneMemories(self.words, self.start + int(count))

    def __getitem__(self, i: int) -> NDArray[np.uint8] | int:
        return self.words[self.start + int(i)]


MODELS = ["tcn", "GRU", "GRU_reset", "LSTM", "RNN"]


def recurrent(name: str) -> onnx.ModelProto:
    """A convolution that looks one frame ahead, a recurrent layer over it, its last state."""
    op, _, form = name.partition("_")
    attributes = {"linear_before_reset": int(form != "reset")} if op == "GRU" else {}
    constants = weights(op, 1, HIDDEN, FEATURES) | {"k": floats("k", FEATURES, FEATURES, 3)}
    nodes = [
        node("Conv", "x k", "seen", pads=[1, 1]),
        node("Transpose", "seen", "frames", perm=[2, 0, 1]),
        node(op, "frames w r b", "y h", hidden_size=HIDDEN, **attributes),
    ]
    feeds = {"x": floats("x", 1, FEATURES, 9)}
    return model(nodes, feeds, constants, stream={"x": 2}, outputs="y h")


def program(name: str, pulse_frames: int, backend: str = "numba") -> Program:
    proto = tcn() if name == "tcn" else recurrent(name)
    return pulse.stream(proto, pulse=pulse_frames, backend=backend)


def pulses(program: Program, seed: int, count: int) -> list[Array]:
    (port,) = program.inputs
    return list(floats(("pulse", seed), count, *port.shape))


def lane(result: dict[str, Array], i: int) -> dict[str, Array]:
    return {name: array[i] for name, array in result.items()}


def run_lanes_python(table: RowTable, lanes: Sequence[Sequence[NDArray[np.uint8]]]) -> None:
    """Run several lanes as plain Python, each with its regions; kernels for lanes are used if available."""
    words = [word for regions in lanes for word in (*regions, len(lanes))]
    for start in row_starts(table):
        row, kernel = table[start : start + int(table[start + 1])], kernel_of(int(table[start]))
        if kernel.lanes is not None:
            kernel.lanes.python(row, LaneMemories(words))
            continue
        for regions in lanes:
            kernel.python(row, regions)
