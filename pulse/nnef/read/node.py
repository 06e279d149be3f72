"""An operator as its reader sees it: arguments by name, wires with type and rank, and a way to add ONNX nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias, Union

import numpy as np
from onnx import NodeProto, helper, numpy_helper

from pulse.dim import Symbol, TDim
from pulse.errors import LoadError, WriteError
from pulse.facts import BOOL, F32, I64, Array, DType, dtype_name
from pulse.onnx.proto import TensorProto
from pulse.onnx.tensors import element_type
from pulse.onnx.write.dims import DimWriter
from pulse.onnx.write.graph import GraphWriter, Names
from pulse.support.record import record


@record(eq=False)
class NnefWire:
    """A tensor: its name in ONNX, its type and sizes (None if unknown), and its value if it is constant."""

    name: str
    dtype: DType
    sizes: "tuple[int | None, ...]"
    value: Array | None = None

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.sizes)


NnefValue: TypeAlias = Union[
    NnefWire, TDim, bool, int, float, str, "list[NnefValue]", "tuple[NnefValue, ...]"
]
"""The value of an expression."""


class SymbolicSizes:
    """Sizes that depend on symbols, as nodes of the whole graph: computed from the shapes of its inputs."""

    def __init__(self, opset: int, names: Names, nodes: list[NodeProto]) -> None:
        self.writer = GraphWriter(opset, names, nodes=nodes)
        self.axis_of: dict[Symbol, tuple[str, int]] = {}
        """Symbol -> the input and the axis that it is the size of."""
        self._dims = DimWriter(self.writer, self._symbol)

    def wire(self, dim: TDim) -> NnefWire:
        """Compute a size, an i64 scalar. Raises WriteError: a symbol is not a size of an input."""
        return NnefWire(self._dims.length(dim), I64, ())

    def _symbol(self, symbol: Symbol) -> str:
        if symbol not in self.axis_of:
            raise WriteError(f"the symbol {symbol.name} is not the size of any input's axis")
        name, axis = self.axis_of[symbol]
        shape = self._dims.add_op("Shape", [name], f"shape.{name}")
        return self._dims.add_op("Gather", [shape, self._dims.number(axis)], f"size.{symbol.name}")


@record(eq=False)
class GraphReader:
    """The ONNX nodes of a graph or a body so far.

    names    the names that are taken
    lengths  the symbolic sizes of the file, shared with the bodies
    nodes    the nodes so far
    stored   the constants of the file, shared with the bodies
    trims    whether wires may be longer than the stream: a wire that is read together with a shorter one is cut
    """

    names: Names
    lengths: SymbolicSizes
    nodes: list[NodeProto]
    stored: list[TensorProto] = field(default_factory=list[TensorProto])
    trims: bool = False

    @classmethod
    def begin(cls, opset: int, trims: bool = False) -> "GraphReader":
        """Return an empty graph."""
        names, nodes = Names(), list[NodeProto]()
        return cls(names, SymbolicSizes(opset, names, nodes), nodes, trims=trims)

    def body(self) -> "GraphReader":
        return GraphReader(self.names, self.lengths, [], self.stored)

    def crop_ends(self, wires: "Sequence[NnefWire]") -> "list[NnefWire]":
        """Trim wires to the shortest on an axis of unknown size, if ``trims``."""
        cropped = [*wires]
        for axis in range(max(wire.rank for wire in wires) if self.trims else 0):
            unsized = [
                index for index, wire in enumerate(cropped) if axis < wire.rank and wire.sizes[axis] is None
            ]
            if len({cropped[index].name for index in unsized}) < 2:
                continue
            ends = [
                self._add_op("Shape", [cropped[index].name], start=axis, end=axis + 1) for index in unsized
            ]
            end, begin = self._add_op("Min", ends), self.constant(np.zeros(1, np.int64), "begin").name
            on = self.constant(np.array([axis], np.int64), "axis").name
            for index in unsized:
                result_name = self._add_op("Slice", [cropped[index].name, begin, end, on])
                cropped[index] = NnefWire(result_name, cropped[index].dtype, cropped[index].sizes)
        return cropped

    def _add_op(self, op_type: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = self.names.new(f"{inputs[0]}.{op_type.lower()}")
        self.nodes.append(helper.make_node(op_type, inputs, [name], name, **attributes))
        return name

    def tensors(self) -> list[TensorProto]:
        """Return all stored tensors."""
        return [*self.stored, *self.lengths.writer.constants.values()]

    def constant(self, value: Array, name: str) -> NnefWire:
        """Store a tensor; return its wire."""
        unique = self.names.new(name)
        self.stored.append(numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), unique))
        return NnefWire(unique, value.dtype, value.shape, value)


@record(eq=False)
class NodeReader:
    """One call of an operator while it is read.

    graph      the graph to which it adds nodes
    operator   the operator that is called
    targets    the intended names of the results
    arguments  arguments by name, defaults included
    location   the file and the line, for errors
    standard   whether the file is plain NNEF: tract stores some things otherwise
    """

    graph: GraphReader
    operator: str
    targets: tuple[str, ...]
    arguments: Mapping[str, NnefValue]
    location: str
    standard: bool = True

    def error(self, reason: str) -> LoadError:
        """Return a LoadError that names the operator and its place."""
        return LoadError(
            f"{self.location}: {self.targets[0] if self.targets else '?'} = {self.operator}(…): {reason}"
        )

    # arguments

    def wire(self, name: str, like: DType | None = None) -> NnefWire:
        """Return a tensor; a number becomes one of the type ``like``. Raises LoadError: it is something else."""
        return self.as_wire(self.arguments[name], name, like)

    def as_wire(self, value: NnefValue, name: str, like: DType | None = None) -> NnefWire:
        """Return a value as a tensor: a number, or nested lists of numbers. Raises LoadError: another value."""
        if isinstance(value, NnefWire):
            return value
        length, depth = value, 0
        while isinstance(length, list) and len(length) == 1:
            length, depth = length[0], depth + 1
        if isinstance(length, TDim):
            wire = self.length(length)
            return self.add_axes(wire, range(depth), f"{name}.axes") if depth else wire
        if isinstance(value, str | tuple | TDim):
            raise self.error(f"{name} must be a tensor")
        try:
            array = np.array(value)
        except ValueError as error:
            raise self.error(f"{name} must have rows of one length") from error
        if array.dtype.kind not in "bif" or not array.size:
            raise self.error(f"{name} must be a tensor of numbers")
        dtype = like if like is not None else {"b": BOOL, "i": I64, "f": F32}[array.dtype.kind]
        return self.graph.constant(array.astype(dtype), f"{self.targets[0]}.{name}")

    def integers(self, name: str) -> list[int]:
        """Return a list of integers. Raises LoadError: the argument is not one."""
        value = self.arguments[name]
        if isinstance(value, NnefWire) and value.value is not None:
            value = value.value.ravel().tolist()
        if isinstance(value, list):
            return [self.as_integer(item, name) for item in value]
        return [self.as_integer(value, name)]

    def as_integer(self, value: NnefValue, name: str) -> int:
        """Return a value as an integer. Raises LoadError: it is not one."""
        if isinstance(value, NnefWire) and value.value is not None and value.value.size == 1:
            value = value.value.reshape(()).item()
        if isinstance(value, TDim) and value.is_const:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 62:
            raise self.error(f"{name} must be integers")
        return value

    def length(self, value: TDim) -> NnefWire:
        """Compute a size that may depend on symbols, an i64 scalar.

        Raises LoadError: a symbol is not a size of an input
        """
        try:
            return self.graph.lengths.wire(value)
        except WriteError as error:
            raise self.error(f"{error}") from error

    def bounds(self, name: str) -> "list[int | TDim]":
        """Return a list of integers that may depend on symbols. Raises LoadError: the argument is not one."""
        value = self.arguments[name]
        values = value if isinstance(value, list) else [value]
        return [
            item if isinstance(item, TDim) and not item.is_const else self.as_integer(item, name)
            for item in values
        ]

    def integer(self, name: str) -> int:
        """Return one integer. Raises LoadError: the argument is not one."""
        return self.as_integer(self.arguments[name], name)

    def number(self, name: str) -> float:
        """Return one number. Raises LoadError: the argument is not one."""
        value = self.arguments[name]
        if isinstance(value, NnefWire) and value.value is not None and value.value.size == 1:
            value = value.value.reshape(()).item()
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"{name} must be a number")
        return float(value)

    def boolean(self, name: str) -> bool:
        """Return a boolean argument. Raises LoadError: the argument is not a boolean."""
        value = self.arguments[name]
        if not isinstance(value, bool):
            raise self.error(f"{name} must be true or false")
        return value

    def text(self, name: str) -> str:
        """Return a string. Raises LoadError: the argument is not one."""
        value = self.arguments[name]
        if not isinstance(value, str):
            raise self.error(f"{name} must be a string")
        return value

    def pairs(self, name: str) -> list[tuple[int, int]]:
        """Return a list of pairs of integers. Raises LoadError: the argument is not one."""
        value = self.arguments[name]
        pairs: list[tuple[int, int]] = []
        for pair in value if isinstance(value, list) else [value]:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise self.error(f"{name} must be pairs of integers")
            pairs.append((self.as_integer(pair[0], name), self.as_integer(pair[1], name)))
        return pairs

    def axes(self, name: str, rank: int) -> list[int]:
        """Return axes of a tensor, all different.

        Raises LoadError: the tensor does not have one, or one is named twice.
        """
        axes = self.integers(name)
        if len(set(axes)) != len(axes) or any(not 0 <= axis < rank for axis in axes):
            raise self.error(f"{name} {axes} are not distinct axes of a tensor of rank {rank}")
        return axes

    def axis(self, name: str, rank: int) -> int:
        """Return one axis. Raises LoadError: the tensor does not have it."""
        axis = self.integer(name)
        if not 0 <= axis < rank:
            raise self.error(f"{name} {axis} is out of range for rank {rank}")
        return axis

    # nodes

    def add(
        self,
        op_type: str,
        inputs: Sequence[NnefWire | None],
        dtype: DType,
        sizes: "Sequence[int | None]",
        suffix: str = "",
        slot: int = 0,
        **attributes: Any,
    ) -> NnefWire:
        """Add an ONNX node; return its output. Without a suffix it has the name of the target."""
        target = self.targets[slot] if slot < len(self.targets) else self.operator
        name = self.graph.names.new(f"{target}.{suffix}" if suffix else target)
        input_names = [tensor.name if tensor is not None else "" for tensor in inputs]
        self.graph.nodes.append(helper.make_node(op_type, input_names, [name], name, **attributes))
        return NnefWire(name, dtype, tuple(sizes))

    def apply(
        self,
        op_type: str,
        *operands: "NnefWire | float",
        suffix: str = "",
        dtype: DType | None = None,
        **attributes: Any,
    ) -> NnefWire:
        """Add a function of the elements of the first operand; return its output, of the same type and sizes.

        Numbers become constants of that type.
        """
        first = next(operand for operand in operands if isinstance(operand, NnefWire))
        wires = [
            operand
            if isinstance(operand, NnefWire)
            else self.constant(operand, first.dtype, f"{suffix or op_type.lower()}.number")
            for operand in operands
        ]
        return self.add(op_type, wires, dtype or first.dtype, first.sizes, suffix, **attributes)

    def constant(self, value: float, dtype: DType, suffix: str) -> NnefWire:
        """Store a number; return its wire."""
        return self.graph.constant(np.array(value).astype(dtype), f"{self.targets[0]}.{suffix}")

    def integers_tensor(self, numbers: Sequence[int], suffix: str) -> NnefWire:
        """Store a list of i64; return its wire."""
        return self.graph.constant(np.array([*numbers], np.int64), f"{self.targets[0]}.{suffix}")

    def bounds_tensor(self, numbers: "Sequence[int | TDim]", suffix: str) -> NnefWire:
        """Store a list of i64, or compute it if one of them depends on a symbol."""
        if all(isinstance(number, int) for number in numbers):
            return self.integers_tensor([int(number) for number in numbers], suffix)
        parts = [
            self.integers_tensor([number], f"{suffix}{index}")
            if isinstance(number, int)
            else self.add_axes(self.length(number), [0], f"{suffix}{index}")
            for index, number in enumerate(numbers)
        ]
        return self.add("Concat", parts, I64, [len(parts)], suffix, axis=0)

    def add_axes(self, x: NnefWire, axes: Sequence[int], suffix: str = "") -> NnefWire:
        """Insert axes of size 1."""
        rank = x.rank + len(axes)
        old = iter(x.sizes)
        sizes = [1 if axis in axes else next(old) for axis in range(rank)]
        if x.value is not None and suffix:
            return self.graph.constant(np.expand_dims(x.value, tuple(axes)), f"{self.targets[0]}.{suffix}")
        return self.add("Unsqueeze", [x, self.integers_tensor(axes, "axes")], x.dtype, sizes, suffix)

    def remove_axes(self, x: NnefWire, axes: Sequence[int], suffix: str = "") -> NnefWire:
        """Remove axes of size 1."""
        sizes = [size for axis, size in enumerate(x.sizes) if axis not in axes]
        return self.add("Squeeze", [x, self.integers_tensor(axes, "axes")], x.dtype, sizes, suffix)

    def slice_axis(
        self, x: NnefWire, axis: int, begin: int, end: "int | TDim | None", suffix: str
    ) -> NnefWire:
        """Slice an axis; all frames from ``begin`` on if there is no end."""
        sizes = [None if index == axis else size for index, size in enumerate(x.sizes)]
        size = x.sizes[axis]
        if size is not None and not isinstance(end, TDim):
            sizes[axis] = max(0, (size if end is None else min(end, size)) - begin)
        stop = self.bounds_tensor([(1 << 62) if end is None else end], f"{suffix}.end")
        bounds = [self.integers_tensor([begin], f"{suffix}.begin"), stop]
        return self.add("Slice", [x, *bounds, self.integers_tensor([axis], "axis")], x.dtype, sizes, suffix)

    def pad_axis(
        self,
        x: NnefWire,
        axis: int,
        before: int,
        after: "int | TDim",
        suffix: str = "",
        mode: str = "constant",
        value: Array | None = None,
    ) -> NnefWire:
        """Pad an axis before and after; with zeros by default."""
        size = x.sizes[axis]
        sizes = [*x.sizes]
        sizes[axis] = None if size is None or not isinstance(after, int) else size + before + after
        pads: list[int | TDim] = [0] * (2 * x.rank)
        pads[axis], pads[axis + x.rank] = before, after
        inputs = [x, self.bounds_tensor(pads, f"{suffix}.pads")]
        if mode == "constant":
            border = np.zeros((), x.dtype) if value is None else value
            inputs.append(self.graph.constant(border, f"{self.targets[0]}.{suffix}.value"))
        return self.add("Pad", inputs, x.dtype, sizes, suffix, mode=mode)

    def cast(self, x: NnefWire, dtype: DType, suffix: str = "") -> NnefWire:
        """Convert a wire to another type."""
        return self.add("Cast", [x], dtype, x.sizes, suffix, to=element_type(dtype))

    def align(self, values: Sequence[tuple[str, NnefValue]]) -> list[NnefWire]:
        """Align operands of one type to equally many axes: NNEF aligns the first axes. Raises LoadError: two types."""
        typed = [value for _, value in values if isinstance(value, NnefWire)]
        firm = [wire for wire in typed if wire.value is None or wire.value.size != 1] or typed
        like = firm[0].dtype if firm else None
        wires = [self.as_wire(value, name, like) for name, value in values]
        aligned: list[NnefWire] = []
        rank = max(wire.rank for wire in wires)
        for (name, _), wire in zip(values, wires):
            if like is not None and wire.dtype != like:
                if wire.value is None:
                    raise self.error(
                        f"{name} is {dtype_name(wire.dtype)}, the other is {dtype_name(like)}; cast one of them"
                    )
                wire = self.graph.constant(wire.value.astype(like), f"{self.targets[0]}.{name}")
            if 0 < wire.rank < rank:
                wire = self.add_axes(wire, range(wire.rank, rank), f"{name}.aligned")
            aligned.append(wire)
        return self.graph.crop_ends(aligned)

    def broadcast(self, wires: Sequence[NnefWire]) -> "list[int | None]":
        """Return the sizes of what operands broadcast to. Raises LoadError: they do not broadcast."""
        rank = max(wire.rank for wire in wires)
        result: list[int | None] = []
        for axis in range(rank):
            sizes = [wire.sizes[axis] for wire in wires if wire.rank]
            firm = {size for size in sizes if size not in (None, 1)}
            if len(firm) > 1:
                raise self.error(f"sizes {sorted(size for size in firm if size)} meet on axis {axis}")
            result.append(next(iter(firm)) if firm else None if None in sizes else 1)
        return result
