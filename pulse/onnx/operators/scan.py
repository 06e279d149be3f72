"""Bodies that run for every frame."""

from collections.abc import Sequence

from pulse.dim import TDim
from pulse.facts import TypedFact
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.onnx.subgraph import BodyGraph
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.onnx.write.scan import ScanWriter
from pulse.onnx.write.walk import write_body
from pulse.ops.concat import Concat
from pulse.ops.scan import Scan, ScanAxis, ScanStream
from pulse.ops.shape import AddAxis
from pulse.support.wording import count_of, spell
from pulse.wiring import wire


@onnx_op("Scan")
def scan(node: NodeContext) -> Sequence[OutletId]:
    """Wire a scan: states first, then tensors to run through; before opset 9 for each example of a batch."""
    body = node.attributes.get("body")
    if not isinstance(body, BodyGraph):
        raise node.error("its body is missing; export the model again")
    if node.opset < 9:
        return _scan_batches(node, body)
    inputs = [node.input(slot) for slot in range(len(node.inputs))]
    scanned = _input_scan_axes(node, body, inputs, "scan_input_axes", "scan_input_directions")
    return _run(node, body, inputs, scanned)


def _scan_batches(node: NodeContext, body: BodyGraph) -> list[OutletId]:
    """Return one scan for each example; the lengths of sequences come first, and only whole sequences are supported."""
    if node.has(0):
        raise node.error(
            "lengths of sequences (sequence_lens) are not supported; export with opset 9 or later"
        )
    inputs = [node.input(slot) for slot in range(1, len(node.inputs))]
    batch = node.graph.fact(inputs[0]).shape[0]
    if not batch.is_const or int(batch) < 1:
        raise node.error(f"a batch of {batch} examples; give the number with {spell('inputs')}")
    results: list[Sequence[OutletId]] = []
    for row in range(int(batch)):
        example = node.with_name(f"{node.wire_name}.example{row}")
        parts = [example.entry(outlet, 0, row, f"input{index}") for index, outlet in enumerate(inputs)]
        outlets = _run(example, body, parts, _input_scan_axes(node, body, parts, "", "directions"))
        results.append([example.wire(AddAxis(0), [y], f"output{index}") for index, y in enumerate(outlets)])
    return [
        node.with_name(name).wire(Concat(0), parts) if name else parts[0]
        for name, *parts in zip(node.outputs, *results)
    ]


def _input_scan_axes(
    node: NodeContext, body: BodyGraph, inputs: Sequence[OutletId], axes: str, directions: str
) -> tuple[ScanAxis, ...]:
    """Return how the last of the inputs are run through."""
    count = node.integer("num_scan_inputs")
    if not 1 <= count <= len(inputs) or len(body.inputs) != len(inputs):
        raise node.error(f"{count_of(len(inputs), 'input')} and {count} scan inputs do not fit its body")
    return _scan_axes(
        node, axes, directions, [node.graph.fact(outlet).rank for outlet in inputs[len(inputs) - count :]]
    )


def _run(
    node: NodeContext, body: BodyGraph, inputs: Sequence[OutletId], scanned: tuple[ScanAxis, ...]
) -> list[OutletId]:
    states = len(inputs) - len(scanned)
    facts = [node.graph.fact(outlet) for outlet in inputs]
    captured = {name: node.graph.fact(outlet) for name, outlet in node.captures.items()}
    parts = [TypedFact(fact.dtype, fact.shape) for fact in facts[:states]]
    parts += [fact.without_axis(scan_axis.axis) for fact, scan_axis in zip(facts[states:], scanned)]
    inside = dict(zip(body.inputs, parts)) | captured
    model = body.to_typed(inside, node.scope, f"{node.wire_name}.body")
    result_facts = [model.graph.fact(outlet) for outlet in model.graph.outputs[states:]]
    gathered = _scan_axes(
        node, "scan_output_axes", "scan_output_directions", [fact.rank + 1 for fact in result_facts]
    )
    open_names = [name for name, fact in captured.items() if fact.value is None]
    op = Scan(
        model, tuple(body.inputs[:states]), tuple(body.inputs[states:]), tuple(open_names), scanned, gathered
    )
    operands = [*inputs[states:], *inputs[:states], *(node.captures[name] for name in open_names)]
    outlets = wire(node.graph, node.wire_name, op, operands)
    return [*outlets[len(gathered) :], *outlets[: len(gathered)]]


