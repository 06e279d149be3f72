"""Other runtimes behind one interface, and a loop that times them in turns: ``python -m bench.peers``.

Every peer runs on one thread, keeps its state inside, and takes and gives numpy arrays, so each figure
includes what its public Python interface costs.
"""

import argparse
import gc
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import onnxruntime
import tract
from numpy.typing import NDArray

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


@dataclass(frozen=True)
class Percentiles:
    """The time of one step, in microseconds."""

    p50_us: float
    p90_us: float
    p99_us: float
    p99_9_us: float
    max_us: float

    @classmethod
    def of(cls, times_ns: Sequence[int]) -> "Percentiles":
        """From the time of every step."""
        return cls(*(float(value) / 1e3 for value in np.percentile(times_ns, [50, 90, 99, 99.9, 100])))


@dataclass(frozen=True)
class Ratio:
    """How many times slower one stepper is than another: median, lowest and highest over the rounds."""

    median: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.lowest:.2f}..{self.highest:.2f})"


@dataclass(frozen=True)
class Comparison:
    """The percentiles of every stepper in every round."""

    rounds: Mapping[str, Sequence[Percentiles]]

    def median(self, name: str) -> Percentiles:
        """The median over the rounds of each percentile; the largest of the maxima."""
        *columns, maxima = zip(*(astuple(each) for each in self.rounds[name]))
        return Percentiles(*(statistics.median(column) for column in columns), max(maxima))

    def ratio(self, slow: str, fast: str, percentile: str = "p50_us") -> Ratio:
        """Time of ``slow`` divided by time of ``fast``, round by round."""
        pairs = zip(self.rounds[slow], self.rounds[fast])
        ratios = [getattr(a, percentile) / getattr(b, percentile) for a, b in pairs]
        return Ratio(statistics.median(ratios), min(ratios), max(ratios))

    def __str__(self) -> str:
        """A table: one row per stepper, the last column is its p50 relative to the first stepper's."""
        first = next(iter(self.rounds))
        lines = [f"{'us per step':14}{'p50':>9}{'p90':>9}{'p99':>9}{'p99.9':>9}{'max':>9}   p50 / {first}'s"]
        for name in self.rounds:
            cells = "".join(f"{value:9.1f}" for value in astuple(self.median(name)))
            lines.append(f"{name:14}{cells}   {self.ratio(name, first)}")
        return "\n".join(lines)


def alternate(
    steppers: Mapping[str, Callable[[], object]], rounds: int, steps: int, warmup_steps: int = 300
) -> Comparison:
    """Time every stepper for ``steps`` calls a round, one after the other; who goes first changes by round.

    Short rounds in turns let a change in the machine's speed reach all steppers alike. The garbage collector
    is off while it times.
    """
    results: dict[str, list[Percentiles]] = {name: [] for name in steppers}
    for stepper in steppers.values():
        for _ in range(warmup_steps):
            stepper()
    order = list(steppers)
    collected = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name in order:
                results[name].append(Percentiles.of(time_steps(steppers[name], steps)))
            order.append(order.pop(0))
    finally:
        if collected:
            gc.enable()
    return Comparison(results)


def time_steps(stepper: Callable[[], object], steps: int) -> list[int]:
    """The time of each of ``steps`` calls, in nanoseconds."""
    clock = time.perf_counter_ns
    times: list[int] = []
    for _ in range(steps):
        begin = clock()
        stepper()
        times.append(clock() - begin)
    return times


def fed(step: Callable[[Array], object], pulses: Sequence[Array]) -> Callable[[], object]:
    """A stepper that gives ``step`` one pulse after another, over and over."""
    source = itertools.cycle(pulses)
    return lambda: step(next(source))


def tcn_peers(pulse: int) -> list[Peer]:
    """The peers on the bench network."""
    explicit = tcn_explicit_state(pulse)
    return [
        OnnxRuntimePeer(explicit.model.SerializeToString(), explicit.states),
        TractPeer(tcn().SerializeToString(), pulse),
    ]


def tcn_pulses(pulse: int, count: int = 64) -> list[Array]:
    """Seeded random input of the bench network, ``count`` times [1, 20, pulse]."""
    random = np.random.RandomState(pulse)
    return list(random.standard_normal((count, 1, FEATURES, pulse)).astype(np.float32))


def main() -> None:
    """Compare the peers on the bench network."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=main.__doc__)
    parser.add_argument("--pulse", type=int, nargs="+", default=[1, 8], help="frames per step")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1000, help="steps per peer and round")
    arguments = parser.parse_args()
    for pulse in arguments.pulse:
        pulses = tcn_pulses(pulse)
        steppers = {peer.name: fed(peer.step, pulses) for peer in tcn_peers(pulse)}
        print(f"pulse {pulse}\n{alternate(steppers, arguments.rounds, arguments.steps)}")


if __name__ == "__main__":
    main()
