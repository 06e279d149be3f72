"""Files in pulses: pulse's own are read as streams, tract's as the offline models they were made from."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, ValueInfoProto, helper

from pulse.dim import TDim
from pulse.errors import LoadError
from pulse.metadata import StateMetadata
from pulse.nnef.properties import (
    DELAY_PROPERTY,
    FRAMES_PROPERTY,
    INPUT_AXES,
    OUTPUT_AXES,
    SYMBOL_PROPERTY,
    Properties,
    read_metadata,
    read_properties,
)
from pulse.nnef.read.node import GraphReader, NnefValue, NnefWire, NodeReader
from pulse.nnef.syntax import Document
from pulse.onnx.tensors import element_type
from pulse.support.printable import printable
from pulse.support.wording import count_of


class StreamTiming:
    """The timing of a file; this class is for offline files, which are read without change."""

    symbol: str | None = None
    """The symbol that sizes of inputs get though the file has numbers there."""
    late_outputs: frozenset[str] = frozenset()
    """The outputs that are cut; the wires before the cut have other names."""

    def dims(self, node: NodeReader, dims: list[NnefValue], stream: TDim | None) -> list[NnefValue]:
        """Return the shape of an input, from the shape of its ``external``.

        Raises LoadError: the properties of the file, or another input, contradict it
        """
        return dims

    def state(self, node: NodeReader, name: str, initial: NnefWire) -> NnefWire | None:
        """Return the wire of a state of the graph; None: the initial value, in every run."""
        return None

    def keep(self, node: NodeReader, name: str, last: NnefWire) -> None:
        """Add the next value of a state."""

    def output(self, graph: GraphReader, index: int, wire: NnefWire) -> NnefWire:
        """Return the output of the graph for a computed wire."""
        return wire

    def finish(self, model: ModelProto, outputs: Sequence[str]) -> None:
        """Complete the model. Raises LoadError: the properties of the file cannot be read."""


def read_timing(document: Document, title: str) -> StreamTiming:
    """Return the timing of a document. Raises LoadError: its properties do not fit it."""
    properties = read_properties(document)
    if FRAMES_PROPERTY in properties:
        return _Stream(document, properties, title)
    return _Pulsed(document, properties, title) if DELAY_PROPERTY in properties else StreamTiming()


@dataclass
class _Stream(StreamTiming):
    """A file of ours: its states become inputs and outputs, as in ONNX files in pulses."""

    document: Document
    properties: Properties
    title: str
    _inputs: list[ValueInfoProto] = field(default_factory=list[ValueInfoProto])
    _outputs: list[ValueInfoProto] = field(default_factory=list[ValueInfoProto])
    _states: list[StateMetadata] = field(default_factory=list[StateMetadata])
    _initial: dict[str, tuple[str, NnefWire]] = field(default_factory=dict[str, tuple[str, NnefWire]])

    def state(self, node: NodeReader, name: str, initial: NnefWire) -> NnefWire:
        if initial.value is None:
            raise node.error(f"the initial value of {printable(name)} is computed; store it")
        unique = node.graph.names.new(f"{name}.state")
        self._initial[name] = unique, initial
        self._inputs.append(
            helper.make_tensor_value_info(unique, element_type(initial.dtype), [*initial.value.shape])
        )
        return NnefWire(unique, initial.dtype, initial.sizes)

    def keep(self, node: NodeReader, name: str, last: NnefWire) -> None:
        state_name, initial = self._initial[name]
        assert initial.value is not None
        unique = node.graph.names.new(f"{name}.next")
        node.graph.nodes.append(helper.make_node("Identity", [last.name], [unique], unique))
        self._outputs.append(
            helper.make_tensor_value_info(unique, element_type(last.dtype), [*initial.value.shape])
        )
        self._states.append(StateMetadata.of(state_name, unique, initial.value))

    def finish(self, model: ModelProto, outputs: Sequence[str]) -> None:
        metadata = read_metadata(self.properties, self.title, self.document.inputs, outputs, self._states)
        model.graph.input.extend(self._inputs)
        model.graph.output.extend(self._outputs)
        helper.set_model_props(model, metadata.dump())


@dataclass
class _Pulsed(StreamTiming):
    """A file of tract's own pulses: its inputs have any length, and the delay is cut off."""

    document: Document
    properties: Properties
    title: str

    def __post_init__(self) -> None:
        self._delays = self._column(DELAY_PROPERTY, len(self.document.outputs))
        self._outputs = self._column(OUTPUT_AXES, len(self.document.outputs))
        self._inputs = dict(zip(self.document.inputs, self._column(INPUT_AXES, len(self.document.inputs))))
        self._pulses: set[int] = set()
        late = (name for name, delay in zip(self.document.outputs, self._delays) if delay > 0)
        self.late_outputs = frozenset(late) - {*self.document.inputs}
        symbols = self.properties.get(SYMBOL_PROPERTY, [])
        if len(symbols) != 1:
            raise LoadError(
                f"{self.title}: the property {SYMBOL_PROPERTY} is missing; write the file again with tract"
            )
        self.symbol = str(symbols[0])

    def _column(self, name: str, count: int) -> list[int]:
        values = self.properties.get(name, [])
        if len(values) != count or not all(isinstance(value, int) for value in values):
            raise LoadError(
                f"{self.title}: the property {name} must be {count} integers; write the file again with tract"
            )
        return [int(value) for value in values]

    def dims(self, node: NodeReader, dims: list[NnefValue], stream: TDim | None) -> list[NnefValue]:
        axis = self._inputs.get(node.targets[0], -1)
        if axis < 0:
            return dims
        if axis >= len(dims) or stream is None:
            raise node.error(
                f"the property {INPUT_AXES} says that its axis {axis} streams; it has {len(dims)}"
            )
        self._pulses.add(node.as_integer(dims[axis], "shape"))
        if len(self._pulses) > 1:
            raise node.error(
                "its pulse differs in length from another input's; give the model before it was pulsified"
            )
        return [*dims[:axis], stream, *dims[axis + 1 :]]

    def output(self, graph: GraphReader, index: int, wire: NnefWire) -> NnefWire:
        axis, delay = self._outputs[index], self._delays[index]
        if axis < 0:
            return wire
        if axis < wire.rank and wire.sizes[axis] is not None:
            raise LoadError(
                f"{self.title}: the output {printable(self.document.outputs[index])} has "
                f"{count_of(wire.sizes[axis], 'frame')}, "
                "whatever the pulse: an operator has the pulse as one of its sizes; give the model before it was "
                "pulsified"
            )
        if axis >= wire.rank or delay < 0:
            raise LoadError(
                f"{self.title}: the output {printable(self.document.outputs[index])} has no axis {axis} that is "
                f"{count_of(delay, 'frame')} late, as its properties say; write the file again with tract"
            )
        if delay == 0:
            return wire
        bounds = [
            graph.constant(np.array([number], np.int64), f"{wire.name}.{subject}").name
            for subject, number in (("begin", delay), ("end", (1 << 63) - 1), ("axis", axis))
        ]
        name = self.document.outputs[index]
        unique = name if name in self.late_outputs else graph.names.new(name)
        graph.nodes.append(helper.make_node("Slice", [wire.name, *bounds], [unique], unique))
        return NnefWire(
            unique, wire.dtype, tuple(None if at == axis else s for at, s in enumerate(wire.sizes))
        )
