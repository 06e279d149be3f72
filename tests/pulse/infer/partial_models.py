"""Small models with partial facts: ``x ?,3,T,f32`` has an unknown size, ``x ...,f32`` no shape."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from pulse.loading.onnx_files import read_onnx
from pulse.models import Model

TYPES = {
    "f32": TensorProto.FLOAT,
    "i64": TensorProto.INT64,
    "i32": TensorProto.INT32,
    "bool": TensorProto.BOOL,
    "?": TensorProto.UNDEFINED,
}


def declare_fact(name: str, text: str) -> ValueInfoProto:
    """The fact that a file states of a wire."""
    *dims, dtype = text.split(",")
    shape = None if dims == ["..."] else [None if d == "?" else int(d) if d.isdigit() else d for d in dims]
    return helper.make_tensor_value_info(name, TYPES[dtype], shape)


def proto(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    constants: Mapping[str, object] | None = None,
    value_info: Mapping[str, str] | None = None,
    opset: int = 17,
) -> ModelProto:
    """A model whose file states just that."""
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    ins, outs, more = (
        [declare_fact(name, text) for name, text in texts.items()]
        for texts in (inputs, outputs, value_info or {})
    )
    graph = helper.make_graph(list(nodes), "partial", ins, outs, stored, value_info=more)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def facts(model: Model) -> dict[str, str]:
    """The inferred fact of each wire, as text."""
    model_inferred = model.infer()
    return {
        model_inferred.graph.label(wire): str(model_inferred.graph.fact(wire))
        for wire in model_inferred.graph.wires()
    }


def inferred_facts(*args: Any, **kwargs: Any) -> dict[str, str]:
    """The inferred fact of each wire of a model."""
    return facts(read_onnx(proto(*args, **kwargs)))
