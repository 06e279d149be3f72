"""A node as its translator sees it: the wires of its inputs, its options, and the tensors as the file states them.

An activation that the file stores as codes is an f32 wire that holds ``code - zero``: integers, which sums and
f32 products keep exactly up to 2**24. So all ops on floats serve for codes as well. 32-bit integers are
wires of i64, as shapes are. Quantised constants are as they are stored.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeAlias

import numpy as np

from pulse.facts import F32, Array, TypedFact
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.ops.elementwise import Elementwise
from pulse.support.record import record
from pulse.tflite.read.file import Quantization, Tensor
from pulse.typed import TypedNetwork

Body: TypeAlias = Callable[[int, Mapping[int, TypedFact], str], TypedNetwork]
"""A subgraph as a model: its number, the facts of its inputs by their places, a title."""


def _no_body(index: int, facts: Mapping[int, TypedFact], title: str) -> TypedNetwork:
    raise NotImplementedError


@record(eq=False)
class TfliteNode(NodeContext):
    """One node while it is translated.

    input_tensors   the tensors that it reads; None if omitted
    output_tensors  the tensors that it makes
    body            reads another subgraph of the file
    inner           tensors that only state the scales of its inner sums
    """

    input_tensors: tuple[Tensor | None, ...] = ()
    output_tensors: tuple[Tensor, ...] = ()
    body: Body = field(default=_no_body)
    inner: tuple[Tensor, ...] = ()

    @property
    def has_codes(self) -> bool:
        """Whether the first output is stored as codes."""
        return bool(self.output_tensors) and self.output_tensors[0].has_codes

    def input_tensor(self, slot: int) -> Tensor:
        """Return the tensor of an input. Raises LoadError: it is omitted."""
        tensor = self.input_tensors[slot] if slot < len(self.input_tensors) else None
        if tensor is None:
            raise self.error(f"input {slot} is missing")
        return tensor

    def quantization(self, slot: int) -> Quantization:
        """Return the quantisation of an input. Raises LoadError: the file does not state it."""
        quantization = self.input_tensor(slot).quantization
        if quantization is None:
            raise self.error(f"its input {slot}, {self.input_tensor(slot).name}, has no scale")
        return quantization

    @property
    def own_rank(self) -> int:
        """The number of axes of the first input as the file counts them."""
        return self.fact(0).rank - self.input_tensor(0).is_complex

    def values(self, slot: int) -> OutletId:
        """Return an input as numbers: codes and f16 become f32, other types are unchanged."""
        tensor, x = self.input_tensor(slot), self.input(slot)
        if tensor.quantization is None or tensor.dtype is None or tensor.dtype.kind not in "iu":
            return self.cast(x, F32, f"wide{slot}") if self.graph.fact(x).dtype == np.float16 else x
        if not tensor.has_codes and tensor.data is None:
            return x
        if tensor.data is not None:
            return self.constant(decode(tensor), f"values{slot}")
        factor = self.constant(np.asarray(tensor.quantization.scale[0]), f"scale{slot}")
        return self.wire(Elementwise("mul"), [x, factor], f"values{slot}")

    def codes(self, slot: int) -> OutletId:
        """Return a coded input as ``code - zero`` in f32. Raises LoadError: it is not coded."""
        tensor = self.input_tensor(slot)
        if not tensor.has_codes:
            raise self.error(
                f"its input {slot}, {tensor.name}, is {tensor.type_name}, not codes, but its output has codes"
            )
        if tensor.data is None:
            return self.input(slot)
        return self.constant(subtract_zero(tensor).astype(np.float32), f"codes{slot}")


def subtract_zero(tensor: Tensor) -> Array:
    """Return a stored tensor as ``code - zero``, i64; without zero points if the file has none."""
    assert tensor.data is not None
    codes = tensor.data.astype(np.int64)
    if tensor.quantization is None:
        return codes
    return codes - spread_on_axis(tensor.quantization.zero, tensor.quantization.axis, codes.ndim)


def decode(tensor: Tensor) -> Array:
    """Return a stored quantised tensor as f32 numbers."""
    assert tensor.quantization is not None
    codes = subtract_zero(tensor)
    scale = spread_on_axis(tensor.quantization.scale, tensor.quantization.axis, codes.ndim)
    return (codes.astype(np.float32) * scale).astype(np.float32)


def spread_on_axis(values: Array, axis: int, rank: int) -> Array:
    """Return numbers of the channels on an axis, to broadcast to a tensor of a rank; a single number as it is."""
    if values.size == 1:
        return values.reshape(())
    return values.reshape([-1 if index == axis else 1 for index in range(rank)])
