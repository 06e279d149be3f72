"""Inference through translators: from the inputs of a node to its outputs, and from its outputs to its inputs.

The translators already compute the facts of outputs from facts of inputs. So a node is translated alone, into a
separate graph. If the operator is uniform, each unknown size is a symbol there, a *hole*. The sizes of the outputs are
then expressions of holes, and the conditions of the translator are assumptions about holes. Both are equations; those
with one unknown are solved.
"""

from collections.abc import Sequence
from typing import cast

from pulse.dim import Symbol, SymbolScope, TDim
from pulse.errors import DimError, FactError, LoadError
from pulse.facts import TypedFact, is_symbolic
from pulse.graph import OutletId
from pulse.infer.equation import solve
from pulse.infer.fact import Dim, InferenceFact, make_value
from pulse.infer.holes import Holes, ReplacedSizes
from pulse.infer.op import InferenceOp
from pulse.infer.wire_facts import WireFacts
from pulse.ops.source import Source
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNetwork, add_constant


@record
class Outcome:
    """The result of a translation.

    holes     the positions of the holes of its inputs
    facts     types and shapes of the outputs, in terms of holes
    demands   dims that must be 0
    """

    holes: ReplacedSizes
    facts: list[TypedFact]
    demands: list[TDim]


def translate_node(
    op: InferenceOp, name: str, inputs: Sequence[OutletId], wire_facts: WireFacts, scope: SymbolScope
) -> Outcome | None:
    """Return the outcome of a translation; None if too little is known for it.

    A node that cannot be translated has no outcome here: it is refused, with the reason, when the model is analysed.
    Raises FactError: known inputs do not fit each other.
    """
    facts = [wire_facts.fact(wire) for wire in inputs]
    if not op.uniform and any(fact.to_typed() is None for fact in facts):
        return None
    holes = Holes(scope)
    target = TypedNetwork(TypedGraph(), scope, name)
    sources: dict[tuple[OutletId, bool], OutletId] = {}
    for index, (wire, fact) in enumerate(zip(inputs, facts)):
        is_list = index in op.parts
        if (wire, is_list) not in sources:
            typed = holes.fill(wire, fact, is_list)
            if typed is None:
                return None
            sources[wire, is_list] = _source(target.graph, str(index), typed)
    before = len(scope.premises)
    try:
        outlets = op.translate(
            target, name, [sources[wire, index in op.parts] for index, wire in enumerate(inputs)]
        )
    except FactError:
        if holes.replaced:
            return None
        raise
    except (LoadError, DimError):
        return None
    new_premises = scope.premises[before:]
    demands = [premise for premise in new_premises if -premise in new_premises]
    return Outcome(holes.replaced, [target.graph.fact(outlet) for outlet in outlets], demands)


def _source(graph: TypedGraph, name: str, fact: TypedFact) -> OutletId:
    if fact.value is not None:
        return add_constant(graph, name, fact.value)
    (outlet,) = graph.add(name, Source(fact), (), [fact])
    graph.inputs.append(outlet)
    return outlet


def apply_outcome(outcome: Outcome, wire_facts: WireFacts, outputs: Sequence[OutletId]) -> None:
    """Refine the facts with an outcome and the known facts of the outputs. Raises FactError: they disagree."""
    equations = [(demand, TDim.of(0)) for demand in outcome.demands]
    for outlet, fact in zip(outputs, outcome.facts):
        sizes = InferenceFact(fact.dtype, (None,) * fact.rank)
        wire_facts.refine(outlet, sizes)
        equations += [
            (dim, size) for dim, size in zip(fact.shape, wire_facts.fact(outlet).dims) if size is not None
        ]
    solutions = _solve(equations, outcome.holes)
    for hole, size in solutions.items():
        axis = outcome.holes[hole]
        if axis is not None:
            wire_facts.set_size(axis, size)
    for outlet, fact in zip(outputs, outcome.facts):
        wire_facts.refine(outlet, _substitute(fact, solutions, outcome.holes))


def _solve(equations: Sequence[tuple[TDim, TDim]], holes: ReplacedSizes) -> dict[Symbol, TDim]:
    """Return the holes determined by equations with one unknown each."""
    sizes: dict[Symbol, TDim] = {}
    unsolved = [pair for pair in equations if pair[0].symbols & holes.keys()]
    while True:
        before = len(sizes)
        for expression, size in unsolved:
            unknown = [symbol for symbol in expression.symbols if symbol in holes and symbol not in sizes]
            if len(unknown) == 1:
                solution = solve(expression.subs(sizes), size, unknown[0])
                if solution is not None:
                    sizes[unknown[0]] = solution
        if len(sizes) == before:
            return sizes


def _substitute(fact: TypedFact, sizes: dict[Symbol, TDim], holes: ReplacedSizes) -> InferenceFact:
    """Return a fact with the known holes replaced by their sizes; entries that depend on other holes become unknown."""

    def evaluate(dim: TDim) -> Dim:
        if not dim.symbols & holes.keys():
            return dim
        return None if dim.symbols & (holes.keys() - sizes.keys()) else dim.subs(sizes)

    value = fact.value
    if value is not None and is_symbolic(value) and holes:
        entries = [evaluate(TDim.of(entry)) for entry in cast("list[object]", value.ravel().tolist())]
        value = make_value(entries, value.shape) if any(entry is not None for entry in entries) else None
    return InferenceFact(fact.dtype, tuple(evaluate(dim) for dim in fact.shape), value)
