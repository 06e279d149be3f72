"""``tract_core_scan``: bodies that run for every piece of their inputs, as ONNX Scan, or once if there is one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from onnx import helper

from pulse.nnef.read.node import GraphReader, NnefValue, NnefWire, NodeReader
from pulse.nnef.read.pulses import StreamTiming
from pulse.nnef.syntax import Fragment
from pulse.onnx.proto import ValueInfoProto
from pulse.onnx.tensors import element_type
from pulse.support.record import record

RunBody = Callable[[dict[str, NnefValue], GraphReader], dict[str, NnefValue]]


@record(eq=False)
class ScanArguments:
    """The arguments of a scan: wires by the name that the body has for them."""

    scanned: dict[str, tuple[NnefWire, int, int]]
    full: dict[str, NnefWire]
    states: dict[str, tuple[NnefWire, str]]
    outputs: list[tuple[str, str, int, int]]


def read_scan(
    node: NodeReader, fragment: Fragment, run: RunBody, timing: StreamTiming | None
) -> NnefWire | tuple[NnefWire, ...]:
    """Return a scan over frames, each of size 1; or one iteration over the whole axis.

    timing  the timing of the file, if the scan is not inside another one
    Raises  LoadError: it takes several frames in each iteration, or its arguments do not fit its body
    """
    arguments = _arguments(node, fragment)
    skip = node.integer("skip")
    if skip:
        arguments = _begin_later(node, arguments, skip)
    iterations = {_count_iterations(wire, axis, chunk) for wire, axis, chunk in arguments.scanned.values()}
    if iterations == {1}:
        return _inline_body(node, arguments, run, timing or StreamTiming())
    if any(abs(chunk) != 1 for _, _, chunk in arguments.scanned.values()):
        raise node.error(
            "it takes several frames in each iteration; one frame, or all of them, are supported"
        )
    if not arguments.scanned:
        raise node.error("it has no input to scan")
    return _loop(node, arguments, run, skip)


def _begin_later(node: NodeReader, arguments: ScanArguments, skip: int) -> ScanArguments:
    """Return a scan that begins at frame ``skip``, as in tract's own pulses.

    Raises LoadError: it does not run forward, frame by frame
    """
    if skip < 0 or any(chunk != 1 for _, _, chunk in arguments.scanned.values()):
        raise node.error(
            f"it skips {skip} iterations, which is supported only if it runs forward, frame by frame"
        )
    later = {
        name: (node.slice_axis(wire, axis, skip, None, f"{name}.later"), axis, chunk)
        for name, (wire, axis, chunk) in arguments.scanned.items()
    }
    return replace(arguments, scanned=later)


def _count_iterations(wire: NnefWire, axis: int, chunk: int) -> int | None:
    size = wire.sizes[axis]
    return None if size is None else -(-size // abs(chunk))


def _tuples(node: NodeReader, name: str, length: int) -> list[Sequence[NnefValue]]:
    value = node.arguments[name]
    values = value if isinstance(value, list) else [value]
    tuples: list[Sequence[NnefValue]] = []
    for entry in values:
        if not isinstance(entry, tuple) or len(entry) != length:
            raise node.error(f"{name} must be a list of {length} values each")
        tuples.append(entry)
    return tuples


def _name(node: NodeReader, value: NnefValue) -> str:
    """Return an identifier as tract writes it: without dots."""
    if not isinstance(value, str):
        raise node.error("names in a body must be strings")
    return value


def _arguments(node: NodeReader, fragment: Fragment) -> ScanArguments:
    names = {parameter.name for parameter in fragment.parameters}
    results = {name for name, _ in fragment.results}

    def inner_name(value: NnefValue, used_names: set[str]) -> str:
        name = _name(node, value)
        inner = name if name in used_names else "".join(c if c.isalnum() or c == "_" else "_" for c in name)
        if inner not in used_names:
            raise node.error(f"the body {fragment.name} has no {name}")
        return inner

    scanned: dict[str, tuple[NnefWire, int, int]] = {}
    for name, value, axis, chunk in _tuples(node, "scan", 4):
        wire = node.as_wire(value, "scan")
        scan_axis, step = node.as_integer(axis, "axis"), node.as_integer(chunk, "step")
        if not 0 <= scan_axis < wire.rank or step == 0:
            raise node.error(f"it iterates over axis {scan_axis} in steps of {step}")
        scanned[inner_name(name, names)] = (wire, scan_axis, step)
    full = {inner_name(name, names): node.as_wire(value, "full") for name, value in _tuples(node, "full", 2)}
    states = {
        inner_name(name, names): (node.as_wire(value, "state"), inner_name(result, results))
        for name, value, result in _tuples(node, "state", 3)
    }
    missing = names - {*scanned, *full, *states}
    if missing:
        raise node.error(f"the body's {sorted(missing)[0]} gets no value")
    outputs = [
        (
            inner_name(name, results),
            _name(node, kind),
            node.as_integer(axis, "axis"),
            node.as_integer(chunk, "step"),
        )
        for name, kind, axis, chunk in _tuples(node, "output", 4)
    ]
    return ScanArguments(scanned, full, states, outputs)


def _result(node: NodeReader, results: dict[str, NnefValue], name: str) -> NnefWire:
    value = results.get(name)
    if not isinstance(value, NnefWire):
        raise node.error(f"its body has no result {name}")
    return value


def _as_result(results: Sequence[NnefWire]) -> NnefWire | tuple[NnefWire, ...]:
    return results[0] if len(results) == 1 else tuple(results)


def _inline_body(
    node: NodeReader, arguments: ScanArguments, run: RunBody, timing: StreamTiming
) -> NnefWire | tuple[NnefWire, ...]:
    """Return a scan of one iteration: its body becomes part of the graph."""
    inside: dict[str, NnefValue] = dict(arguments.full)
    inside |= {name: wire for name, (wire, _, _) in arguments.scanned.items()}
    for name, (initial, _) in arguments.states.items():
        inside[name] = timing.state(node, name, initial) or replace(initial, value=None)
    results = run(inside, node.graph)
    for name, (_, result) in arguments.states.items():
        timing.keep(node, name, _result(node, results, result))
    return _as_result([_result(node, results, name) for name, _, _, _ in arguments.outputs])


def _loop(
    node: NodeReader, arguments: ScanArguments, run: RunBody, skip: int
) -> NnefWire | tuple[NnefWire, ...]:
    graph = node.graph.body()
    body = replace(node, graph=graph)
    inputs, inside = _inputs_of_body(node, body, arguments)
    results_of_body = run(inside, graph)
    results: list[NnefWire] = []
    for index, (_, result) in enumerate(arguments.states.values()):
        wire = _result(node, results_of_body, result)
        results.append(body.add("Identity", [wire], wire.dtype, wire.sizes, f"state{index}"))
    gathered: list[tuple[int, int]] = []
    wires: list[NnefWire] = []
    for index, (name, kind, axis, chunk) in enumerate(arguments.outputs):
        wire = _result(node, results_of_body, name)
        if kind == "full":
            if not 0 <= axis < wire.rank or abs(chunk) != 1 or wire.sizes[axis] not in (1, None):
                raise node.error(f"its output {name} joins parts of axis {axis} that are not single frames")
            wire = body.remove_axes(wire, [axis], f"output{index}")
            gathered.append((axis, int(chunk < 0)))
            wires.append(wire)
    values = [wire for wire, _ in arguments.states.values()] + [
        wire for wire, _, _ in arguments.scanned.values()
    ]
    outputs = [
        helper.make_tensor_value_info(wire.name, element_type(wire.dtype), None)
        for wire in (*results, *wires)
    ]
    body_graph = helper.make_graph(graph.nodes, "body", inputs, outputs)
    target = node.targets[0]
    ends = [node.graph.names.new(f"{target}.last{index}") for index in range(len(results))]
    joined = [node.graph.names.new(f"{target}.joined{index}") for index in range(len(wires))]
    node.graph.nodes.append(
        helper.make_node(
            "Scan",
            [wire.name for wire in values],
            [*ends, *joined],
            target,
            body=body_graph,
            num_scan_inputs=len(arguments.scanned),
            scan_input_axes=[axis for _, axis, _ in arguments.scanned.values()],
            scan_input_directions=[int(chunk < 0) for _, _, chunk in arguments.scanned.values()],
            **_gather_attributes(gathered),
        )
    )
    loop_wires = _outputs(node, arguments, results, wires, ends, joined)
    if skip:
        axes = [axis if kind == "full" else None for _, kind, axis, _ in arguments.outputs]
        loop_wires = [
            wire if axis is None else node.pad_axis(wire, axis, skip, 0, f"later{index}")
            for index, (wire, axis) in enumerate(zip(loop_wires, axes))
        ]
    return _as_result(loop_wires)


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
    for name, (wire, axis, _) in arguments.scanned.items():
        sizes = [size for index, size in enumerate(wire.sizes) if index != axis]
        inputs.append(helper.make_tensor_value_info(names[name], element_type(wire.dtype), sizes))
        frame = NnefWire(names[name], wire.dtype, tuple(sizes))
        inside[name] = body.add_axes(frame, [axis], f"{name}.frame")
    return inputs, inside


def _gather_attributes(gathered: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return ONNX's attributes; a scan may gather nothing."""
    if not gathered:
        return {}
    axes, directions = zip(*gathered)
    return {"scan_output_axes": [*axes], "scan_output_directions": [*directions]}


def _outputs(
    node: NodeReader,
    arguments: ScanArguments,
    results: Sequence[NnefWire],
    wires: Sequence[NnefWire],
    ends: Sequence[str],
    joined: Sequence[str],
) -> list[NnefWire]:
    states = [result for _, result in arguments.states.values()]
    frames = {_count_iterations(wire, axis, chunk) for wire, axis, chunk in arguments.scanned.values()}
    count = next(iter(frames)) if len(frames) == 1 else None
    result_wires: list[NnefWire] = []
    full = 0
    for name, kind, axis, _ in arguments.outputs:
        if kind == "full":
            sizes = [*wires[full].sizes]
            sizes.insert(axis, count)
            result_wires.append(NnefWire(joined[full], wires[full].dtype, tuple(sizes)))
            full += 1
            continue
        if name not in states:
            raise node.error(f"its output {name} is the last value of something that is not a state")
        index = states.index(name)
        result_wires.append(replace(results[index], name=ends[index]))
    return result_wires
