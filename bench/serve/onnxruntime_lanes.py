"""A program whose lanes step in onnxruntime: everything else of the server stays the same."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bench.models.explicit import Explicit
from bench.peers.onnxruntime_peer import bind_states, session, shared_values
from pulse.facts import Array
from pulse.models import PulsedModel
from pulse.program.program import Program
from pulse.program.streams.feeds import Feed
from pulse.program.streams.lanes import Lanes, LaneSelection


class OnnxRuntimeProgram:
    """A program for a server, of a model in the form that ``PulsedModel.to_onnx`` writes.

    One session for all streams, on the thread that calls it; each lane has its states, bound in advance.
    """

    def __init__(self, pulsed: PulsedModel, program: Program) -> None:
        self._program = program
        self._explicit = Explicit.of(pulsed)
        self._session = session(self._explicit.model.SerializeToString())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def spawn_many(self, count: int, constants: Feed | None = None) -> Lanes:
        """Return lanes that step one after the other in onnxruntime."""
        states = [self._program.spawn(constants) for _ in range(count)]
        return OnnxRuntimeLanes(self._program, states, self._session, self._explicit)


class OnnxRuntimeLanes(Lanes):
    """Lanes whose memory is onnxruntime's."""

    def __init__(self, program: Any, states: Any, session: Any, explicit: Explicit) -> None:
        super().__init__(program, states)
        self._bound = [BoundLane(session, explicit) for _ in states]

    def _run(self, feed: dict[str, Array], selection: LaneSelection) -> dict[str, Array]:
        results: dict[str, list[Array]] = {port.name: [] for port in self.program.outputs}
        for row, (lane_index, clock) in enumerate(zip(selection.numbers, selection.clocks)):
            lane = self._bound[lane_index]
            if clock.pulse == 0:
                lane.reset()
            for name, array in lane.step({name: array[row] for name, array in feed.items()}).items():
                results[name].append(array)
            clock.pulse += 1
        return {name: np.stack(arrays) for name, arrays in results.items()}


class BoundLane:
    """The states of one stream: two sets of buffers that are swapped in each step."""

    def __init__(self, session: Any, explicit: Explicit) -> None:
        self._session, self._explicit = session, explicit
        shapes = {value.name: value for value in (*session.get_inputs(), *session.get_outputs())}
        arrays: dict[str, Array] = {
            name: np.zeros(value.shape, _dtype(value.type)) for name, value in shapes.items()
        }
        arrays |= {name: np.array(value) for name, value in explicit.fixed.items()}
        self._arrays, self._values = arrays, shared_values(arrays)
        self._bindings = [bind_states(session, explicit, self._values, swap) for swap in (False, True)]
        self._next = 0
        self.reset()

    def reset(self) -> None:
        """Begin a new stream."""
        self._next = 0
        for name, value in self._explicit.initial.items():
            self._arrays[name][...] = value

    def step(self, feed: Mapping[str, Array]) -> dict[str, Array]:
        """Run one pulse; return its outputs."""
        for name, array in feed.items():
            self._arrays[name][...] = array
        self._session.run_with_iobinding(self._bindings[self._next])
        self._next = 1 - self._next
        return {ours: self._arrays[name] for name, ours in self._explicit.outputs.items()}


def _dtype(onnx_type: str) -> Any:
    return {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}[onnx_type]
