"""An exported model for servers that keep the states of a sequence themselves, as Triton's sequence batcher does.

Such a server feeds states back and marks the start of a sequence with a flag; the states are undefined then. So a model
takes the flag and contains its initial states. States have at least one axis.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from pulse.errors import WriteError
from pulse.metadata import StateMetadata, StreamMetadata
from pulse.onnx.proto import ModelProto, NodeProto, TensorProto, ValueInfoProto
from pulse.onnx.read.metadata_entries import metadata_of
from pulse.onnx.write.graph import Names
from pulse.onnx.write.kernel_types import widen_types
from pulse.support.record import record

START = "START"
"""The input that marks the start of a sequence: bool [1]."""
GARBAGE = 77
"""The first value of all states in a proof, since a server may give any."""


@record
class SequenceState:
    """A state of a sequence.

    input         the input that it is read from
    output        the output that it is written to
    element_type  its type, as ONNX's number
    shape         its shape
    """

    input: str
    output: str
    element_type: int
    shape: tuple[int, ...]


@record(eq=False)
class SequenceModel:
    """A model with START, and its states; all other inputs and outputs are the original model's."""

    proto: ModelProto
    states: tuple[SequenceState, ...]

    @property
    def inputs(self) -> list[ValueInfoProto]:
        """The inputs of each request."""
        states = {START, *(state.input for state in self.states)}
        return [value for value in self.proto.graph.input if value.name not in states]

    @property
    def outputs(self) -> list[ValueInfoProto]:
        """The outputs of each response."""
        states = {state.output for state in self.states}
        return [value for value in self.proto.graph.output if value.name not in states]


def sequence_model(proto: ModelProto) -> SequenceModel:
    """Return an exported model with START. Raises WriteError: ``to_onnx`` did not write it."""
    stream_metadata = StreamMetadata.parse(metadata_of(proto))
    if stream_metadata is None:
        raise WriteError("the model has no metadata for its states: give one that to_onnx wrote")
    model = ModelProto()
    model.CopyFrom(proto)
    graph = model.graph
    inputs: Mapping[str, ValueInfoProto] = {value.name: value for value in graph.input}
    outputs: Mapping[str, ValueInfoProto] = {value.name: value for value in graph.output}
    names = Names({name for node in graph.node for name in (*node.input, *node.output)} | set(inputs))
    if START in names.used_names:
        raise WriteError(f"a wire of the model is called {START}: rename it")
    first: list[NodeProto] = []
    states: list[SequenceState] = []
    if stream_metadata.states:
        graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), names.new("one")))
    unit_shape = graph.initializer[-1].name if stream_metadata.states else ""
    for pair in stream_metadata.states:
        input_info, output_info = inputs[pair.input], outputs[pair.output]
        element_type, shape = input_info.type.tensor_type.elem_type, shape_of(input_info)
        past = names.new(f"{pair.input}.past")
        input_info.name = past
        initial = pair.value()
        whole = shape or (1,)
        initial = (
            np.broadcast_to(0 if initial is None else initial, shape)
            .reshape(whole)
            .astype(helper.tensor_dtype_to_np_dtype(element_type))
        )
        graph.initializer.append(numpy_helper.from_array(initial, names.new(f"{pair.input}.initial")))
        state = pair.input if shape else names.new(f"{pair.input}.vector")
        first.append(helper.make_node("Where", [START, graph.initializer[-1].name, past], [state]))
        output = pair.output
        if not shape:
            empty = names.new(f"{pair.input}.shape")
            graph.initializer.append(numpy_helper.from_array(np.zeros(0, np.int64), empty))
            first.append(helper.make_node("Reshape", [state, empty], [pair.input]))
            output = names.new(f"{pair.output}.vector")
            graph.node.append(helper.make_node("Reshape", [pair.output, unit_shape], [output]))
            _set_vector(input_info)
            output_info.name = output
            _set_vector(output_info)
        states.append(SequenceState(past, output, element_type, whole))
    _prepend_nodes(graph, first)
    graph.input.append(helper.make_tensor_value_info(START, TensorProto.BOOL, [1]))
    del model.metadata_props[:]
    metadata = {
        entry.key: entry.value for entry in proto.metadata_props if not entry.key.startswith("pulse_")
    }
    helper.set_model_props(model, metadata)
    widen_types(model, names)
    return SequenceModel(model, tuple(states))


def provable_model(model: SequenceModel, proto: ModelProto) -> ModelProto:
    """Return the model as an exported file for a proof: START is a state, and all others begin as garbage.

    proto  the exported model of which it was made
    """
    result = ModelProto()
    result.CopyFrom(model.proto)
    graph = result.graph
    past_start = Names({value.name for value in graph.value_info}).new(f"{START}.next")
    constant = numpy_helper.from_array(np.array([False]), past_start)
    graph.node.append(helper.make_node("Constant", [], [past_start], value=constant))
    graph.output.append(helper.make_tensor_value_info(past_start, TensorProto.BOOL, [1]))
    metadata = StreamMetadata.parse(metadata_of(proto))
    assert metadata is not None
    states = [StateMetadata.of(START, past_start, np.array([True]))]
    for state in model.states:
        dtype = helper.tensor_dtype_to_np_dtype(state.element_type)
        states.append(StateMetadata.of(state.input, state.output, np.full(state.shape, GARBAGE, dtype)))
    helper.set_model_props(result, replace(metadata, states=tuple(states)).dump())
    return result


def shape_of(value: ValueInfoProto) -> tuple[int, ...]:
    """Return the shape of an input or output of an exported model, which is always known."""
    return tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)


def _prepend_nodes(graph: Any, nodes: list[NodeProto]) -> None:
    others = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *others])


def _set_vector(value: ValueInfoProto) -> None:
    del value.type.tensor_type.shape.dim[:]
    value.type.tensor_type.shape.dim.add().dim_value = 1
