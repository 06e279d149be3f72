"""Every runtime behind one interface.

Every peer runs on one thread, keeps its state inside, and takes and gives numpy arrays, so each figure
includes what its public Python interface costs.
"""

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import onnxruntime
import tract
from numpy.typing import NDArray

import pulse as ours
from bench.models import FEATURES, tcn, tcn_explicit_state

Array = NDArray[np.float32]


class Peer(Protocol):
    """A model that runs pulse by pulse."""

    name: str

    def step(self, pulse: Array) -> Array:
        """One pulse in, one pulse out; the state stays inside."""
        ...


class OnnxRuntimePeer:
    """onnxruntime on a model whose state is explicit: one data input and output, and pairs of states.

    Two sets of state buffers trade places at each step, through two bindings made in advance; measured, this
    beats passing the states through ``run`` by a fifth. States begin as zeros.
    """

    name = "onnxruntime"

    def __init__(self, model: bytes, states: Sequence[tuple[str, str]]) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        arrays = {
            value.name: np.zeros(value.shape, np.float32)
            for value in [*self._session.get_inputs(), *self._session.get_outputs()]
        }
        state_names = {name for pair in states for name in pair}
        (x,) = [value.name for value in self._session.get_inputs() if value.name not in state_names]
        (y,) = [value.name for value in self._session.get_outputs() if value.name not in state_names]
        self._x, self._y = arrays[x], arrays[y]
        # The bindings use the memory of these values without owning it.
        share = onnxruntime.OrtValue.ortvalue_from_numpy
        self._values = {name: share(array) for name, array in arrays.items()}
        self._bindings = itertools.cycle([self._bind(x, y, states, swap) for swap in (False, True)])

    def _bind(self, x: str, y: str, states: Sequence[tuple[str, str]], swap: bool) -> onnxruntime.IOBinding:
        """Read one set of states and write the other, or the reverse."""
        binding = self._session.io_binding()
        binding.bind_ortvalue_input(x, self._values[x])
        binding.bind_ortvalue_output(y, self._values[y])
        for past, following in states:
            source, target = (following, past) if swap else (past, following)
            binding.bind_ortvalue_input(past, self._values[source])
            binding.bind_ortvalue_output(following, self._values[target])
        return binding

    def step(self, pulse: Array) -> Array:
        """One pulse in, one pulse out."""
        np.copyto(self._x, pulse)
        self._session.run_with_iobinding(next(self._bindings))
        return self._y.copy()


class TractPeer:
    """tract on an offline model that it pulsifies itself; drop the first ``delay`` frames of its output."""

    name = "tract"

    def __init__(self, model: bytes, pulse: int, symbol: str = "T") -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model)
            typed = tract.onnx().load(path).into_model()
        typed.transform(tract.Pulse(pulse, symbol=symbol))
        self.delay = int(typed.property("pulse.delay").to_numpy()[0])
        self._state = typed.into_runnable().spawn_state()

    def step(self, pulse: Array) -> Array:
        """One pulse in, one pulse out."""
        return self._state.run([pulse])[0].to_numpy()


class PulsePeer:
    """This project: the offline model, pulsed and compiled; one stream of it."""

    name = "pulse"

    def __init__(self, model: bytes, pulse: int) -> None:
        self.program = ours.stream(model, pulse=pulse)
        self.delay = self.program.outputs[0].delay
        self._state = self.program.spawn()
        self._output = self.program.outputs[0].name

    def step(self, pulse: Array) -> Array:
        """One pulse."""
        return self._state.step(pulse)[self._output]


def tcn_peers(pulse: int) -> list[Peer]:
    """The peers on the bench network."""
    explicit = tcn_explicit_state(pulse)
    return [
        OnnxRuntimePeer(explicit.model.SerializeToString(), explicit.states),
        TractPeer(tcn().SerializeToString(), pulse),
        PulsePeer(tcn().SerializeToString(), pulse),
    ]


def tcn_pulses(pulse: int, count: int = 64) -> list[Array]:
    """Seeded random input of the bench network, ``count`` times [1, 20, pulse]."""
    random = np.random.RandomState(pulse)
    return list(random.standard_normal((count, 1, FEATURES, pulse)).astype(np.float32))
