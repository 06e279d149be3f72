"""Bodies that run for every frame."""

from collections.abc import Sequence

from pulse.dim import TDim
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.onnx.subgraph import Subgraph
from pulse.ops.concat import Concat
from pulse.ops.scan import Course, Scan
from pulse.ops.shape import AddAxis, RemoveAxis
from pulse.ops.slice import Slice
from pulse.wiring import wire
from pulse.wording import spell


@onnx_op("Scan")
def scan(node: NodeContext) -> Sequence[OutletId]:
    """States first, then tensors that are run through; before opset 9 for each example of a batch."""
    body = node.attributes.get("body")
    if not isinstance(body, Subgraph):
        raise node.error("its body is missing; export the model again")
    if node.opset < 9:
        return _batched(node, body)
    given = [node.input(slot) for slot in range(len(node.inputs))]
    scanned = _scanned(node, body, given, "scan_input_axes", "scan_input_directions")
    return _run(node, body, given, scanned)


def _batched(node: NodeContext, body: Subgraph) -> list[OutletId]:
    """One scan for each example; the lengths of sequences come first, and only whole sequences are covered."""
    if node.has(0):
        raise node.error("lengths of sequences (sequence_lens) are not covered; export with opset 9 or later")
    given = [node.input(slot) for slot in range(1, len(node.inputs))]
    batch = node.graph.fact(given[0]).shape[0]
    if not batch.is_const or int(batch) < 1:
        raise node.error(f"a batch of {batch} examples; give the number with {spell('inputs')}")
    results: list[Sequence[OutletId]] = []
    for number in range(int(batch)):
        example = node.named(f"{node.wire_name}.example{number}")
        parts: list[OutletId] = []
        for place, outlet in enumerate(given):
            cut = Slice(0, TDim.of(number), TDim.of(number + 1))
            part = example.wire(cut, [outlet], f"part{place}")
            parts.append(example.wire(RemoveAxis(0), [part], f"input{place}"))
        made = _run(example, body, parts, _scanned(node, body, parts, "", "directions"))
        results.append([example.wire(AddAxis(0), [y], f"output{place}") for place, y in enumerate(made)])
    return [
        node.named(name).wire(Concat(0), parts) if name else parts[0]
        for name, *parts in zip(node.outputs, *results)
    ]


def _scanned(
    node: NodeContext, body: Subgraph, given: Sequence[OutletId], axes: str, directions: str
) -> tuple[Course, ...]:
    """How the last of the inputs are run through."""
    count = node.integer("num_scan_inputs")
    if not 1 <= count <= len(given) or len(body.inputs) != len(given):
        raise node.error(f"{len(given)} inputs and {count} scan inputs do not fit its body")
    return _courses(
        node, axes, directions, [node.graph.fact(outlet).rank for outlet in given[len(given) - count :]]
    )


def _run(
    node: NodeContext, body: Subgraph, given: Sequence[OutletId], scanned: tuple[Course, ...]
) -> list[OutletId]:
    states = len(given) - len(scanned)
    facts = [node.graph.fact(outlet) for outlet in given]
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
    gathered = _courses(node, "scan_output_axes", "scan_output_directions", [fact.rank + 1 for fact in made])
    open_names = [name for name, fact in captured.items() if fact.value is None]
    op = Scan(
        model, tuple(body.inputs[:states]), tuple(body.inputs[states:]), tuple(open_names), scanned, gathered
    )
    operands = [*given[states:], *given[:states], *(node.captures[name] for name in open_names)]
    outlets = wire(node.graph, node.wire_name, op, operands)
    return [*outlets[len(gathered) :], *outlets[: len(gathered)]]


def _courses(node: NodeContext, axes: str, directions: str, ranks: Sequence[int]) -> tuple[Course, ...]:
    """Axis and direction of each tensor that is run through, from two attributes; axis 0 and forwards by default."""
    listed = [node.integer_list(name, [0] * len(ranks)) for name in (axes, directions)]
    if any(len(numbers) != len(ranks) for numbers in listed):
        raise node.error(f"{axes or 'its axes'} or {directions} do not fit its body")
    return tuple(
        Course(node.axis(axis, rank), direction == 1) for axis, direction, rank in zip(*listed, ranks)
    )
