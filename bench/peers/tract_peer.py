"""tract behind the interface of a peer: with explicit states, or pulsified by tract itself."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tract

from bench.models.explicit import Explicit
from bench.peers.peer import Array, Feed, Outputs, chunks


def _tensor(array: Array) -> tract.Tensor:
    """Return a tensor of tract's; the types of its package do not know this function."""
    return tract.Tensor.from_numpy(array)  # pyright: ignore[reportAttributeAccessIssue]


class TractExplicitPeer:
    """tract on a model whose state is explicit; states stay its own tensors from step to step.

    new_state_each_step  run every step in a new state of tract's. tract keeps the memory of recurrent
                         layers in a state, and ignores their initial value in the model. This is wrong
                         for layers that run over another axis than time; a new state costs little.
    """

    def __init__(self, explicit: Explicit, sample: Feed, new_state_each_step: bool) -> None:
        self._chunks = chunks(explicit, sample)
        first = {**{chunk.name: chunk.array for chunk in self._chunks}, **explicit.fixed, **explicit.initial}
        loaded = _load(explicit.model)
        names = [loaded.input_name(index) for index in range(loaded.input_count())]
        for index, name in enumerate(names):
            loaded.set_input_fact(index, _fact(first[name]))
        typed = loaded.into_model()
        self._feeds: list[Any] = [_tensor(np.array(first[name], order="C")) for name in names]
        self._fed = [(names.index(chunk.name), chunk) for chunk in self._chunks]
        # The names in the file: after translation tract may call outputs differently, in the same order.
        output_names = [value.name for value in explicit.model.graph.output]
        self._states = [(names.index(read), output_names.index(write)) for read, write in explicit.states]
        self._outputs = [(ours, output_names.index(name)) for name, ours in explicit.outputs.items()]
        runnable = typed.into_runnable()
        self._run = (runnable if new_state_each_step else runnable.spawn_state()).run

    def step(self, feed: Feed) -> Outputs:
        """Run one pulse."""
        for index, chunk in self._fed:
            chunk.push(feed)
            self._feeds[index] = _tensor(chunk.array)
        results = self._run(self._feeds)
        for read, write in self._states:
            self._feeds[read] = results[write]
        return {name: results[index].to_numpy() for name, index in self._outputs}

    def delay(self, output: str) -> int | None:
        """Return None: the delay of an explicit model is not known to tract."""
        return None


class TractPeer:
    """tract on an offline model that it pulsifies itself.

    inputs   shapes that override those of the file, as ``pulse.load`` takes them
    outputs  the requested ones; those that only the end of the stream makes known would not pulsify
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        pulse: int,
        symbol: str,
        outputs: Sequence[str],
        inputs: Mapping[str, str],
    ) -> None:
        trimmed = onnx.ModelProto()
        trimmed.CopyFrom(model)
        values = [value for value in model.graph.output if value.name in outputs]
        del trimmed.graph.output[:]
        trimmed.graph.output.extend(values)
        loaded = _load(trimmed)
        self._inputs = [loaded.input_name(index) for index in range(loaded.input_count())]
        for index, name in enumerate(self._inputs):
            if shape := inputs.get(name):
                loaded.set_input_fact(index, shape)
        typed = loaded.into_model()
        typed.transform(tract.Pulse(pulse, symbol=symbol))
        delays = typed.property("pulse.delay").to_numpy()
        self._names = [value.name for value in values]
        self._delays = {name: int(delay) for name, delay in zip(self._names, delays)}
        self._state = typed.into_runnable().spawn_state()

    def step(self, feed: Feed) -> Outputs:
        """Run one pulse."""
        results = self._state.run([feed[name] for name in self._inputs])
        return {name: result.to_numpy() for name, result in zip(self._names, results)}

    def delay(self, output: str) -> int | None:
        """Return the delay that tract states."""
        return self._delays[output]


def _load(model: onnx.ModelProto) -> tract.InferenceModel:
    """Load a model without the inner shapes that the file states: tract takes their names for other dims."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(bare.SerializeToString())
        return tract.onnx().load(path)


def _fact(array: Array) -> str:
    letter = {"f": "f", "i": "i", "b": "bool"}[array.dtype.kind]
    dtype = letter if letter == "bool" else f"{letter}{8 * array.dtype.itemsize}"
    return ",".join([*map(str, array.shape), dtype])
