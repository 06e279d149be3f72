"""Plans of a session: the part of its graph that a request runs, and models of it."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from pulse.dim import SymbolScope
from pulse.errors import InputError
from pulse.facts import Array
from pulse.infer.fact import InferenceFact
from pulse.support.budget import Spending, count_spending
from pulse.tensorflow.function_library import FunctionLibrary
from pulse.tensorflow.graph_node import GraphNode, NodeOutput
from pulse.tensorflow.read.building import WITHOUT_RESULT, Request, build_model, prepare_graph
from pulse.tensorflow.read.effects import Variables
from pulse.typed import TypedNetwork


class PlanKey(NamedTuple):
    """What a request feeds, fetches and runs, in no order."""

    feeds: frozenset[NodeOutput]
    fetches: frozenset[NodeOutput]
    targets: frozenset[str]


class RequestPlan:
    """The part of a graph that a request needs, and models of it by the shapes of their inputs.

    Raises LoadError as ``prepare_graph``
    """

    def __init__(
        self, nodes: Iterable[GraphNode], library: FunctionLibrary, title: str, key: PlanKey
    ) -> None:
        self._key, self._library = key, library
        self._fetched_nodes = {fetch.node for fetch in key.fetches if fetch not in key.feeds}
        names = sorted(self._fetched_nodes | key.targets)
        with count_spending(Spending()):
            self._graph = prepare_graph(list(nodes), library, title, names, list(key.feeds))
        self._models: dict[Any, TypedNetwork] = {}

    def find_running(self) -> list[str]:
        """Return the nodes that run, functions inlined."""
        graph, (feeds, _, targets) = self._graph, self._key
        needed = graph.find_needed([*self._fetched_nodes, *targets], feeds)
        variables = Variables(graph, self._library)
        effects = [node.name for node in needed.values() if variables.changed_variables(node)]
        pure = [name for name in targets if needed[name].op_type not in WITHOUT_RESULT]
        return list(graph.find_needed([*self._fetched_nodes, *effects, *pure], feeds, controls=False))

    def run(
        self, feeds: Mapping[NodeOutput, Array], values: Mapping[str, Array]
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the fetched tensors by name, and the next values of the variables that are assigned.

        values  the values of variables
        Raises  LoadError, FactError: the graph cannot run; InputError: a variable that is read has no value
        """
        held = {name: value for name, value in values.items() if name in self._graph.nodes}
        arrays = {str(tensor): array for tensor, array in feeds.items()} | held
        shapes = tuple(sorted((name, array.shape, array.dtype.str) for name, array in arrays.items()))
        if shapes not in self._models:
            self._models[shapes] = self._model(feeds, held)
        model = self._models[shapes]
        for name in model.inputs:
            if name not in arrays:
                raise InputError(
                    f"{name} ({self._graph.nodes[name].op_type}): the variable has no value yet; run its initialiser, "
                    "or give it a value with restore"
                )
        results = model.run({name: _stored_form(arrays[name]) for name in model.inputs})
        return results, {variable.input: np.array(results[variable.output]) for variable in model.variables}

    def _model(self, feeds: Mapping[NodeOutput, Array], values: Mapping[str, Array]) -> TypedNetwork:
        facts = {tensor: InferenceFact.like(_stored_form(array)) for tensor, array in feeds.items()}
        fetches = {str(tensor): tensor for tensor in sorted(self._key.fetches)}
        request = Request(fetches, tuple(sorted(self._key.targets)), facts, values, False)
        with count_spending(Spending()):
            return build_model(self._graph, self._library, request, SymbolScope()).analyse()


def _stored_form(array: Array) -> Array:
    """Return complex numbers as a last axis of two."""
    return np.stack([np.real(array), np.imag(array)], -1) if array.dtype.kind == "c" else array
