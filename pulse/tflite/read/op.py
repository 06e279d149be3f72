"""Operators of a .tflite file as ops of the analyser's graph."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pulse.errors import LoadError
from pulse.facts import F32, I64, dtype_name
from pulse.graph import OutletId
from pulse.infer.op import InferenceOp, short_text
from pulse.infer.translators import wire_node
from pulse.ops.elementwise import Cast, Elementwise
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.tflite.node import Body, TfliteNode
from pulse.tflite.operators import families as families
from pulse.tflite.read.file import Tensor
from pulse.tflite.registry import STATES, TRANSLATORS
from pulse.typed import TypedNetwork, add_constant
from pulse.wiring import wire as add_op


@record(eq=False)
class TfliteOp(InferenceOp):
    """An operator of a subgraph.

    op_type         the operator
    options         its options, by their names in the schema
    slots           the index of the input for each input slot of the operator; None if omitted
    input_tensors   the tensors that it reads; None if omitted
    output_tensors  the tensors that it makes
    body            reads another subgraph of the file
    inner           tensors that only state the scales of its inner sums
    """

    op_type: str
    options: Mapping[str, Any]
    slots: tuple[int | None, ...]
    input_tensors: tuple[Tensor | None, ...]
    output_tensors: tuple[Tensor, ...]
    body: Body
    inner: tuple[Tensor, ...] = ()

    @property
    def name(self) -> str:
        return self.op_type

    @property
    def is_supported(self) -> bool:
        return self.op_type in TRANSLATORS

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        operands = tuple(None if slot is None else inputs[slot] for slot in self.slots)
        names = (wire, *(tensor.name for tensor in self.output_tensors[1:]))
        node = TfliteNode(
            op_type=self.op_type,
            opset=1,
            wire_name=wire,
            attributes=self.options,
            inputs=operands,
            outputs=names,
            graph=target.graph,
            scope=target.scope,
            input_tensors=self.input_tensors,
            output_tensors=self.output_tensors,
            body=self.body,
            inner=self.inner,
        )
        if self.op_type not in TRANSLATORS.complex_operators and any(
            tensor is not None and tensor.is_complex for tensor in self.input_tensors
        ):
            supported = ", ".join(sorted(TRANSLATORS.complex_operators))
            raise node.error(f"complex numbers are supported by {supported} only; compute with real numbers")
        outlets = wire_node(TRANSLATORS[self.op_type], node)
        count = len(self.output_tensors) + len(STATES.get(self.op_type, ()))
        if len(outlets) < count:
            raise LoadError(
                f"{wire} ({self.op_type}): has {count_of(len(outlets), 'output')}, but the file lists {count}"
            )
        for tensor, outlet in zip(self.output_tensors, outlets):
            dtype = target.graph.fact(outlet).dtype
            if dtype.kind not in _dtype_kinds(tensor):
                stored = f"{'codes of ' if tensor.has_codes else ''}{tensor.type_name} in {tensor.name}"
                raise LoadError(
                    f"{wire} ({self.op_type}): computes {dtype_name(dtype)}, but the file has {stored}"
                )
        return outlets[:count]

    def detail(self) -> str:
        return short_text(" ".join(f"{name}={value}" for name, value in sorted(self.options.items())))


def _dtype_kinds(tensor: Tensor) -> str:
    """Return the kinds of types, in numpy's letters, that a wire of a tensor may have."""
    if tensor.has_codes or tensor.dtype is None or tensor.dtype.kind in "fc":
        return "f"
    return "b" if tensor.dtype.kind == "b" else "iu"


@record(eq=False)
class ToWire(InferenceOp):
    """An input as wires have it: codes as ``code - zero`` in f32, i32 as i64."""

    tensor: Tensor

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        graph, quantization = target.graph, self.tensor.quantization
        if quantization is None:
            return add_op(graph, wire, Cast(I64), inputs)
        x = add_op(graph, f"{wire}.codes", Cast(F32), inputs)[0]
        zero = add_constant(graph, f"{wire}.zero", np.asarray(-quantization.zero[0], np.float32))
        return add_op(graph, wire, Elementwise("add"), [x, zero])


@record(eq=False)
class FromWire(InferenceOp):
    """An output in the form of the file: codes, and i32, in their own types."""

    tensor: Tensor

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        graph, quantization, dtype = target.graph, self.tensor.quantization, self.tensor.dtype
        assert dtype is not None
        if quantization is None:
            return add_op(graph, wire, Cast(dtype), inputs)
        zero = add_constant(graph, f"{wire}.zero", np.asarray(quantization.zero[0], np.float32))
        x = add_op(graph, f"{wire}.codes", Elementwise("add"), [*inputs, zero])[0]
        return add_op(graph, wire, Cast(dtype), [x])


def is_converted(tensor: Tensor) -> bool:
    """Return whether wires have a tensor in another form than the file."""
    return tensor.has_codes or tensor.type_name == "INT32"
