"""A node as its writer sees it: names and facts of its inputs, and a way to add ONNX nodes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pulse.dim import TDim
from pulse.errors import WriteError
from pulse.facts import Array, DType, TypedFact, is_symbolic
from pulse.onnx.tensors import element_type
from pulse.onnx.write.clock import ClockWriter
from pulse.onnx.write.graph import GraphWriter
from pulse.support.record import record
from pulse.support.wording import spell


@record(eq=False)
class NodeWriter:
    """One node while it is written.

    graph           the file's graph, or a body in it
    clock           the positions and lengths in the file
    name            the node's name; states and helpers are named after it
    op_name         the name of its op
    inputs          the names of its inputs
    outputs         the intended names of its outputs, for those that are new wires
    input_facts     the facts of ``inputs``
    output_facts    the facts of ``outputs``
    output_is_used  whether a node reads each output
    """

    graph: GraphWriter
    clock: ClockWriter
    name: str
    op_name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_facts: tuple[TypedFact, ...]
    output_facts: tuple[TypedFact, ...]
    output_is_used: tuple[bool, ...]

    @property
    def opset(self) -> int:
        """The version of the default domain that is written."""
        return self.graph.opset

    def error(self, message: str) -> WriteError:
        """Return a WriteError that names the node."""
        return WriteError(f"{self.name} ({self.op_name}): {message}")

    def sizes(self, slot: int = 0) -> tuple[int, ...]:
        """Return the shape of an input. Raises WriteError: in an offline model, it depends on a length."""
        return self._numbers(self.input_facts[slot].shape)

    def size(self, axis: int, slot: int = 0) -> int:
        """Return the size of one axis of an input. Raises WriteError: it depends on a length."""
        return self._numbers([self.input_facts[slot].shape[axis]])[0]

    def _numbers(self, dims: Sequence[TDim]) -> tuple[int, ...]:
        for dim in dims:
            if not dim.is_const:
                raise self.error(
                    f"it needs the size {dim} as a number; fix the length with {spell('inputs')}, or write it in pulses"
                )
        return tuple(int(dim) for dim in dims)

    def dtype(self, slot: int = 0) -> DType:
        """Return the type of an input."""
        return self.input_facts[slot].dtype

    def output_shape(self) -> tuple[int, ...]:
        """Return the shape of the first output. Raises WriteError as ``sizes``."""
        return self._numbers(self.output_facts[0].shape)

    def known_value(self, slot: int) -> Array | None:
        """Return the value of an input if it is constant."""
        value = self.input_facts[slot].value
        return None if value is None or is_symbolic(value) else value

    def emit(self, op_type: str, inputs: Sequence[str], suffix: str = "", **attributes: Any) -> str:
        """Add an ONNX node with one output; the one that makes the node's first output has no suffix."""
        name = self._output_name(0, suffix)
        self.graph.add(op_type, inputs, [name], **attributes)
        return name

    def _output_name(self, slot: int, suffix: str) -> str:
        return self.graph.names.new(f"{self.name}.{suffix}") if suffix else self.outputs[slot]

    def emit_all(
        self, op_type: str, inputs: Sequence[str], suffixes: Sequence[str | None], **attributes: Any
    ) -> list[str]:
        """Add a node with several outputs; None leaves one out, an empty suffix is the output of that slot."""
        names = [
            "" if suffix is None else self._output_name(slot, suffix) for slot, suffix in enumerate(suffixes)
        ]
        while names and not names[-1]:
            names.pop()
        self.graph.add(op_type, inputs, names, **attributes)
        return names

    def constant(self, value: Array, suffix: str) -> str:
        """Store a tensor; return its name."""
        return self.graph.constant(value, f"{self.name}.{suffix}")

    def integers(self, numbers: Sequence[int], suffix: str) -> str:
        """Store a list of i64; return its name."""
        return self.constant(np.array(list(numbers), np.int64), suffix)

    def number(self, value: float, dtype: DType, suffix: str) -> str:
        """Store a scalar; return its name."""
        return self.constant(np.array(value).astype(dtype), suffix)

    # shared by several writers

    def reshape(self, x: str, sizes: Sequence[int], suffix: str = "") -> str:
        """Reshape: the same elements in another shape."""
        allow = {"allowzero": 1} if 0 in sizes and self.opset >= 14 else {}
        return self.emit("Reshape", [x, self.integers(sizes, "shape")], suffix, **allow)

    def add_axis(self, x: str, axis: int, suffix: str = "") -> str:
        """Insert an axis of size 1."""
        return self.emit("Unsqueeze", [x, self.integers([axis], "axes")], suffix)

    def remove_axis(self, x: str, axis: int, suffix: str = "") -> str:
        """Remove an axis of size 1."""
        return self.emit("Squeeze", [x, self.integers([axis], "axes")], suffix)

    def crop(self, x: str, axis: int, start: int, stop: int, suffix: str = "", step: int = 1) -> str:
        """Crop an axis to some frames; a negative ``stop`` of a negative step means up to the first one."""
        if step < 0 and stop < 0:
            stop = np.iinfo(np.int64).min
        bounds = [self.integers([value], what) for value, what in ((start, "start"), (stop, "stop"))]
        steps = [self.integers([step], "step")] if step != 1 else []
        return self.emit("Slice", [x, *bounds, self.integers([axis], "axis"), *steps], suffix)

    def cast(self, x: str, dtype: DType, suffix: str = "") -> str:
        """Cast to a type."""
        return self.emit("Cast", [x], suffix, to=element_type(dtype))

    def transpose(self, x: str, perm: Sequence[int], suffix: str = "") -> str:
        """Transpose axes; return the wire itself if their order is unchanged."""
        if list(perm) == sorted(perm) and suffix:
            return x
        return self.emit("Transpose", [x], suffix, perm=list(perm))

    def reduce(
        self, op_type: str, x: str, axes: Sequence[int], suffix: str = "", keepdims: bool = True
    ) -> str:
        """Add a reduction; its axes are an attribute in older opsets."""
        keep = {"keepdims": int(keepdims)}
        if op_type == "ReduceSum" or self.opset >= 18:
            return self.emit(op_type, [x, self.integers(axes, "axes")], suffix, **keep)
        return self.emit(op_type, [x], suffix, axes=list(axes), **keep)
