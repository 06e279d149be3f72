"""The number of iterations of a loop with a counting variable, for every format."""

from collections.abc import Mapping
from functools import reduce

from pulse.dim import TDim, ceil_div
from pulse.facts import Array, is_symbolic
from pulse.graph import OutletId
from pulse.infer.unrolling import NotUnrolledError
from pulse.ops.dims import simplest_max, simplest_min
from pulse.ops.elementwise import Cast, Elementwise
from pulse.support.record import record
from pulse.typed import TypedGraph, TypedNetwork, known_value


@record
class Counter:
    """A variable that increases by the same step in each iteration."""

    start: TDim
    step: int


def counters(
    body: TypedNetwork, sources: Mapping[OutletId, int], values: Mapping[int, Array | None]
) -> dict[int, Counter]:
    """Return the variables of a loop that count.

    sources  inputs of the body -> the numbers of their variables
    values   number of a variable -> its first value, if known
    """
    counters_by_index: dict[int, Counter] = {}
    for source, index in sources.items():
        producer = body.graph.node(body.graph.outputs[index])
        value = values[index]
        if (
            value is None
            or value.size != 1
            or not isinstance(producer.op, Elementwise)
            or producer.op.kind != "add"
        ):
            continue
        for operand, other in (producer.inputs, producer.inputs[::-1]):
            step = known_value(body.graph, other)
            if (
                operand == source
                and step is not None
                and step.size == 1
                and step.dtype.kind in "iu"
                and step != 0
            ):
                counters_by_index[index] = Counter(TDim.of(value.reshape(()).item()), int(step.reshape(())))
    return counters_by_index


@record
class LimitComparison:
    """A part of a condition: a variable is below a limit, or at most the limit.

    shift  1 if the variable may equal the limit, else 0
    """

    variable: int
    limit: OutletId
    shift: int


def iteration_count(
    condition: TypedNetwork, sources: Mapping[OutletId, int], counting: Mapping[int, Counter]
) -> TDim:
    """Return how often a loop runs its body before its condition is false.

    Raises NotUnrolledError: the condition is not that counters are below limits
    """
    counts: list[TDim] = []
    for part in comparisons(condition, condition.graph.outputs[0], sources):
        if part is None:
            counts.append(TDim.of(0))
            continue
        counter, limit = counting.get(part.variable), condition.graph.fact(part.limit).value
        if counter is None or counter.step < 1:
            raise NotUnrolledError
        if limit is None or limit.size != 1 or not (is_symbolic(limit) or limit.dtype.kind in "iu"):
            raise NotUnrolledError
        distance = TDim.of(limit.reshape(()).item()) + part.shift - counter.start
        counts.append(ceil_div(distance, counter.step))
    if not counts:
        raise NotUnrolledError
    return simplest_max(reduce(simplest_min, counts), TDim.of(0))


def comparisons(
    model: TypedNetwork, outlet: OutletId, sources: Mapping[OutletId, int]
) -> list[LimitComparison | None]:
    """Return the comparisons that are all true if an outlet is; None stands for one that is never true.

    Raises NotUnrolledError: the outlet is computed in another way
    """
    value = known_value(model.graph, outlet)
    if value is not None:
        return [] if bool(value.reshape(())) else [None]
    producer = model.graph.node(outlet)
    if not isinstance(producer.op, Elementwise):
        raise NotUnrolledError
    if producer.op.kind == "and":
        return [part for operand in producer.inputs for part in comparisons(model, operand, sources)]
    left, right = producer.inputs if len(producer.inputs) == 2 else (outlet, outlet)
    function = producer.op.kind
    if function in ("greater", "greater_equal"):
        left, right = right, left
        function = {"greater": "less", "greater_equal": "less_equal"}[function]
    variable = sources.get(uncast(model, left))
    if function not in ("less", "less_equal") or variable is None:
        raise NotUnrolledError
    return [LimitComparison(variable, right, int(function == "less_equal"))]


def uncast(model: TypedNetwork, outlet: OutletId) -> OutletId:
    """Return a wire of integers before its cast to another integer type."""
    producer = model.graph.node(outlet)
    while isinstance(producer.op, Cast) and producer.op.dtype.kind in "iu":
        outlet = producer.inputs[0]
        producer = model.graph.node(outlet)
    return outlet


def shift_of(graph: TypedGraph, outlet: OutletId) -> tuple[OutletId, int]:
    """Return the wire to which a wire of one integer adds a constant, and the constant; it and 0 if it adds none."""
    producer, total = graph.node(outlet), 0
    while isinstance(producer.op, Elementwise) and producer.op.kind in ("add", "sub"):
        left, right = producer.inputs
        if known_value(graph, right) is None and producer.op.kind == "add":
            left, right = right, left
        constant = known_value(graph, right)
        if constant is None or constant.size != 1 or constant.dtype.kind not in "iu":
            break
        number = int(constant.reshape(()))
        total += number if producer.op.kind == "add" else -number
        outlet, producer = left, graph.node(left)
    return outlet, total


def index_counter(
    body: TypedNetwork, outlet: OutletId, sources: Mapping[OutletId, int], counting: Mapping[int, Counter]
) -> Counter | None:
    """Return what an index of a loop's body counts: a counter, times and plus constants; None for others.

    sources   inputs of the body -> the numbers of their variables
    counting  number of a variable -> its counter
    """
    base, shift = shift_of(body.graph, uncast(body, outlet))
    counter, factor = counting.get(sources.get(uncast(body, base), -1)), 1
    producer = body.graph.node(base)
    if counter is None and isinstance(producer.op, Elementwise) and producer.op.kind == "mul":
        for operand, other in (producer.inputs, producer.inputs[::-1]):
            value = known_value(body.graph, other)
            if value is not None and value.size == 1 and value.dtype.kind in "iu":
                counter, factor = index_counter(body, operand, sources, counting), int(value.reshape(()))
                break
    return None if counter is None else Counter(counter.start * factor + shift, counter.step * factor)
