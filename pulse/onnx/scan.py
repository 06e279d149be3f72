"""Bodies that run for every frame."""

from collections.abc import Sequence

from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.onnx.subgraph import Subgraph
from pulse.ops.scan import Course, Scan
from pulse.typed import wire


@onnx_op("Scan")
def scan(node: NodeContext) -> Sequence[OutletId]:
    """From opset 9 on: states first, then tensors that are run through."""
    body = node.attributes.get("body")
    if node.opset < 9 or not isinstance(body, Subgraph):
        raise node.error("only Scan of opset 9 and later is covered; export the model again")
    count = node.integer("num_scan_inputs")
    states = len(node.inputs) - count
    given = [node.input(slot) for slot in range(len(node.inputs))]
    facts = [node.graph.fact(outlet) for outlet in given]
    if not 1 <= count <= len(given) or len(body.inputs) != len(given):
        raise node.error(f"{len(given)} inputs and {count} scan inputs do not fit its body")
    scanned = _courses(node, "scan_input", [fact.rank for fact in facts[states:]])
    captured = {name: node.graph.fact(outlet) for name, outlet in node.captures.items()}
    shapes = [fact.shape for fact in facts[:states]]
    shapes += [
        (*fact.shape[: course.axis], *fact.shape[course.axis + 1 :])
        for fact, course in zip(facts[states:], scanned)
    ]
    inside = {
        name: TypedFact(fact.dtype, shape) for name, fact, shape in zip(body.inputs, facts, shapes)
    } | captured
    model = body.typed(inside, node.scope, f"{node.wire_name}.body")
    made = [model.graph.fact(outlet) for outlet in model.graph.outputs[states:]]
    gathered = _courses(node, "scan_output", [fact.rank + 1 for fact in made])
    open_names = [name for name, fact in captured.items() if fact.value is None]
    op = Scan(
        model, tuple(body.inputs[:states]), tuple(body.inputs[states:]), tuple(open_names), scanned, gathered
    )
    operands = [*given[states:], *given[:states], *(node.captures[name] for name in open_names)]
    outlets = wire(node.graph, node.wire_name, op, operands)
    return [*outlets[len(gathered) :], *outlets[: len(gathered)]]


def _courses(node: NodeContext, what: str, ranks: Sequence[int]) -> tuple[Course, ...]:
    """Axis and direction of each tensor that is run through."""
    zeros = [0] * len(ranks)
    axes, directions = (node.integer_list(f"{what}_{name}", zeros) for name in ("axes", "directions"))
    if not len(axes) == len(directions) == len(ranks):
        raise node.error(f"{what}_axes or {what}_directions do not fit its body")
    return tuple(
        Course(node.axis(axis, rank), direction == 1)
        for axis, direction, rank in zip(axes, directions, ranks)
    )
