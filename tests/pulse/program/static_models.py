"""A typed model without a stream as a program: every op of it once, for comparing backends."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from onnx import ModelProto

import pulse
from pulse.dim import SymbolScope
from pulse.errors import CompileError
from pulse.facts import Array
from pulse.interface import Port
from pulse.models import PulsedModel, TypedModel
from pulse.program.native.native_program import NativeProgram
from pulse.pulsify.constants import transfer_constants
from pulse.pulsify.network import PulsedGraph
from tests.pulse.cases.families import cases, newest_cases


@dataclass(frozen=True)
class StaticCase:
    """An operator case with its own inputs, and its program or the reason why it has none."""

    name: str
    typed: TypedModel
    feeds: dict[str, Array]
    program: NativeProgram | CompileError


@cache
def static_cases(family: str) -> tuple[StaticCase, ...]:
    """The newest cases of a family, read and compiled once for all tests that run them."""
    return tuple(_static_case(*case) for case in newest_cases(cases(family)))


def _static_case(name: str, proto: ModelProto, feeds: dict[str, Array]) -> StaticCase:
    typed = pulse.load(proto, inputs=fixed_specs(feeds)).model.analyse()
    try:
        return StaticCase(name, typed, feeds, NativeProgram(static_model(typed)))
    except CompileError as error:
        return StaticCase(name, typed, feeds, error)


def static_model(typed: TypedModel) -> PulsedModel:
    """The model as a pulsed one in which nothing streams."""
    graph = PulsedGraph()
    places = transfer_constants(typed.graph, graph)
    graph.inputs = [places[outlet] for outlet in typed.graph.inputs]
    graph.set_outputs([places[outlet] for outlet in typed.graph.outputs], typed.graph.output_names)
    inputs = tuple(Port.of(graph.label(outlet), graph.fact(outlet), None) for outlet in graph.inputs)
    outputs = tuple(Port.of(name, graph.fact(o), None) for name, o in zip(graph.output_names, graph.outputs))
    return PulsedModel(graph, typed, SymbolScope().symbol("T"), 1, inputs, outputs, {})


def run_native(program: NativeProgram, feeds: dict[str, Array]) -> dict[str, Array]:
    """Run the compiled machine once."""
    return program.spawn(feeds).step({})


def run_as_python(program: NativeProgram, feeds: dict[str, Array]) -> dict[str, Array]:
    """Run the same table once with every kernel as plain Python, each access checked."""
    from pulse.program.machine.machine import run_python
    from pulse.program.table.memory import Region

    regions = {
        Region.WEIGHTS: np.array(program.weights),
        Region.STATE: program.initial.copy(),
        Region.ARENA: np.zeros(program.arena_bytes, np.uint8),
    }
    for name, place in program.input_places:
        place.view(regions[place.region])[...] = feeds[name]
    run_python(program.unlinked, list(regions.values()))
    return {name: place.view(regions[place.region]).copy() for name, place in program.output_places}


def fixed_specs(feeds: dict[str, Array]) -> dict[str, str]:
    """Input specs that fix every dim to that of the arrays."""
    from pulse.facts import dtype_name

    return {
        name: ",".join([*map(str, array.shape), dtype_name(array.dtype)]) for name, array in feeds.items()
    }