def _scan_axes(node: NodeContext, axes: str, directions: str, ranks: Sequence[int]) -> tuple[ScanAxis, ...]:
    """Return axis and direction of each tensor that is run through, from two attributes; by default 0 and forwards."""
    lists = [node.integer_list(name, [0] * len(ranks)) for name in (axes, directions)]
    if any(len(numbers) != len(ranks) for numbers in lists):
        raise node.error(f"{axes or 'its axes'} or {directions} do not fit its body")
    return tuple(
        ScanAxis(node.axis(axis, rank), direction == 1) for axis, direction, rank in zip(*lists, ranks)
    )


@writes(Scan)
def write_scan(w: NodeWriter, op: Scan) -> list[str]:
    """Write a scan over all frames of its inputs; the states start again in each call."""
    first, last = len(op.scanned), len(op.scanned) + len(op.states)
    results = _emit_scan(w, op, w.inputs[first:last], 0, None)
    return [*results[len(op.states) :], *results[: len(op.states)]]


@writes(ScanStream)
def write_scan_stream(w: NodeWriter, op: ScanStream) -> list[str]:
    """Feed the states back; only frames of the stream touch them."""
    first = len(op.op.scanned)
    begin: list[str] = []
    states: list[str] = []
    for index, (name, zeros) in enumerate(zip(op.op.states, op.initial_state())):
        slot = first + index
        value = w.known_value(slot) if op.reload else None
        state = w.graph.add_state(name, zeros if value is None else value)
        states.append(state)
        if op.reload and value is None:
            state = w.emit("Where", [w.clock.emit_has_reached(1), state, w.inputs[slot]], f"{name}.begin")
        begin.append(state)
    ends = any(w.output_is_used[len(op.op.gathered) :])
    results = _emit_scan(w, op.op, begin, op.offset, op.length if ends else None)
    after, frames = results[: len(states)], results[len(states) :]
    for state, value in zip(states, after):
        w.graph.keep(state, value)
    return [*frames, *after]


def _emit_scan(w: NodeWriter, op: Scan, begin: Sequence[str], offset: int, length: TDim | None) -> list[str]:
    """Return the states after the pulse, then the gathered frames; one frame needs no Scan around it."""
    if w.sizes()[op.scanned[0].axis] == 1:
        return _inline_body(w, op, begin, offset, length)
    writer = ScanWriter.begin(w)
    inside = dict(zip(op.captured, w.inputs[len(op.scanned) + len(op.states) :]))
    results = [op.body.graph.fact(outlet) for outlet in op.body.graph.outputs]
    for name, value, fact in zip(op.states, begin, results):
        inside[name] = writer.add_state(value, name, fact.dtype, fact.sizes)
    for slot, (name, scan_axis) in enumerate(zip(op.frames, op.scanned)):
        frame = w.input_facts[slot].without_axis(scan_axis.axis)
        inside[name] = writer.add_frame(w.inputs[slot], name, frame.dtype, frame.sizes, scan_axis)
    valid = writer.add_validity(w.sizes()[op.scanned[0].axis], offset, length)
    values = write_body(writer.inner, op.body.graph, inside)
    count = len(op.states)
    for name, value, fact in zip(op.states, values, results):
        writer.keep(valid, value, inside[name], name, fact.dtype, fact.sizes)
    gathered = zip(values[count:], results[count:], op.gathered)
    for index, (value, fact, scan_axis) in enumerate(gathered):
        writer.add_scan_output(value, f"frame{index}", fact.dtype, fact.sizes, scan_axis)
    return writer.finish(
        [*(f"{name}.last" for name in op.states), *(f"frames{n}" for n in range(len(op.gathered)))]
    )


def _inline_body(
    w: NodeWriter, op: Scan, begin: Sequence[str], offset: int, length: TDim | None
) -> list[str]:
    """Write the nodes of the body among those around it."""
    inside = dict(zip(op.captured, w.inputs[len(op.scanned) + len(op.states) :]))
    inside |= dict(zip(op.states, begin))
    for slot, (name, scan_axis) in enumerate(zip(op.frames, op.scanned)):
        inside[name] = w.remove_axis(w.inputs[slot], scan_axis.axis, name)
    values = write_body(w, op.body.graph, inside)
    after, frames = values[: len(op.states)], values[len(op.states) :]
    valid = None
    if offset > 0 or length is not None:
        valid = w.clock.emit_positions_inside(w.clock.position(1, -offset), offset > 0, length)
    if valid is not None:
        updates = zip(op.states, after, begin)
        after = [w.emit("Where", [valid, new, old], f"{name}.updated") for name, new, old in updates]
    gathered = zip(frames, op.gathered)
    return [
        *after,
        *(w.add_axis(value, scan_axis.axis, f"frames{n}") for n, (value, scan_axis) in enumerate(gathered)),
    ]
