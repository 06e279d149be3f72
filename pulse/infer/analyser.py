"""The analyser: applies the relations of every node until no fact changes."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from pulse.dim import SymbolScope
from pulse.errors import FactError, LoadError
from pulse.graph import Graph, Node, OutletId
from pulse.infer.fact import InferenceFact, meet
from pulse.infer.holes import prepare_holes
from pulse.infer.node_translation import Outcome, apply_outcome, translate_node
from pulse.infer.op import InferenceOp
from pulse.infer.wire_facts import WireFacts
from pulse.support.wording import spell

Facts: TypeAlias = dict[OutletId, InferenceFact]
Statements: TypeAlias = dict[OutletId, list[tuple[int, InferenceFact]]]
"""The facts of wires that nodes state, with the numbers of the nodes."""


def infer_facts(
    graph: Graph[InferenceFact, InferenceOp],
    scope: SymbolScope,
    nodes: Sequence[Node[InferenceFact, InferenceOp]],
    claims: Iterable[tuple[OutletId, InferenceFact]] = (),
) -> Facts:
    """Infer all facts of the wires of some nodes, from the facts of the graph and from claims about wires.

    It runs in rounds: each node with a changed wire states facts, derived from the facts at the start of the round, and
    all statements are merged at the end. So neither the order of the nodes nor a repetition changes the result.
    Raises LoadError: facts contradict each other; it names the node and both.
    """
    with scope.trial():
        prepare_holes(scope)
        return _Analyser(graph, scope, nodes).run(claims)


class _Analyser:
    def __init__(
        self,
        graph: Graph[InferenceFact, InferenceOp],
        scope: SymbolScope,
        nodes: Sequence[Node[InferenceFact, InferenceOp]],
    ) -> None:
        self._graph, self._scope = graph, scope
        self._nodes = {node.id: node for node in nodes}
        self._facts: Facts = {wire: graph.fact(wire) for node in nodes for wire in node.wires}
        self._outcomes: dict[int, tuple[list[InferenceFact], Outcome | None]] = {}

    def run(self, claims: Iterable[tuple[OutletId, InferenceFact]]) -> Facts:
        statements: Statements = {}
        for wire, fact in claims:
            if wire in self._facts:
                statements.setdefault(wire, []).append((wire.node, fact))
        self._merge(statements)
        changed = self._run_translators_in_order()
        while changed:
            changed = self._adjacent_nodes(self._merge(self._collect_statements(changed)))
        return self._facts

    def _run_translators_in_order(self) -> set[int]:
        """Run the translators of nodes with known inputs; return the remaining nodes.

        Nodes come after the nodes that they read, so this alone analyses a model with known inputs.
        """
        changed: set[int] = set()
        contradictions: list[str] = []
        for node_id in self._graph.order():
            try:
                complete = self._run_translator(self._nodes[node_id])
            except FactError as error:
                contradictions.append(_contradiction(self._nodes[node_id], error))
                continue
            if not complete:
                changed.add(node_id)
        _raise_if_any(contradictions)
        return changed

    def _run_translator(self, node: Node[InferenceFact, InferenceOp]) -> bool:
        """Record the result of a node's translator, if its inputs are known; return whether the node is done."""
        outputs, wire_facts = node.wires, self._wire_facts(node)
        if any(wire_facts.fact(wire).to_typed() is None for wire in node.inputs):
            return False
        with self._scope.trial():
            outcome = self._outcome(node, wire_facts)
            if outcome is not None:
                apply_outcome(outcome, wire_facts, outputs)
        self._facts.update((wire, wire_facts.fact(wire)) for wire in outputs)
        return all(wire_facts.fact(wire).to_typed() is not None for wire in outputs)

    def _wire_facts(self, node: Node[InferenceFact, InferenceOp]) -> WireFacts:
        wires = (*node.inputs, *node.wires)
        return WireFacts({wire: self._facts[wire] for wire in wires}, self._graph.label)

    def _collect_statements(self, changed: set[int]) -> Statements:
        """Return the facts that each node adds to the known facts of its wires."""
        statements: Statements = {}
        contradictions: list[str] = []
        for node_id in changed:
            node = self._nodes[node_id]
            try:
                facts = self._refine(node)
            except FactError as error:
                contradictions.append(_contradiction(node, error))
                continue
            for wire, fact in facts.items():
                if fact is not self._facts[wire]:
                    statements.setdefault(wire, []).append((node_id, fact))
        _raise_if_any(contradictions)
        return statements

    def _refine(self, node: Node[InferenceFact, InferenceOp]) -> Facts:
        """Return the facts around a node after all its relations were applied."""
        outputs, wire_facts = node.wires, self._wire_facts(node)
        with self._scope.trial():
            while True:
                wire_facts.changed = False
                for relation in node.op.relations(node.name, node.inputs, outputs, wire_facts):
                    relation.apply(wire_facts)
                outcome = self._outcome(node, wire_facts)
                if outcome is not None:
                    apply_outcome(outcome, wire_facts, outputs)
                if not wire_facts.changed:
                    return wire_facts.facts

    def _outcome(self, node: Node[InferenceFact, InferenceOp], wire_facts: WireFacts) -> Outcome | None:
        """Return the result of a node's translator, which runs again only if the inputs have changed."""
        facts = [wire_facts.fact(wire) for wire in node.inputs]
        last = self._outcomes.get(node.id)
        if last is None or any(new is not old for new, old in zip(facts, last[0])):
            outcome = None
            if node.op.is_supported:
                outcome = translate_node(node.op, node.name, node.inputs, wire_facts, self._scope)
            last = self._outcomes[node.id] = (facts, outcome)
        return last[1]

    def _merge(self, statements: Statements) -> list[OutletId]:
        """Refine the facts with statements; return the wires whose facts changed."""
        refined: list[OutletId] = []
        contradictions: list[str] = []
        for wire, stated in statements.items():
            try:
                better = meet(self._facts[wire], *sorted((fact for _, fact in stated), key=str))
            except FactError as error:
                readers = [node_id for node_id, _ in stated if node_id != wire.node] or [wire.node]
                reason = f"{self._graph.label(wire)}: {error}"
                contradictions.append(
                    min(_contradiction(self._nodes[node_id], reason) for node_id in readers)
                )
                continue
            if better is not self._facts[wire]:
                self._facts[wire] = better
                refined.append(wire)
        _raise_if_any(contradictions)
        return refined

    def _adjacent_nodes(self, wires: Iterable[OutletId]) -> set[int]:
        """Return the nodes that write or read any of these wires."""
        nodes: set[int] = set()
        for wire in wires:
            nodes.add(wire.node)
            nodes.update(inlet.node for inlet in self._graph.outlet(wire).successors)
        return nodes & self._nodes.keys()


def _contradiction(node: Node[InferenceFact, InferenceOp], reason: object) -> str:
    location = f"{node.name} ({', '.join(part for part in (node.op.name, node.op.origin) if part)})"
    return f"{location}: {reason}; give other shapes with {spell('inputs')}, or export the model again"


def _raise_if_any(contradictions: Sequence[str]) -> None:
    """Raise LoadError with one contradiction of a round, the same for every order of the nodes."""
    if contradictions:
        raise LoadError(min(contradictions))
