"""Bodies that run for every frame."""

from dataclasses import replace

from onnx import GraphProto

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter
from pulse.nnef.write.scan import ScanOperationWriter
from pulse.nnef.write.walk import write_nodes


@writes("Scan")
def write_scan(w: OperationWriter) -> list[Name]:
    """Write a scan: every run begins with the initial states; tract keeps the time axis in the body."""
    body: GraphProto = w.attributes["body"]
    count = int(w.attributes["num_scan_inputs"])
    states = len(w.inputs) - count
    outputs = len(body.output) - states
    axes = [int(axis) for axis in w.attribute("scan_input_axes", [0] * count)]
    steps = [-1 if back else 1 for back in w.attribute("scan_input_directions", [0] * count)]
    scan = ScanOperationWriter.begin(w.scope, f"{w.name}.body")
    inner = replace(w, scope=scan.inner)
    for slot, (value, result) in enumerate(zip(body.input[:states], body.output)):
        scan.add_state(value.name, w.x(slot), result.name)
    for slot, (value, axis, step) in enumerate(zip(body.input[states:], axes, steps), states):
        axis %= w.rank(slot)
        piece = scan.add_slice(f"{value.name}.piece", w.x(slot), axis, step)
        scan.inner.wire_of_name[value.name] = inner.remove_axes(piece, [axis], value.name)
    write_nodes(scan.inner, body.node)
    for result in body.output[:states]:
        scan.add_result(result.name, None, 1)
    axes = [int(axis) for axis in w.attribute("scan_output_axes", [0] * outputs)]
    steps = [-1 if back else 1 for back in w.attribute("scan_output_directions", [0] * outputs)]
    for slot, (result, axis, step) in enumerate(zip(body.output[states:], axes, steps), states):
        axis %= w.output_rank(slot) if w.has_output(slot) else len(scan.inner.fact(result.name)[1]) + 1
        piece = f"{result.name}.piece"
        scan.inner.wire_of_name[piece] = inner.add_axes(scan.inner.wire(result.name), [axis], piece)
        scan.add_result(piece, axis, step)
    targets = [
        w.scope.shared.identifier(w.outputs[slot] if w.has_output(slot) else f"{w.name}.unused{slot}")
        for slot in range(len(body.output))
    ]
    scan.finish(targets, resets=True)
    return [Name(target) for target in targets]
