"""The nodes of a graph, each written by the function of its op."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from pulse.errors import DimError, WriteError
from pulse.facts import TypedFact
from pulse.graph import Graph, OutletId
from pulse.onnx.write.clock import ClockWriter
from pulse.onnx.write.graph import GraphWriter
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import WRITERS
from pulse.ops.op import Op
from pulse.ops.source import Const, Source
from pulse.support.file_bytes import MAX_MODEL_BYTES
from pulse.support.wording import spell

F = TypeVar("F", bound=TypedFact)


def check_writers(graph: Graph[F, Op], order: Iterable[int], title: str) -> None:
    """Raise WriteError, listing every node that has no writer."""
    missing = [f"{name} ({op})" for name, op in _unwritten(graph, order)]
    if missing:
        raise WriteError(
            f"{title}: ops that cannot be written as ONNX: {', '.join(missing)}; keep them out of the streaming part, "
            "or register a function with pulse.onnx.write.registry.writes"
        )


def check_size(graph: Graph[F, Op], order: Iterable[int], title: str) -> None:
    """Raise WriteError if the constants alone do not fit into an ONNX file."""
    constants = (op.value for node_id in order if isinstance(op := graph.nodes[node_id].op, Const))
    size = sum(value.nbytes for value in constants)
    if size > MAX_MODEL_BYTES:
        raise WriteError(
            f"{title}: its weights take {size:,} bytes, and an ONNX file, by which NNEF is written too, has at "
            f"most {MAX_MODEL_BYTES:,}; write a program file (pulse compile, Program.save)"
        )


def _unwritten(graph: Graph[F, Op], order: Iterable[int]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for node_id in order:
        node = graph.nodes[node_id]
        op = node.op
        if not isinstance(op, Source | Const) and type(op) not in WRITERS:
            pairs.append((node.name, op.name))
        for body in op.bodies:
            pairs += [(f"{node.name}.{name}", inner) for name, inner in _unwritten(body, body.order())]
    return pairs


def write_nodes(
    writer: GraphWriter,
    clock: ClockWriter,
    graph: Graph[F, Op],
    order: Sequence[int],
    names: dict[OutletId, str],
    wire_names: Mapping[OutletId, str],
    read_outside: Collection[OutletId],
    prefix: str = "",
) -> None:
    """Write nodes in order and add the names of their outputs to ``names``.

    names         the names of existing wires, such as inputs
    wire_names    the required names of wires; others get new ones
    read_outside  wires that are read from outside the graph
    """
    for node_id in order:
        node = graph.nodes[node_id]
        if isinstance(node.op, Source):
            continue
        if isinstance(node.op, Const):
            names[OutletId(node_id)] = writer.constant(node.op.value, prefix + node.name)
            continue
        context = NodeWriter(
            graph=writer,
            clock=clock,
            name=prefix + node.name,
            op_name=node.op.name,
            inputs=tuple(names[outlet] for outlet in node.inputs),
            outputs=tuple(
                wire_names.get(outlet) or writer.names.new(prefix + graph.label(outlet))
                for outlet in node.wires
            ),
            input_facts=tuple(graph.fact(outlet) for outlet in node.inputs),
            output_facts=tuple(outlet.fact for outlet in node.outputs),
            output_is_used=tuple(
                bool(graph.outlet(outlet).successors) or outlet in read_outside for outlet in node.wires
            ),
        )
        try:
            outputs = WRITERS[type(node.op)](context, node.op)
        except DimError as error:
            raise context.error(
                f"{error}; fix the length with {spell('inputs')}, or write it in pulses"
            ) from error
        names.update(zip(node.wires, [outputs] if isinstance(outputs, str) else outputs, strict=False))


def write_graph(
    writer: GraphWriter,
    clock: ClockWriter,
    graph: Graph[F, Op],
    order: Sequence[int],
    names: dict[OutletId, str],
    outputs: Sequence[str],
    read_outside: Collection[OutletId],
) -> None:
    """Write the nodes of a model, as ``write_nodes`` does; ``outputs`` are the names of its outputs."""
    wire_names = {
        outlet: name
        for outlet, name in reversed(list(zip(graph.outputs, outputs)))
        if outlet not in names and not isinstance(graph.node(outlet).op, Const)
    }
    write_nodes(writer, clock, graph, order, names, wire_names, read_outside)
    for outlet, name in zip(graph.outputs, outputs):
        if names[outlet] != name:
            writer.record_alias(names[outlet], name)


def write_body(w: NodeWriter, graph: Graph[F, Op], inside: Mapping[str, str]) -> list[str]:
    """Write a body's nodes, with existing wires as its inputs; return the names of its outputs."""
    names = {outlet: inside[graph.label(outlet)] for outlet in graph.inputs if graph.label(outlet) in inside}
    write_nodes(
        writer=w.graph,
        clock=w.clock,
        graph=graph,
        order=graph.order(),
        names=names,
        wire_names={},
        read_outside=graph.outputs,
        prefix=f"{w.name}.",
    )
    return [names[outlet] for outlet in graph.outputs]
