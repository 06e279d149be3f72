"""Every runtime behind one interface.

A peer runs on one thread, keeps its state inside, and takes and gives numpy arrays, so each figure includes what the
runtime's public Python interface costs. Denormals count as zero in all of them.
"""

import itertools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import onnx
import onnxruntime
import tract
from numpy.typing import NDArray

from bench.models.explicit import ChunkInput, Explicit
from pulse.program.program import Program

Array: TypeAlias = NDArray[Any]
Feed: TypeAlias = Mapping[str, Array]
"""One pulse of each input, by name."""
Outputs: TypeAlias = Mapping[str, Array]
ERRORS = 3
"""onnxruntime's level of errors: it reports nothing less severe."""


class Peer(Protocol):
    """A model that runs pulse by pulse."""

    def step(self, feed: Feed) -> Outputs:
        """Run one pulse: return the outputs, which the caller owns; the peer keeps the state."""
        ...

    def delay(self, output: str) -> int | None:
        """Return the leading frames of an output to drop; None if it is this project's own delay."""
        ...


class Chunk:
    """An input of an explicit-state model: the frames of the past that it needs, and the new ones."""

    def __init__(self, name: str, form: ChunkInput, sample: Array) -> None:
        self.name, axis = name, form.axis or 0
        shape = list(np.atleast_1d(sample).shape)
        if form.context > shape[axis]:
            raise ValueError(f"{name}: a context of {form.context} frames is longer than a pulse")
        shape[axis] += form.context
        along = np.moveaxis(np.zeros(shape, sample.dtype), axis, 0)
        self._past, self._last = along[: form.context], along[len(along) - form.context :]
        self._new = np.moveaxis(along[form.context :], 0, axis)
        self.array = np.moveaxis(along, 0, axis).reshape(shape if sample.ndim else ())

    def push(self, feed: Feed) -> None:
        """Append new frames."""
        self._past[...] = self._last
        self._new[...] = feed[self.name]


def chunks(explicit: Explicit, sample: Feed) -> list[Chunk]:
    """Return the chunk of each input."""
    return [Chunk(name, form, sample[name]) for name, form in explicit.inputs.items()]


class OnnxRuntimePeer:
    """onnxruntime on a model whose state is explicit.

    Two sets of state buffers are exchanged at each step, through two bindings made in advance; measured, this
    beats passing the states through ``run`` by a fifth.
    """

    def __init__(self, explicit: Explicit, sample: Feed) -> None:
        self._session = session(explicit.model.SerializeToString())
        self._chunks = chunks(explicit, sample)
        arrays = {**{chunk.name: chunk.array for chunk in self._chunks}, **explicit.fixed}
        arrays |= {name: np.array(value) for name, value in explicit.initial.items()}
        names = [value.name for value in self._session.get_outputs()]
        results = self._session.run(
            names, {value.name: arrays[value.name] for value in self._session.get_inputs()}
        )
        arrays |= {name: np.array(result, order="C") for name, result in zip(names, results)}
        self._outputs = {ours: arrays[name] for name, ours in explicit.outputs.items()}
        # The bindings use the memory of these values without owning it.
        self._arrays, self._values = arrays, shared_values(arrays)
        bindings = [bind_states(self._session, explicit, self._values, swap) for swap in (False, True)]
        self._bindings = itertools.cycle(bindings)

    def step(self, feed: Feed) -> Outputs:
        """Run one pulse."""
        for chunk in self._chunks:
            chunk.push(feed)
        self._session.run_with_iobinding(next(self._bindings))
        return {name: array.copy() for name, array in self._outputs.items()}

    def delay(self, output: str) -> int | None:
        """Return the delay of the model."""
        return None


