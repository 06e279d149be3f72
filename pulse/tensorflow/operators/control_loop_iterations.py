"""The number of iterations of a loop with a counting variable."""

from collections.abc import Mapping

from pulse.dim import TDim, ceil_div
from pulse.facts import Array, is_symbolic
from pulse.graph import OutletId
from pulse.infer.slices import at_least, at_most
from pulse.infer.unrolling import NotUnrolledError
from pulse.ops.elementwise import Elementwise
from pulse.support.record import record
from pulse.tensorflow.operators.control_loop_parts import uncast
from pulse.typed import TypedNetwork, known_value


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


def iteration_count(
    condition: TypedNetwork, sources: Mapping[OutletId, int], counting: Mapping[int, Counter]
) -> TDim:
    """Return how often a loop runs its body before its condition is false.

    Raises NotUnrolledError: the condition is not that counters are below limits
    """
    limits = _limits(condition, condition.graph.outputs[0], sources, counting)
    if not limits:
        raise NotUnrolledError
    count = limits[0]
    for other in limits[1:]:
        count = at_most(count, other)
    return at_least(count, TDim.of(0))


def _limits(
    model: TypedNetwork, outlet: OutletId, sources: Mapping[OutletId, int], counting: Mapping[int, Counter]
) -> list[TDim]:
    value = known_value(model.graph, outlet)
    if value is not None:
        if bool(value.reshape(())):
            return []
        return [TDim.of(0)]
    producer = model.graph.node(outlet)
    if not isinstance(producer.op, Elementwise):
        raise NotUnrolledError
    if producer.op.kind == "and":
        return [
            limit for endpoint in producer.inputs for limit in _limits(model, endpoint, sources, counting)
        ]
    left, right = producer.inputs if len(producer.inputs) == 2 else (outlet, outlet)
    function = producer.op.kind
    if function in ("greater", "greater_equal"):
        left, right = right, left
        function = {"greater": "less", "greater_equal": "less_equal"}[function]
    counter = counting.get(sources.get(uncast(model, left), -1))
    limit = model.graph.fact(right).value
    if function not in ("less", "less_equal") or counter is None or counter.step < 1:
        raise NotUnrolledError
    if limit is None or limit.size != 1 or not (is_symbolic(limit) or limit.dtype.kind in "iu"):
        raise NotUnrolledError
    far = TDim.of(limit.reshape(()).item()) + (function == "less_equal") - counter.start
    return [ceil_div(far, counter.step)]
