"""A typed model under construction, and the operations from which the functions of ``pulse.front`` are built."""

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from pulse.dim import SymbolScope, TDim
from pulse.errors import DimError, FactError, InputError
from pulse.facts import Array, Shape, TypedFact, dtype_name, shape_text
from pulse.graph import Graph, OutletId
from pulse.models import TypedModel
from pulse.ops.concat import Concat
from pulse.ops.conv import NO_PAD
from pulse.ops.dims import require_at_least
from pulse.ops.elementwise import Elementwise
from pulse.ops.matmul import MatMul
from pulse.ops.op import Op, PadMode
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, RemoveAxis, Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.ops.slice_frames import Frames
from pulse.ops.source import Source
from pulse.support.wording import count_of
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire


class FunctionBuilder:
    """A model of one function: its inputs are made first, then its steps, then ``model``.

    function  its name, for errors and the model's title
    inputs    name -> shape, such as ``1,257,frames,2``
    dtype     dtype of all inputs
    Raises    InputError: no such shape
    """

    def __init__(
        self, function: str, inputs: Mapping[str, str], dtype: type[np.generic] = np.float32
    ) -> None:
        self.function = function
        self.dtype = np.dtype(dtype)
        self.scope = SymbolScope()
        self.graph: TypedGraph = Graph()
        for name, text in inputs.items():
            fact = self._fact(name, text)
            self.graph.inputs += self.graph.add(name, Source(fact), (), [fact])

    def _fact(self, name: str, text: str) -> TypedFact:
        try:
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise FactError(f"{text!r} is not text")
            fact = TypedFact.of_input(text, self.scope)
        except (FactError, DimError) as error:
            raise InputError(
                f"{self.function}: the shape of {name} must be dims such as '1,80,T': {error}"
            ) from error
        if fact.dtype != self.dtype:
            raise InputError(f"{self.function}: {name} of shape {text!r} must be {dtype_name(self.dtype)}")
        return fact

    def error(self, message: str) -> InputError:
        """Return an error that names the function."""
        return InputError(f"{self.function}: {message}")

    def __getitem__(self, name: str) -> OutletId:
        return self.graph.find(name)

    def shape(self, x: OutletId) -> Shape:
        """Return the dims of a wire."""
        return self.graph.fact(x).shape

    def rank(self, x: OutletId) -> int:
        """Return the number of axes of a wire."""
        return self.graph.fact(x).rank

    def text(self, x: OutletId) -> str:
        """Return the shape of a wire as text, such as ``1,80,T``."""
        return shape_text(self.shape(x))

    def require_rank(self, x: OutletId, rank: int, example: str) -> None:
        """Raise InputError if a wire has another number of axes."""
        if self.rank(x) != rank:
            raise self.error(
                f"shape {self.text(x)!r} must have {count_of(rank, 'axis', 'axes')}, such as {example!r}"
            )

    def require_fixed(self, x: OutletId, axis: int, subject: str) -> int:
        """Return a size. Raises InputError: it is not a number of at least 1."""
        dim = self.shape(x)[axis]
        if not dim.is_const or int(dim) < 1:
            raise self.error(f"{subject}, axis {axis} of {self.text(x)!r}, must be a number of at least 1")
        return int(dim)

    def axis(self, x: OutletId, axis: object) -> int:
        """Return an axis counted from the front. Raises InputError: out of range."""
        rank = self.rank(x)
        if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
            raise self.error(
                f"axis={axis!r} is out of range for {self.text(x)!r}; allowed are {-rank} to {rank - 1}"
            )
        return axis % rank

    def new_axis(self, x: OutletId, axis: object) -> int:
        """Return the place of an axis to be added, counted from the front. Raises InputError: out of range."""
        rank = self.rank(x)
        if isinstance(axis, bool) or not isinstance(axis, int) or not -rank - 1 <= axis <= rank:
            raise self.error(f"axis={axis!r} must be from {-rank - 1} to {rank}")
        return axis % (rank + 1)

    def features(self, example: str) -> OutletId:
        """Return the input x [B, frames, bins]. Raises InputError: other axes, or bins that are not a number."""
        x = self["x"]
        self.require_rank(x, 3, example)
        self.require_fixed(x, 2, "the bins")
        return x

    def require(self, dim: TDim, minimum: int, subject: str) -> None:
        """Require a minimum length; checked when the model runs if it depends on one. Raises InputError: too short."""
        try:
            require_at_least(dim, TDim.of(minimum), subject)
        except FactError as error:
            raise self.error(str(error)) from error

    # steps

    def add(self, name: str, op: Op, *inputs: OutletId) -> OutletId:
        """Add a node. Raises InputError: its inputs do not fit."""
        try:
            return wire(self.graph, name, op, inputs)[0]
        except (FactError, DimError) as error:
            raise self.error(str(error)) from error

    def add_constant(self, name: str, value: Array | float) -> OutletId:
        """Add a constant, rounded to f32."""
        return add_constant(self.graph, name, np.ascontiguousarray(np.asarray(value, np.float32)))

    def apply(self, function: str, *operands: OutletId | float, name: str = "") -> OutletId:
        """Add an elementwise function; numbers become constants."""
        wires = [
            operand if isinstance(operand, OutletId) else self.add_constant("number", operand)
            for operand in operands
        ]
        return self.add(name or function, Elementwise(function), *wires)

    def matmul(self, x: OutletId, matrix: Array, name: str) -> OutletId:
        """Multiply the last axis by a constant matrix [K, N]."""
        return self.add(name, MatMul(), x, self.add_constant(f"{name}.matrix", matrix))

    def transpose(self, x: OutletId, perm: Sequence[int], name: str = "transposed") -> OutletId:
        """Transpose axes; return the wire itself if their order is unchanged."""
        return x if list(perm) == sorted(perm) else self.add(name, Transpose(tuple(perm)), x)

    def reshape(self, x: OutletId, *dims: TDim | int, name: str = "reshaped") -> OutletId:
        """Reshape a wire; return the wire itself if it has that shape."""
        shape = tuple(TDim.of(dim) for dim in dims)
        return x if shape == self.shape(x) else self.add(name, Reshape(shape), x)

    def add_axis(self, x: OutletId, axis: int) -> OutletId:
        """Insert an axis of size 1."""
        return self.add("axis", AddAxis(axis), x)

    def remove_axis(self, x: OutletId, axis: int) -> OutletId:
        """Remove an axis of size 1."""
        return self.add("axis", RemoveAxis(axis), x)

    def slice(
        self, x: OutletId, axis: int, start: TDim | int, end: TDim | int, name: str = "part"
    ) -> OutletId:
        """Slice an axis to ``start .. end - 1``; return the wire itself if these are all positions."""
        start, end = TDim.of(start), TDim.of(end)
        if start == 0 and end == self.shape(x)[axis]:
            return x
        return self.add(name, Slice(axis, start, end), x)

    def pad(
        self,
        x: OutletId,
        axis: int,
        before: int,
        after: TDim | int,
        mode: PadMode = "constant",
        fill: float = 0.0,
        name: str = "padded",
    ) -> OutletId:
        """Pad the ends of an axis with frames; negative amounts remove frames."""
        size, after = self.shape(x)[axis], TDim.of(after)
        drop = after.is_const and int(after) < 0
        x = self.slice(x, axis, max(0, -before), size + after if drop else size)
        pair = (TDim.of(max(0, before)), TDim.of(0) if drop else after)
        if pair == (0, 0):
            return x
        pads = tuple(pair if other == axis else NO_PAD for other in range(self.rank(x)))
        return self.add(name, Pad(pads, mode, fill), x)

    def frame(self, x: OutletId, axis: int, size: int, hop: int, name: str = "frames") -> OutletId:
        """Cut an axis into overlapping frames; a new axis after it holds their samples."""
        return self.add(name, Frames(axis, size, hop), x)

    def join_axes(self, x: OutletId) -> OutletId:
        """Join axes 2 and 3."""
        batch, frames, rows, columns, *others = self.shape(x)
        return self.reshape(x, batch, frames, rows * columns, *others)

    def concat(self, *parts: OutletId, axis: int = 2, name: str = "joined") -> OutletId:
        """Join tensors along an axis."""
        return self.add(name, Concat(axis), *parts)

    def overlap_add(self, x: OutletId, hop: int, name: str = "sum") -> OutletId:
        """Overlap-add frames [B, frames, size] to [B, (frames - 1)*hop + size].

        A block of ``hop`` samples is the sum of a part of each of the last ``ceil(size / hop)`` frames.
        """
        batch, frames, size = self.shape(x)[0], self.shape(x)[1], int(self.shape(x)[2])
        self.require(frames, 1, "frames to add")
        parts = -(-size // hop)
        x = self.pad(x, 2, 0, parts * hop - size)
        x = self.pad(x, 1, parts - 1, parts - 1)
        blocks = frames + parts - 1
        pieces = [
            self.slice(self.slice(x, 2, k * hop, (k + 1) * hop), 1, parts - 1 - k, parts - 1 - k + blocks)
            for k in range(parts)
        ]
        total = reduce(lambda left, right: self.apply("add", left, right, name=name), pieces)
        whole = self.reshape(total, batch, blocks * hop)
        return self.slice(whole, 1, 0, (frames - 1) * hop + size)

    def model(self, **outputs: OutletId) -> TypedModel:
        """Set the outputs, and return the finished model."""
        self.graph.set_outputs(list(outputs.values()), list(outputs))
        return TypedModel(self.graph, self.scope, self.function)
