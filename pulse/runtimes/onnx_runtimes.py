"""An exported file run by any runtime, with its states fed back: the same calls as our own programs."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto

from pulse.errors import WriteError
from pulse.facts import Array
from pulse.metadata import StreamMetadata
from pulse.onnx.read.metadata_entries import metadata_of
from pulse.onnx.write.graph import dtype_and_sizes
from pulse.program.program import Program
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State, split_memory
from pulse.pulsify.network import PulsedNetwork
from pulse.support.bounds import FAR_END
from pulse.support.not_copyable import NotCopyable
from pulse.support.record import record

RunModel: TypeAlias = Callable[[Mapping[str, Array]], Mapping[str, Array]]
"""One call of a runtime: arrays by name, in and out."""

EVALUATOR = "onnx.reference"
"""The name of onnx's own evaluator."""
LOG_SEVERITY_ERROR = 3
"""The log level of onnxruntime: errors only."""
EXACT_INT8_OPTION = ("session.x64quantprecision", "1")
"""The session option without which sums of unsigned by signed bytes saturate at 16 bits on x86 without VNNI."""


@record(eq=False)
class OpenedRuntime:
    """A runtime in which a file is open.

    name        its name and version
    run         its call
    load_error  why onnxruntime, which is installed, did not load the file, so that this is another runtime; else empty
    """

    name: str
    run: RunModel
    load_error: str = ""


def open_runtime(model: ModelProto) -> OpenedRuntime:
    """Open a file in onnxruntime if it is installed and has all kernels, else in onnx's evaluator."""
    try:
        ort: Any = import_module("onnxruntime")
        no_kernel: Any = import_module("onnxruntime.capi.onnxruntime_pybind11_state").NotImplemented
    except ImportError:
        return OpenedRuntime(EVALUATOR, evaluator(model))
    name = f"onnxruntime {ort.__version__}"
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = LOG_SEVERITY_ERROR
    options.add_session_config_entry(*EXACT_INT8_OPTION)
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except no_kernel as error:
        reason = str(error).rpartition("NOT_IMPLEMENTED : ")[2]
        return OpenedRuntime(EVALUATOR, evaluator(model), f"{name} cannot load the file ({reason})")
    names: list[str] = [output.name for output in session.get_outputs()]

    def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
        results: list[Array] = session.run(names, dict(feeds))
        return dict(zip(names, results))

    return OpenedRuntime(name, run)


def evaluator(model: ModelProto) -> RunModel:
    """Return the call of onnx's own evaluator: slow, and each operator as the standard defines it."""
    session: Any = import_module("onnx.reference").ReferenceEvaluator(model)
    names = [output.name for output in model.graph.output]

    def run(feeds: Mapping[str, Array]) -> dict[str, Array]:
        with np.errstate(all="ignore"):  # a correct result may overflow in between
            results: list[Array] = session.run(None, dict(feeds))
        return dict(zip(names, results))

    return run


class RuntimeProgram(
    NotCopyable, Program, reason="it is open in a runtime of this process; pickle the model instead"
):
    """A file that ``to_onnx`` made of a model, in a runtime. Raises WriteError: it is not such a file.

    run   one call of the runtime; by default that of ``open_runtime``
    name  the name of the runtime, if ``run`` is given
    """

    def __init__(
        self, model: PulsedNetwork, proto: ModelProto, run: RunModel | None = None, name: str = "given"
    ) -> None:
        super().__init__(model)
        metadata = StreamMetadata.parse(metadata_of(proto))
        if metadata is None:
            raise WriteError(
                f"{model.title}: this file has no metadata of a pulsed model; write it with to_onnx"
            )
        self.metadata = metadata
        opened = open_runtime(proto) if run is None else OpenedRuntime(name, run)
        self._name, self.run, self.load_error = opened.name, opened.run, opened.load_error
        shapes = {value.name: dtype_and_sizes(value) for value in proto.graph.input}
        self.initial: dict[str, Array] = {}
        for state in metadata.states:
            dtype, sizes = shapes[state.input]
            value = state.value()
            self.initial[state.input] = np.zeros(sizes, dtype) if value is None else value

    @property
    def backend(self) -> str:
        return self._name

    def spawn(self, constants: Feed | None = None) -> "RuntimeState":
        return RuntimeState(self, constants)


class RuntimeState(State):
    """One stream: the states of the pulse before."""

    def __init__(self, program: RuntimeProgram, constants: Feed | None) -> None:
        super().__init__(program, constants)
        self._program = program
        self._memory: dict[str, Array] = {}
        self.takes_nan_padding = not program.network.checks
        self._clear()

    def _clear(self) -> None:
        self._memory = dict(self._program.initial)

    def _run(self, feed: Feed) -> dict[str, Array]:
        metadata = self._program.metadata
        feeds = {**self.constants, **feed}
        inputs = {entry.name: feeds[port.name] for entry, port in zip(metadata.inputs, self._program.inputs)}
        inputs |= self._memory
        if metadata.end is not None:
            inputs[metadata.end] = np.array(FAR_END if self.clock.end is None else self.clock.end, np.int64)
        results = self._program.run(inputs)
        outputs = {
            port.name: np.array(results[entry.name])
            for entry, port in zip(metadata.outputs, self._program.outputs)
        }
        self.changing = True
        self._memory = {state.input: results[state.output] for state in metadata.states}
        return outputs

    def _set_end(self) -> None:
        """Do nothing: the end is fed with every pulse."""

    def _memory_bytes(self) -> bytes:
        return b"".join(array.tobytes() for array in self._memory.values())

    def _set_memory_bytes(self, memory: bytes) -> None:
        arrays = split_memory(memory, [*self._memory.values()])
        self.changing = True
        self._memory = {name: array.copy() for name, array in zip(self._memory, arrays)}

    def _copy_memory(self) -> dict[str, Array]:
        return self._memory  # each pulse creates new arrays

    def _restore_memory(self, memory: dict[str, Array]) -> None:
        self._memory = memory
