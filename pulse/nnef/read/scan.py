"""``tract_core_scan``: bodies that run for every piece of their inputs, as ONNX Scan, or once if there is one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from onnx import helper

from pulse.nnef.read.node import GraphReader, NnefValue, NnefWire, NodeReader
from pulse.nnef.read.pulses import StreamTiming
from pulse.nnef.syntax import Fragment
from pulse.onnx.proto import GraphProto, ValueInfoProto
from pulse.onnx.tensors import element_type
from pulse.support.record import record
from pulse.support.wording import count_of

RunBody = Callable[[dict[str, NnefValue], GraphReader], dict[str, NnefValue]]


@record(eq=False)
class ScannedInput:
    """A wire of which each iteration gets a part.

    wire   the whole wire
    axis   the axis over which the scan iterates
    chunk  the frames of a part; negative: from the end on
    """

    wire: NnefWire
    axis: int
    chunk: int

    def count_iterations(self) -> int | None:
        """Return the number of parts; None if the size of the axis is not known."""
        size = self.wire.sizes[self.axis]
        return None if size is None else -(-size // abs(self.chunk))


@record
class ScanOutput:
    """A result of the body that the scan outputs.

    name   its name in the body
    kind   ``full``: the parts of all iterations, joined; else the value after the last one
    axis   the axis along which parts are joined
    chunk  the frames of a part; negative: the first iteration returns the end
    """

    name: str
    kind: str
    axis: int
    chunk: int


@record(eq=False)
class ScanArguments:
    """The arguments of a scan, by the name that the body has for them.

    scanned  wires of which each iteration gets a part
    full     wires that each iteration gets whole
    states   the first value of each state, and the name of the result that is its next one
    outputs  what the scan outputs, in order
    """

    scanned: dict[str, ScannedInput]
    full: dict[str, NnefWire]
    states: dict[str, tuple[NnefWire, str]]
    outputs: list[ScanOutput]


def read_scan(
    node: NodeReader, fragment: Fragment, run: RunBody, timing: StreamTiming | None
) -> NnefWire | tuple[NnefWire, ...]:
    """Return a scan over frames, each of size 1; or one iteration over the whole axis.

    timing  the timing of the file, if the scan is not inside another one
    Raises  LoadError: it takes several frames in each iteration, or its arguments do not fit its body
    """
    arguments = _read_arguments(node, fragment)
    skip = node.integer("skip")
    if skip:
        arguments = _begin_later(node, arguments, skip)
    iterations = {scanned.count_iterations() for scanned in arguments.scanned.values()}
    if iterations == {1}:
        return _inline_body(node, arguments, run, timing or StreamTiming())
    if any(abs(scanned.chunk) != 1 for scanned in arguments.scanned.values()):
        raise node.error(
            "it takes several frames in each iteration; one frame, or all of them, are supported"
        )
    if not arguments.scanned:
        raise node.error("it has no input to scan")
    return _read_loop(node, arguments, run, skip)


def _begin_later(node: NodeReader, arguments: ScanArguments, skip: int) -> ScanArguments:
    """Return a scan that begins at frame ``skip``, as in tract's own pulses.

    Raises LoadError: it does not run forward, frame by frame
    """
    if skip < 0 or any(scanned.chunk != 1 for scanned in arguments.scanned.values()):
        raise node.error(
            f"it skips {count_of(skip, 'iteration')}, which is supported only if it runs forward, frame by frame"
        )
    later = {
        name: replace(scanned, wire=node.slice_axis(scanned.wire, scanned.axis, skip, None, f"{name}.later"))
        for name, scanned in arguments.scanned.items()
    }
    return replace(arguments, scanned=later)


def _tuples(node: NodeReader, name: str, length: int) -> list[Sequence[NnefValue]]:
    value = node.arguments[name]
    values = value if isinstance(value, list) else [value]
    tuples: list[Sequence[NnefValue]] = []
    for entry in values:
        if not isinstance(entry, tuple) or len(entry) != length:
            raise node.error(f"{name} must be a list of {count_of(length, 'value')} each")
        tuples.append(entry)
    return tuples


def _require_name(node: NodeReader, value: NnefValue) -> str:
    """Return an identifier as tract writes it: without dots."""
    if not isinstance(value, str):
        raise node.error("names in a body must be strings")
    return value


def _read_arguments(node: NodeReader, fragment: Fragment) -> ScanArguments:
    names = {parameter.name for parameter in fragment.parameters}
    results = {name for name, _ in fragment.results}

    def inner_name(value: NnefValue, used_names: set[str]) -> str:
        name = _require_name(node, value)
        inner = name if name in used_names else "".join(c if c.isalnum() or c == "_" else "_" for c in name)
        if inner not in used_names:
            raise node.error(f"the body {fragment.name} has no {name}")
        return inner

    scanned: dict[str, ScannedInput] = {}
    for name, value, axis, chunk in _tuples(node, "scan", 4):
        wire = node.as_wire(value, "scan")
        scan_axis, step = node.as_integer(axis, "axis"), node.as_integer(chunk, "step")
        if not 0 <= scan_axis < wire.rank or step == 0:
            raise node.error(f"it iterates over axis {scan_axis} in steps of {step}")
        scanned[inner_name(name, names)] = ScannedInput(wire, scan_axis, step)
    full = {inner_name(name, names): node.as_wire(value, "full") for name, value in _tuples(node, "full", 2)}
    states = {
        inner_name(name, names): (node.as_wire(value, "state"), inner_name(result, results))
        for name, value, result in _tuples(node, "state", 3)
    }
    missing = names - {*scanned, *full, *states}
    if missing:
        raise node.error(f"the body's {sorted(missing)[0]} gets no value")
    outputs = [
        ScanOutput(
            inner_name(name, results),
            _require_name(node, kind),
            node.as_integer(axis, "axis"),
            node.as_integer(chunk, "step"),
        )
        for name, kind, axis, chunk in _tuples(node, "output", 4)
    ]
    return ScanArguments(scanned, full, states, outputs)


def _body_result(node: NodeReader, results: dict[str, NnefValue], name: str) -> NnefWire:
    value = results.get(name)
    if not isinstance(value, NnefWire):
        raise node.error(f"its body has no result {name}")
    return value


def _unpack_single(results: Sequence[NnefWire]) -> NnefWire | tuple[NnefWire, ...]:
    return results[0] if len(results) == 1 else tuple(results)


def _inline_body(
    node: NodeReader, arguments: ScanArguments, run: RunBody, timing: StreamTiming
) -> NnefWire | tuple[NnefWire, ...]:
    """Return a scan of one iteration: its body becomes part of the graph."""
    inside: dict[str, NnefValue] = dict(arguments.full)
    inside |= {name: scanned.wire for name, scanned in arguments.scanned.items()}
    for name, (initial, _) in arguments.states.items():
        inside[name] = timing.state(node, name, initial) or replace(initial, value=None)
    results = run(inside, node.graph)
    for name, (_, result) in arguments.states.items():
        timing.keep(node, name, _body_result(node, results, result))
    return _unpack_single([_body_result(node, results, output.name) for output in arguments.outputs])


def _read_loop(
    node: NodeReader, arguments: ScanArguments, run: RunBody, skip: int
) -> NnefWire | tuple[NnefWire, ...]:
    """Return a scan over single frames, as a node of ONNX."""
    graph = node.graph.body()
    body = replace(node, graph=graph)
    inputs, inside = _inputs_of_body(node, body, arguments)
    results_of_body = run(inside, graph)
    results: list[NnefWire] = []
    for index, (_, result) in enumerate(arguments.states.values()):
        wire = _body_result(node, results_of_body, result)
        results.append(body.add("Identity", [wire], wire.dtype, wire.sizes, f"state{index}"))
    wires = _frames_of_outputs(node, body, arguments, results_of_body)
    outputs = [
        helper.make_tensor_value_info(wire.name, element_type(wire.dtype), None)
        for wire in (*results, *wires)
    ]
    body_graph = helper.make_graph(graph.nodes, "body", inputs, outputs)
    loop_wires = _wire_scan(node, arguments, body_graph, results, wires)
    if skip:
        axes = [output.axis if output.kind == "full" else None for output in arguments.outputs]
        loop_wires = [
            wire if axis is None else node.pad_axis(wire, axis, skip, 0, f"later{index}")
            for index, (wire, axis) in enumerate(zip(loop_wires, axes))
        ]
    return _unpack_single(loop_wires)


def _frames_of_outputs(
    node: NodeReader, body: NodeReader, arguments: ScanArguments, results_of_body: dict[str, NnefValue]
) -> list[NnefWire]:
    """Return the frame of each output that is joined, without its axis."""
    frames: list[NnefWire] = []
    for index, output in enumerate(arguments.outputs):
        wire = _body_result(node, results_of_body, output.name)
        if output.kind != "full":
            continue
        axis = output.axis
        if not 0 <= axis < wire.rank or abs(output.chunk) != 1 or wire.sizes[axis] not in (1, None):
            raise node.error(
                f"its output {output.name} joins parts of axis {axis} that are not single frames"
            )
        frames.append(body.remove_axes(wire, [axis], f"output{index}"))
    return frames


def _wire_scan(
    node: NodeReader,
    arguments: ScanArguments,
    body: GraphProto,
    results: Sequence[NnefWire],
    frames: Sequence[NnefWire],
) -> list[NnefWire]:
    """Add the node of ONNX; return its outputs in the order of the arguments.

    results  the next value of each state in the body
    frames   the frame of each output that is joined in the body
    """
    target, scanned = node.targets[0], arguments.scanned.values()
    values = [wire for wire, _ in arguments.states.values()] + [
        scanned_input.wire for scanned_input in scanned
    ]
    ends = [node.graph.names.new(f"{target}.last{index}") for index in range(len(results))]
    joined = [node.graph.names.new(f"{target}.joined{index}") for index in range(len(frames))]
    node.graph.nodes.append(
        helper.make_node(
            "Scan",
            [wire.name for wire in values],
            [*ends, *joined],
            target,
            body=body,
            num_scan_inputs=len(arguments.scanned),
            scan_input_axes=[scanned_input.axis for scanned_input in scanned],
            scan_input_directions=[int(scanned_input.chunk < 0) for scanned_input in scanned],
            **_gather_attributes([output for output in arguments.outputs if output.kind == "full"]),
        )
    )
    return _output_wires(node, arguments, results, frames, ends, joined)


def _inputs_of_body(
    node: NodeReader, body: NodeReader, arguments: ScanArguments
) -> tuple[list[ValueInfoProto], dict[str, NnefValue]]:
    """Declare the inputs of a scan's body, states first; return them, and what the fragment finds under its names."""
    names = {
        name: body.graph.names.new(f"{node.targets[0]}.{name}")
        for name in (*arguments.states, *arguments.scanned)
    }
    inputs: list[ValueInfoProto] = []
    inside: dict[str, NnefValue] = dict(arguments.full)
    for name, (initial, _) in arguments.states.items():
        inputs.append(
            helper.make_tensor_value_info(names[name], element_type(initial.dtype), [*initial.sizes])
        )
        inside[name] = replace(initial, name=names[name], value=None)
    for name, scanned in arguments.scanned.items():
        wire, axis = scanned.wire, scanned.axis
        sizes = [size for index, size in enumerate(wire.sizes) if index != axis]
        inputs.append(helper.make_tensor_value_info(names[name], element_type(wire.dtype), sizes))
        frame = NnefWire(names[name], wire.dtype, tuple(sizes))
        inside[name] = body.add_axes(frame, [axis], f"{name}.frame")
    return inputs, inside


