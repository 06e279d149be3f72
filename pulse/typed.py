"""TypedNetwork: every dtype and shape known, dims symbolic; runs offline in plain numpy."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Self, TypeAlias

import numpy as np

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import FaultError, InputError, PulseError
from pulse.facts import Array, TypedFact, dtype_name, is_symbolic, shape_text, widen_f16
from pulse.graph import Graph, Node, OutletId
from pulse.ops.arithmetic import NATIVE, Arithmetic, is_floating
from pulse.ops.check import replace_all_failing, tally_in_use
from pulse.ops.dims import is_floored_symbol
from pulse.ops.op import Env, Op
from pulse.ops.source import Const, Source
from pulse.support.budget import Spending, current_spending
from pulse.support.naming import require_name, unknown_name
from pulse.support.record import record
from pulse.support.wording import choose_wording, count_of, spell

TypedGraph = Graph[TypedFact, Op]
TypedNode: TypeAlias = Node[TypedFact, Op]


@record(eq=False)
class Variable:
    """A variable that a file keeps between calls: its input, and the output with its next value.

    input    the input that reads it
    output   the output with its next value
    initial  its value at the first call; None if the file has none
    reason   why it is a state, for messages
    """

    input: str
    output: str
    initial: Array | None
    reason: str = "a variable of the file"


@record(frozen=False)
class TypedNetwork:
    """An offline model: a graph of typed ops over one scope of symbols.

    graph      its nodes
    scope      its symbols
    title      the model's name
    metadata   the file's metadata
    origins    the origins of nodes, by name: the file's node, the line of the program that made it
    spending   the part of the file's budget that the analysis has used
    variables  the inputs and outputs that the file keeps inside itself
    """

    graph: TypedGraph
    scope: SymbolScope
    title: str = "model"
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    origins: dict[str, str] = field(default_factory=dict[str, str])
    spending: Spending = field(default_factory=current_spending, repr=False)
    variables: tuple[Variable, ...] = ()

    def copy(self) -> Self:
        """Return a copy of the model with only the nodes that the outputs need."""
        return replace(self, graph=self.graph.compact_copy(), metadata=dict(self.metadata))

    def with_outputs(self, names: Sequence[str]) -> Self:
        """Return the model with only these outputs, which may be any wires. Raises PulseError: no such wire."""
        result = self.copy()
        result.graph.set_outputs([result.graph.find(name) for name in names], names)
        result.variables = tuple(variable for variable in self.variables if variable.output in names)
        return result.copy()

    def view(self, name: str) -> list[TypedNode]:
        """Return the nodes of a view, or their replacements, without constants. Raises PulseError: no such view."""
        view = self.graph.views[require_name("view", name, self.graph.views, PulseError)]
        nodes = (self.graph.nodes[node_id] for node_id in sorted(view.nodes))
        return [node for node in nodes if not isinstance(node.op, Source | Const)]

    @property
    def inputs(self) -> dict[str, TypedFact]:
        """Name and fact of each input."""
        return {self.graph.label(outlet): self.graph.fact(outlet) for outlet in self.graph.inputs}

    @property
    def outputs(self) -> dict[str, TypedFact]:
        """Name and fact of each output."""
        return {
            name: self.graph.fact(outlet) for name, outlet in zip(self.graph.output_names, self.graph.outputs)
        }

    @property
    def symbols(self) -> list[Symbol]:
        """The symbols of the inputs' shapes, in the order of their appearance."""
        symbols: dict[Symbol, None] = {}
        for fact in self.inputs.values():
            for dim in fact.shape:
                for symbol in sorted(dim.symbols, key=lambda symbol: symbol.name):
                    symbols.setdefault(symbol)
        return list(symbols)

    def bind(self, feeds: Mapping[str, Array]) -> dict[Symbol, int]:
        """Return the value of each symbol, read off the shapes of the inputs. Raises InputError: they do not fit."""
        env: dict[Symbol, int] = {}
        for name, fact in self.inputs.items():
            if name not in feeds:
                continue
            shape = feeds[name].shape
            if len(shape) != fact.rank:
                raise InputError(f"{name}: expected rank {fact.rank} ({shape_text(fact.shape)}), got {shape}")
            for dim, size in zip(fact.shape, shape):
                _solve(dim, size, env)
            if shape != tuple(dim.eval(env) if dim.symbols <= env.keys() else -1 for dim in fact.shape):
                raise InputError(f"{name}: shape {shape} does not fit {shape_text(fact.shape)}")
        for assumption in self.scope.assumptions:
            if assumption.symbols <= env.keys() and not assumption.eval(env):
                values = ", ".join(f"{symbol.name}={env[symbol]}" for symbol in assumption.symbols)
                raise InputError(f"the model needs {assumption}, which {values} does not satisfy")
        return env

    def run(
        self,
        feeds: Mapping[str, Array] | Array,
        fetches: Sequence[str | OutletId] | None = None,
        arithmetic: Arithmetic = NATIVE,
    ) -> dict[str, Array]:
        """Return the offline result, by numpy: the oracle.

        feeds    name -> array; any wire may be fed by its label. One array if there is one input.
        fetches  labels or outlets of any wires; the outputs by default. Only what they need is evaluated.
        arithmetic  how it is computed: in the model's types, or as ``pulse.ops.arithmetic`` has it
        Raises InputError: arrays do not fit; FaultError: a node has no result for some values, such as an
        index outside its table. Wider arithmetic replaces such a value by the nearest one that has a result.
        """
        arrays = self._feeds_by_name(feeds)
        return OfflineRun(self, list(arrays), fetches)(arrays, arithmetic)

    def _feeds_by_name(self, feeds: Mapping[str, Array] | Array) -> dict[str, Array]:
        if isinstance(feeds, Mapping):
            inputs = self.inputs
            return {
                short_name if (short_name := name.removesuffix(":0")) in inputs else name: np.asarray(array)
                for name, array in feeds.items()
            }
        names = list(self.inputs)
        if len(names) != 1:
            raise InputError(
                f"the model has {count_of(len(names), 'input')}, feed them by name: {', '.join(names)}"
            )
        return {names[0]: np.asarray(feeds)}

    def _with_one_symbol(self) -> dict[str, str]:
        """Return example shapes for the first input with symbols: its last symbol is kept, others become 1."""
        name, fact = next(
            (name, fact) for name, fact in self.inputs.items() if any(dim.symbols for dim in fact.shape)
        )
        last = [dim for dim in fact.shape if not dim.is_const][-1]
        return {name: ",".join(str(dim) if dim.is_const or dim is last else "1" for dim in fact.shape)}

    def find_symbol(self, symbol: str | Symbol | None) -> Symbol:
        """Return the symbol that streams: the given one, or the only one. Raises PulseError: none, or several."""
        symbols = self.symbols
        names = ", ".join(declared.name for declared in symbols)
        if symbol is None:
            if len(symbols) == 1:
                return symbols[0]
            if not symbols:
                raise PulseError(
                    "no input has a symbolic dim, so there is no stream; give the time axis a name, "
                    f"such as {spell('inputs', {'x': '1,80,T,f32'})}, or {_dynamic_example()}; if "
                    f"each call takes the next chunk, {spell('states', {})} says so"
                )
            raise PulseError(
                f"inputs have {count_of(len(symbols), 'symbol')} ({names}); write a multiple of another one as such "
                "('32*T' in "
                f"the shape of an input, or {_dynamic_example('32*T')}), or name the one of the stream with "
                f"{spell('symbol')}, and give the others sizes, as in {spell('inputs', self._with_one_symbol())}"
            )
        for candidate in symbols:
            if symbol in (candidate, candidate.name):
                return candidate
        if not isinstance(symbol, str | Symbol):  # pyright: ignore[reportUnnecessaryIsInstance]  (pulsify(160))
            raise PulseError(
                f"the stream is a symbol or its name, not {symbol!r}; the frames of a pulse are {spell('pulse', 160)}"
            )
        name = symbol if isinstance(symbol, str) else symbol.name
        raise PulseError(unknown_name("symbol", name, [candidate.name for candidate in symbols]))


