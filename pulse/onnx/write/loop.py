"""Bodies that are repeated until they say stop: ONNX Loop."""

from dataclasses import replace

import numpy as np
from onnx import helper

from pulse.onnx.write.graph import value_info
from pulse.onnx.write.node import NodeWriter
from pulse.onnx.write.registry import writes
from pulse.onnx.write.walk import write_nodes
from pulse.ops.loop import Loop


@writes(Loop)
def write_loop(w: NodeWriter, op: Loop) -> list[str]:
    """The body takes the number of the turn, whether to go on, and the states."""
    inner, graph = replace(w, graph=w.graph.body()), op.body.graph
    count = len(op.names)
    facts = [(np.dtype(np.int64), ()), (np.dtype(np.bool_), ())]
    facts += [(fact.dtype, tuple(int(dim) for dim in fact.shape)) for fact in w.reads[2:count]]
    own = [w.graph.names.new(f"{w.name}.{name}") for name in op.names]
    inside = dict(zip(op.names, own)) | dict(zip(op.captured, w.inputs[count:]))
    names = {outlet: inside[graph.label(outlet)] for outlet in graph.inputs}
    write_nodes(inner.graph, w.clock, graph, graph.order(), names, {}, graph.outputs, f"{w.name}.")
    results = [
        value_info(
            inner.emit("Identity", [names[outlet]], f"turn{slot}"),
            graph.fact(outlet).dtype,
            [int(dim) for dim in graph.fact(outlet).shape],
        )
        for slot, outlet in enumerate(graph.outputs)
    ]
    inputs = [value_info(name, dtype, sizes) for name, (dtype, sizes) in zip(own, facts)]
    body = helper.make_graph(inner.graph.nodes, f"{w.name}.body", inputs, results)
    return w.emit_all("Loop", w.inputs[:count], [""] * len(w.outputs), body=body)