def shared_values(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return values of onnxruntime in the memory of arrays."""
    return {name: onnxruntime.OrtValue.ortvalue_from_numpy(array) for name, array in arrays.items()}


def bind_states(opened: Any, explicit: Explicit, values: Mapping[str, Any], swap: bool) -> Any:
    """Return a binding that reads one set of states and writes the other, or the reverse."""
    binding = opened.io_binding()
    for name in (*explicit.inputs, *explicit.fixed):
        binding.bind_ortvalue_input(name, values[name])
    for name in explicit.outputs:
        binding.bind_ortvalue_output(name, values[name])
    for past, following in explicit.states:
        source, target = (following, past) if swap else (past, following)
        binding.bind_ortvalue_input(past, values[source])
        binding.bind_ortvalue_output(following, values[target])
    return binding


def session(model: bytes) -> onnxruntime.InferenceSession:
    """Return a session with all optimisations, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = ERRORS
    options.add_session_config_entry("session.set_denormal_as_zero", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _tensor(array: Array) -> tract.Tensor:
    """Return a tensor of tract's; the types of its package do not know this function."""
    return tract.Tensor.from_numpy(array)  # pyright: ignore[reportAttributeAccessIssue]


class TractExplicitPeer:
    """tract on a model whose state is explicit; states stay its own tensors from step to step.

    new_state_each_step  run every step in a new state of tract's. It keeps what its recurrent layers remember in a
                         state, whatever the model feeds them with as their first value; that is wrong if the model
                         runs them over another axis than time, and a new state costs little.
    """

    def __init__(self, explicit: Explicit, sample: Feed, new_state_each_step: bool) -> None:
        self._chunks = chunks(explicit, sample)
        first = {**{chunk.name: chunk.array for chunk in self._chunks}, **explicit.fixed, **explicit.initial}
        loaded = _load(explicit.model)
        names = [loaded.input_name(number) for number in range(loaded.input_count())]
        for number, name in enumerate(names):
            loaded.set_input_fact(number, _fact(first[name]))
        typed = loaded.into_model()
        self._feeds: list[Any] = [_tensor(np.array(first[name], order="C")) for name in names]
        self._fed = [(names.index(chunk.name), chunk) for chunk in self._chunks]
        # The names that the file gives: after translation tract may call outputs differently, in the same order.
        output_names = [value.name for value in explicit.model.graph.output]
        self._states = [(names.index(read), output_names.index(write)) for read, write in explicit.states]
        self._outputs = [(ours, output_names.index(name)) for name, ours in explicit.outputs.items()]
        runnable = typed.into_runnable()
        self._run = (runnable if new_state_each_step else runnable.spawn_state()).run

    def step(self, feed: Feed) -> Outputs:
        """Run one pulse."""
        for number, chunk in self._fed:
            chunk.push(feed)
            self._feeds[number] = _tensor(chunk.array)
        results = self._run(self._feeds)
        for read, write in self._states:
            self._feeds[read] = results[write]
        return {name: results[number].to_numpy() for name, number in self._outputs}

    def delay(self, output: str) -> int | None:
        """Return the delay of the model."""
        return None


class TractPeer:
    """tract on an offline model that it pulsifies itself.

    inputs   shapes that override those of the file, as ``pulse.load`` takes them
    outputs  the ones that are wanted; those that only the end of the stream makes known would not pulsify
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
        self._inputs = [loaded.input_name(number) for number in range(loaded.input_count())]
        for number, name in enumerate(self._inputs):
            if shape := inputs.get(name):
                loaded.set_input_fact(number, shape)
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
    kind = {"f": "f", "i": "i", "b": "bool"}[array.dtype.kind]
    dtype = kind if kind == "bool" else f"{kind}{8 * array.dtype.itemsize}"
    return ",".join([*map(str, array.shape), dtype])


class PulsePeer:
    """This project: one stream of a compiled program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._state = program.spawn()

    def step(self, feed: Feed) -> Outputs:
        """Run one pulse."""
        return self._state.step(feed)

    def delay(self, output: str) -> int | None:
        """Return the delay of the model."""
        return None