class OfflineRun:
    """Runs of a network on feeds of the same names: what is evaluated is planned once.

    network  the network, which is not changed meanwhile
    names    names of the feeds, as in ``TypedNetwork.run``
    fetches  as in ``TypedNetwork.run``
    Raises   PulseError: no such wire
    """

    def __init__(
        self, network: TypedNetwork, names: Sequence[str], fetches: Sequence[str | OutletId] | None = None
    ) -> None:
        self._network = network
        graph = network.graph
        self._fed = {name: graph.find(name) for name in names}
        if fetches is None:
            self._targets = dict(zip(graph.output_names, graph.outputs))
        else:
            self._targets = dict(
                (item, graph.find(item)) if isinstance(item, str) else (graph.label(item), item)
                for item in fetches
            )
        self._steps = list(self._plan())
        self._shapes: list[tuple[int, ...]] | None = None
        self._env: Env = {}

    def __call__(self, feeds: Mapping[str, Array], arithmetic: Arithmetic = NATIVE) -> dict[str, Array]:
        """Return the result for other arrays. Raises InputError, FaultError as ``TypedNetwork.run``."""
        arrays = {name: np.asarray(feeds[name]) for name in self._fed}  # numpy gives some results as scalars
        shapes = [array.shape for array in arrays.values()]
        if shapes != self._shapes:
            self._env = self._network.bind(arrays)
            self._shapes = shapes
        values = {
            outlet: self._input(name, outlet, arrays[name], arithmetic) for name, outlet in self._fed.items()
        }
        for node, read, unread in self._steps:
            results = _evaluate(node, [values[outlet] for outlet in node.inputs], self._env, arithmetic)
            for slot, outlet in read:
                values.setdefault(outlet, results[slot])
            for outlet in unread:
                values.pop(outlet, None)
        return {name: values[outlet] for name, outlet in self._targets.items()}

    def _plan(self) -> Iterator[tuple[TypedNode, list[tuple[int, OutletId]], list[OutletId]]]:
        """Yield each node to evaluate, its results that are read, and the values that are no longer read after it."""
        graph = self._network.graph
        nodes, order = graph.nodes, graph.order_after(set(self._fed.values()), list(self._targets.values()))
        readers = Counter(outlet for node_id in order for outlet in nodes[node_id].inputs)
        readers.update(self._targets.values())
        for node_id in order:
            node = nodes[node_id]
            read = [(slot, outlet) for slot, outlet in enumerate(node.wires) if readers[outlet]]
            readers.subtract(node.inputs)
            yield node, read, [outlet for outlet in dict.fromkeys(node.inputs) if not readers[outlet]]

    def _input(self, name: str, outlet: OutletId, array: Array, arithmetic: Arithmetic) -> Array:
        """Return the value of a wire that is fed. Raises InputError: its type does not fit."""
        expected = self._network.graph.fact(outlet).dtype
        array = widen_f16(array, expected)
        if array.dtype != expected and not (arithmetic.widens and is_floating(expected)):
            raise InputError(f"{name}: expected {dtype_name(expected)}, got {dtype_name(array.dtype)}")
        return arithmetic.take_input(array)


