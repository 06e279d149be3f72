"""FileNetwork: a file as read. Shapes and types may be partly unknown; ``analyse`` makes it a TypedNetwork."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import Self, TypeAlias

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import DimError, LoadError, PulseWarning
from pulse.facts import Array, TypedFact
from pulse.graph import Graph, Node, OutletId
from pulse.infer.analyser import Facts, infer_facts
from pulse.infer.claims import Claim, warn_contradicted, warn_refuted
from pulse.infer.fact import InferenceFact
from pulse.infer.op import InferenceOp
from pulse.ops.source import Source
from pulse.substitution import Terms
from pulse.support.budget import Spending, count_spending, current_spending
from pulse.support.printable import printable
from pulse.support.record import record
from pulse.support.wording import spell
from pulse.typed import TypedGraph, TypedNetwork, Variable, add_constant


@record
class Input(InferenceOp):
    """An input of the model, fed by the caller."""

    fact: InferenceFact

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        fact = self.fact.to_typed()
        if fact is None:
            raise LoadError(_unknown_dims(wire, self.fact))
        outlets = target.graph.add(wire, Source(fact), (), [fact])
        target.graph.inputs.extend(outlets)
        return outlets

    def detail(self) -> str:
        return str(self.fact)


def _unknown_dims(name: str, fact: InferenceFact) -> str:
    fact_text = "" if fact.shape is None else f" ({fact})"
    if fact.rank is None:
        return f"input {name}{fact_text}: the file states no shape; give it, as in {spell('inputs', {name: '1,80,T'})}"
    unknown = [axis for axis, dim in enumerate(fact.dims) if dim is None]
    free_names = iter("TABCDEFGH" * (len(fact.dims) + 1))
    batch = {0: "1"} if 0 in unknown and len(unknown) > 1 else {}
    example = ",".join(
        batch.get(axis) or next(free_names) if dim is None else str(dim) for axis, dim in enumerate(fact.dims)
    )
    axes = ", ".join(map(str, unknown))
    if not axes:
        return f"input {name}{fact_text}: the file states no type; give one, such as f32, after its dims"
    return (
        f"input {name}{fact_text}: the file states no size for axis {axes}; give numbers or names, as in "
        f"{spell('inputs', {name: example})}"
    )


@record(eq=False)
class Constant(InferenceOp):
    """A tensor stored in the file."""

    value: Array

    def translate(self, target: TypedNetwork, wire: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        return [add_constant(target.graph, wire, self.value)]


InferenceGraph: TypeAlias = Graph[InferenceFact, InferenceOp]


def add_model_constant(graph: InferenceGraph, name: str, value: Array) -> OutletId:
    """Add a constant to a graph that is not typed yet."""
    return graph.add(name, Constant(value), (), [InferenceFact.of(TypedFact.of(value))])[0]


@record(frozen=False)
class FileNetwork:
    """A model as its file states it: nodes of the file's format, over one scope of symbols.

    graph      its nodes
    scope      its symbols
    title      the model's name
    metadata   the file's metadata
    claims     the file's claims about wires other than its inputs
    names      its names of output sizes; only for inputs that nothing else determines
    spending   the used part of the file's budget
    variables  the inputs and outputs that the file keeps as variables
    """

    graph: InferenceGraph
    scope: SymbolScope
    title: str = "model"
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    claims: tuple[Claim, ...] = ()
    names: tuple[Claim, ...] = ()
    spending: Spending = field(default_factory=current_spending, repr=False)
    variables: tuple[Variable, ...] = ()

    @property
    def inputs(self) -> dict[str, InferenceFact]:
        """The fact of each input, by name."""
        return {self.graph.label(outlet): self.graph.fact(outlet) for outlet in self.graph.inputs}

    def with_sizes(self, sizes: Mapping[Symbol, int]) -> Self:
        """Return the same model with numbers for some symbols of its inputs, in a separate scope."""
        terms = Terms(SymbolScope(), {symbol: TDim.of(size) for symbol, size in sizes.items()})
        graph = InferenceGraph()
        for node in self.graph.nodes:
            op, facts = node.op, [outlet.fact for outlet in node.outputs]
            if isinstance(op, Input):
                dims = [None if dim is None else terms.dim(dim) for dim in op.fact.dims]
                op = Input(replace(op.fact, shape=None if op.fact.shape is None else tuple(dims)))
                facts = [op.fact]
            graph.add(node.name, op, node.inputs, facts)
        graph.inputs = list(self.graph.inputs)
        graph.set_outputs(self.graph.outputs, self.graph.output_names)
        graph.views = self.graph.views
        terms.assume(self.scope)
        return replace(self, graph=graph, scope=terms.scope)

    def analyse(self) -> TypedNetwork:
        """Derive every type and shape; input shapes that the file does not state are inferred first.

        Warns if shapes in the file are wrong, and if the budget does not suffice for its constants.

        Raises LoadError: an operator is not supported, or a size is not known; FactError: an op refuses its inputs
        """
        with count_spending(self.spending) as spending:
            typed = (self if _are_known(self.inputs.values()) else self.infer())._translate()
        if spending is not self.spending:
            _warn_not_folded(self.title, spending.not_folded.values())
        return typed

    def infer(self) -> Self:
        """Return the same model with all inferred facts of its wires, from inputs, constants and outputs.

        The file's claims about wires are used if some input is still unknown, unless they lead to a contradiction; its
        names of output sizes are used if an input is then still unknown.
        Raises LoadError: facts contradict each other; it names the node and both.
        """
        with count_spending(self.spending):
            return self._infer()

    def _infer(self) -> Self:
        nodes, claims = self._find_needed(), self.claims
        facts = infer_facts(self.graph, self.scope, nodes)
        if claims and not _are_known(facts[outlet] for outlet in self.graph.inputs):
            try:
                facts = infer_facts(self.graph, self.scope, nodes, claims)
            except LoadError as error:
                warn_contradicted(self.title, error)
                claims = ()
        if self.names and not _are_known(facts[outlet] for outlet in self.graph.inputs):
            with suppress(LoadError):  # names that contradict the graph are ignored
                named_facts = infer_facts(self.graph, self.scope, nodes, (*claims, *self.names))
                if all(_is_named(facts[outlet], named_facts[outlet]) for outlet in self.graph.inputs):
                    facts = named_facts
        return replace(self, graph=_refine(self.graph, facts), claims=claims)

    def _translate(self) -> TypedNetwork:
        nodes = self._find_needed()
        self._check_supported(nodes)
        target = TypedNetwork(
            TypedGraph(), self.scope, self.title, dict(self.metadata), variables=self.variables
        )
        typed_outlets: dict[OutletId, OutletId] = {}
        new_ids: dict[int, range] = {}
        for node in nodes:
            before = len(target.graph.nodes)
            try:
                outlets = node.op.translate(
                    target, node.name, [typed_outlets[outlet] for outlet in node.inputs]
                )
            except DimError as error:
                raise LoadError(
                    f"{node.name} ({node.op.name}): {error}; fix that dim with {spell('inputs')}"
                ) from error
            after = len(target.graph.nodes)
            if after > before and (origin := node.op.origin):
                for new in target.graph.nodes[before:]:
                    target.origins[new.name] = origin
            typed_outlets.update(zip(node.wires, outlets))
            new_ids[node.id] = range(before, after)
        target.graph.views = self.graph.views_in(new_ids)
        target.graph.set_outputs(
            [typed_outlets[outlet] for outlet in self.graph.outputs], self.graph.output_names
        )
        facts = {
            wire: target.graph.fact(typed_outlets[wire]) for wire, _ in self.claims if wire in typed_outlets
        }
        warn_refuted(self.title, self.claims, facts, self.graph.label)
        return target

    def _find_needed(self) -> list[Node[InferenceFact, InferenceOp]]:
        """Return the inputs, and the nodes that the outputs need, in the order of the file."""
        node_ids = {*self.graph.order(), *(outlet.node for outlet in self.graph.inputs)}
        return [node for node in self.graph.nodes if node.id in node_ids]

    def _check_supported(self, nodes: Sequence[Node[InferenceFact, InferenceOp]]) -> None:
        missing: dict[str, list[str]] = {}
        advice: dict[str, None] = {}
        for node in nodes:
            if not node.op.is_supported:
                missing.setdefault(node.op.name, []).append(node.name)
                advice[node.op.advice or "pulse.operator adds one, see docs/extend.md"] = None
        if missing:
            names = "; ".join(
                f"{name} ({len(where)} node{'s' if len(where) > 1 else ''}, first {where[0]})"
                for name, where in sorted(missing.items())
            )
            raise LoadError(f"{self.title}: operators that are not supported: {names}; {'; '.join(advice)}")

    def lines(self) -> list[str]:
        """Return the model as text, with the known facts of every wire: inputs, nodes and outputs, one per line."""
        network = self.infer()
        graph = network.graph
        lines = [f"model {self.title}"]
        lines += [f"input {name} {fact}" for name, fact in network.inputs.items()]
        for node in graph.nodes:
            if isinstance(node.op, Input):
                continue
            reads = ", ".join(graph.label(outlet) for outlet in node.inputs)
            facts = "; ".join(str(outlet.fact) for outlet in node.outputs)
            text = f"{node.name} = {node.op.name}({reads}) {node.op.detail()}".rstrip()
            if isinstance(node.op, Constant):
                text = f"{node.name} = Constant"
            lines.append(f"{text} -> {facts}")
        lines += [
            f"output {name} {graph.label(outlet)}" for name, outlet in zip(graph.output_names, graph.outputs)
        ]
        return [printable(line) for line in lines]


def _refine(graph: InferenceGraph, facts: Facts) -> InferenceGraph:
    """Return the graph with other facts; sizes that the inputs state are kept."""
    result = InferenceGraph()
    for node in graph.nodes:
        outlet_facts = [facts.get(wire, graph.fact(wire)) for wire in node.wires]
        op = node.op
        if isinstance(op, Input):
            outlet_facts = [_complete(op.fact, outlet_facts[0])]
            op = Input(outlet_facts[0])
        result.add(node.name, op, node.inputs, outlet_facts)
    result.inputs = list(graph.inputs)
    result.set_outputs(graph.outputs, graph.output_names)
    result.views = graph.views
    return result


def _is_named(before: InferenceFact, fact: InferenceFact) -> bool:
    """Return whether a fact is complete and its new sizes are numbers or symbols, not expressions."""
    old_dims = (*before.dims, *(None,) * (len(fact.dims) - len(before.dims)))
    fresh = [new for old, new in zip(old_dims, fact.dims) if old is None and new is not None]
    has_names = all(dim.is_const or any(dim == TDim.of(symbol) for symbol in dim.symbols) for dim in fresh)
    return fact.to_typed() is not None and has_names


def _complete(input_fact: InferenceFact, inferred: InferenceFact) -> InferenceFact:
    dims = [*input_fact.dims, *(None,) * (len(inferred.dims) - len(input_fact.dims))]
    shape = tuple(new if dim is None else dim for dim, new in zip(dims, inferred.dims))
    return replace(inferred, shape=None if inferred.shape is None else shape)


def _are_known(facts: Iterable[InferenceFact]) -> bool:
    return all(fact.to_typed() is not None for fact in facts)


def _warn_not_folded(title: str, reasons: Collection[str]) -> None:
    """Warn once of constants that are recomputed while running because the budget did not suffice."""
    if reasons:
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        warnings.warn(f"{title}: {next(iter(reasons))}{more}", PulseWarning, stacklevel=3)
