"""A model for one pulse whose states are inputs and outputs: the form for stateless runtimes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from pulse.chunks.chunking import Chunking
from pulse.chunks.initial_values import initial_value
from pulse.interface import Interface
from pulse.loading.load import load
from pulse.metadata import StreamMetadata
from pulse.models import PulsedModel
from pulse.support.bounds import FAR_END

Array = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class ChunkInput:
    """An input that the caller feeds in each step.

    context  leading frames along ``axis`` from the previous step; zeros in the first
    axis     axis of its frames; None if it has none
    """

    context: int = 0
    axis: int | None = 0


@dataclass(frozen=True, eq=False)
class Explicit:
    """One pulse of a model.

    inputs   inputs that the caller feeds, by name
    outputs  name in the file -> name in the model
    states   (input, output) of each state: the output is fed to the input of the next step
    initial  state input -> its value in the first step
    fixed    inputs that are fed with one value in every step
    """

    model: onnx.ModelProto = field(repr=False)
    inputs: Mapping[str, ChunkInput]
    outputs: Mapping[str, str]
    states: tuple[tuple[str, str], ...]
    initial: Mapping[str, Array] = field(repr=False)
    fixed: Mapping[str, Array] = field(default_factory=dict[str, Array], repr=False)

    @classmethod
    def from_author(
        cls,
        source: onnx.ModelProto | Path,
        pulse: int,
        chunking: Chunking | None = None,
        constants: Mapping[str, Any] | None = None,
    ) -> "Explicit":
        """Return a model that its author wrote in this form; the rest is found as for any user.

        Raises PulseError: the model does not take chunks as described
        """
        proto = source if isinstance(source, onnx.ModelProto) else onnx.load(source)
        chunk_options = chunking or Chunking()
        resolution = load(proto, constants=constants, chunking=chunk_options).with_pulse(pulse).resolution
        assert resolution.chunks is not None, "a model of chunks"
        assert resolution.call is not None, "its call"
        states = tuple((pair.input, pair.output) for pair in resolution.chunks.states)
        inputs = {
            port.name: ChunkInput(chunk_options.context.get(port.name, 0), port.axis)
            for port in resolution.chunks.inputs
        }
        names = {port.name: port.name for port in resolution.chunks.outputs}
        call_inputs = resolution.call.inputs
        initial = {
            name: initial_value(name, call_inputs[name], chunk_options.initial.get(name))
            for name, _ in states
        }
        constants_feed = constant_feeds(proto, constants or {})
        return cls(proto, inputs, names, states, initial, constants_feed)

    @classmethod
    def of(cls, pulsed: Interface) -> "Explicit":
        """Return the form that this project writes of a pulsed model. Raises WriteError: an op cannot be written."""
        assert isinstance(pulsed, PulsedModel), "a program file has no graph"
        proto = pulsed.to_onnx()
        metadata = StreamMetadata.parse({entry.key: entry.value for entry in proto.metadata_props})
        assert metadata is not None, "to_onnx writes its metadata"
        values = {value.name: value for value in proto.graph.input}
        initial: dict[str, Array] = {}
        for state in metadata.states:
            info, value = values[state.input], state.value()
            dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            initial[state.input] = np.zeros(_sizes(info), dtype) if value is None else value
        constants_feed = {} if metadata.end is None else {metadata.end: np.array(FAR_END, np.int64)}
        outputs = {port.name: port.port or port.name for port in metadata.outputs}
        states = tuple((state.input, state.output) for state in metadata.states)
        inputs = {port.name: ChunkInput(axis=port.axis) for port in metadata.inputs}
        return cls(proto, inputs, outputs, states, initial, constants_feed)


def constant_feeds(model: onnx.ModelProto, constants: Mapping[str, Any]) -> dict[str, Array]:
    """Return the values of constant inputs, in the types of the file."""
    types = {value.name: value.type.tensor_type.elem_type for value in model.graph.input}
    return {
        name: np.array(value, helper.tensor_dtype_to_np_dtype(types[name]))
        for name, value in constants.items()
    }


def _sizes(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