def _evaluate(node: TypedNode, inputs: Sequence[Array], env: Env, arithmetic: Arithmetic) -> Sequence[Array]:
    """Return the results of one node. Raises InputError, FaultError as ``run``."""
    if isinstance(node.op, Source):
        raise InputError(f"input {node.name} ({node.op.fact}) is not fed")
    inputs = _with_results(node, inputs, arithmetic)
    dtypes = [outlet.fact.dtype for outlet in node.outputs]
    tally = tally_in_use()
    if tally is not None:
        tally.path.append(node.name)
    try:
        return arithmetic.evaluate(node.op, inputs, dtypes, partial(node.op.eval, env=env))
    except (ValueError, IndexError) as error:
        raise InputError(f"{node.name} ({node.op.name}) cannot run on these lengths: {error}") from error
    finally:
        if tally is not None:
            tally.path.pop()


def _with_results(node: TypedNode, inputs: Sequence[Array], arithmetic: Arithmetic) -> Sequence[Array]:
    """Return the inputs of a node, if it has results for all values. Raises FaultError: faults are not counted."""
    if type(node.op).checks is Op.checks:  # it has none, as most ops
        return inputs
    checks = node.op.checks([value.shape for value in inputs], [value.dtype for value in inputs])
    if not checks or any(is_symbolic(value) for value in inputs):
        return inputs
    fixed, failures = replace_all_failing(checks, inputs)
    tally = tally_in_use()
    if tally is not None:
        for check, count in failures:
            tally.add(node.name, node.op.name, check, count)
    elif failures and not arithmetic.widens:
        faults = [check.fault(node.name, node.op.name, count) for check, count in failures]
        raise FaultError(
            f"{'; '.join(map(str, faults))}. There is no result for that: feed other values, or limit them before "
            f"the node (Clip, Where)",
            faults,
        )
    return fixed


def _solve(dim: TDim, size: int, env: dict[Symbol, int]) -> None:
    """Find the one unknown symbol of a dim from its size, if the dim is linear in it."""
    unknown = [symbol for symbol in dim.symbols if symbol not in env]
    if len(unknown) != 1:
        return
    (symbol,) = unknown
    sizes = {other: value for other, value in env.items() if other in dim.symbols}
    at_zero = dim.eval({**sizes, symbol: 0})
    slope = dim.eval({**sizes, symbol: 1}) - at_zero
    if slope and (size - at_zero) % slope == 0:
        env[symbol] = (size - at_zero) // slope
    elif is_floored_symbol(dim):
        env[symbol] = size


def _dynamic_example(dim: str = "T") -> str:
    """Return how the variable axis of a PyTorch module's input is named."""
    return f"{spell('dynamic', {'x': {2: dim}})} {choose_wording('of from_torch', 'for a PyTorch module')}"


def has_constant_shapes(network: TypedNetwork) -> bool:
    """Return whether no shape of a network depends on a symbol."""
    outlets = (outlet for node in network.graph.nodes for outlet in node.outputs)
    return all(dim.is_const for outlet in outlets for dim in outlet.fact.shape)


def add_constant(graph: TypedGraph, name: str, value: Array) -> OutletId:
    """Add a constant."""
    return graph.add(name, Const(value), (), [TypedFact.of(value)])[0]


def add_source(graph: TypedGraph, name: str, fact: TypedFact) -> OutletId:
    """Add a source of the type and shape of a wire, without its value."""
    fact_without_value = TypedFact(fact.dtype, fact.shape)
    return graph.add(name, Source(fact_without_value), (), [fact_without_value])[0]


def sources(graph: TypedGraph) -> list[OutletId]:
    """Return the sources of a graph, in the order in which they were added."""
    return [OutletId(node.id) for node in graph.nodes if isinstance(node.op, Source)]


def known_value(graph: TypedGraph, outlet: OutletId) -> Array | None:
    """Return the value of a wire, if it is known and holds numbers."""
    value = graph.fact(outlet).value
    return None if value is None or is_symbolic(value) else value