def _gather_attributes(joined_outputs: Sequence[ScanOutput]) -> dict[str, Any]:
    """Return ONNX's attributes; a scan may join nothing."""
    if not joined_outputs:
        return {}
    return {
        "scan_output_axes": [output.axis for output in joined_outputs],
        "scan_output_directions": [int(output.chunk < 0) for output in joined_outputs],
    }


def _output_wires(
    node: NodeReader,
    arguments: ScanArguments,
    results: Sequence[NnefWire],
    frames: Sequence[NnefWire],
    ends: Sequence[str],
    joined: Sequence[str],
) -> list[NnefWire]:
    """Return the outputs of a scan in the order of the arguments.

    ends, joined  the names of the last values of states, and of joined frames
    """
    states = [result for _, result in arguments.states.values()]
    iterations = {scanned.count_iterations() for scanned in arguments.scanned.values()}
    count = next(iter(iterations)) if len(iterations) == 1 else None
    result_wires: list[NnefWire] = []
    full = 0
    for output in arguments.outputs:
        if output.kind == "full":
            sizes = [*frames[full].sizes]
            sizes.insert(output.axis, count)
            result_wires.append(NnefWire(joined[full], frames[full].dtype, tuple(sizes)))
            full += 1
            continue
        if output.name not in states:
            raise node.error(f"its output {output.name} is the last value of something that is not a state")
        index = states.index(output.name)
        result_wires.append(replace(results[index], name=ends[index]))
    return result_wires
