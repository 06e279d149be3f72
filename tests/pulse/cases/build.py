"""Small ONNX models with feeds: a case is (name, model, feeds)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

Feeds = dict[str, np.ndarray]

Case = tuple[str, ModelProto, Feeds]


def rng(seed: object) -> np.random.Generator:
    """Random numbers that depend on the seed alone."""
    return np.random.default_rng(list(str(seed).encode()))


def floats(seed: object, *shape: int) -> np.ndarray:
    """Normal f32 numbers."""
    return rng(seed).standard_normal(shape).astype(np.float32)


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> NodeProto:
    """A node; names are separated by blanks, ``_`` leaves an input out."""
    names = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name=f"{op}_{outputs.split()[0]}", **attributes)


def model(
    nodes: Sequence[NodeProto],
    feeds: Feeds,
    constants: Mapping[str, Any] | None = None,
    opset: int = 17,
    stream: Mapping[str, int] | None = None,
    outputs: str = "y",
) -> ModelProto:
    """A model; ``stream`` gives the axis of each input that is called T instead of having a fixed size."""
    declared = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(value.dtype),
            ["T" if stream and stream.get(name) == axis else size for axis, size in enumerate(value.shape)],
        )
        for name, value in feeds.items()
    ]
    stored = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    graph = helper.make_graph(list(nodes), "case", declared, results, stored)
    ir = 8 if opset < 18 else 10
    domains = sorted({node.domain for node in nodes} - {""})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir)


def cases(
    name: str,
    nodes: Sequence[NodeProto],
    feeds: Feeds,
    constants: Mapping[str, Any] | None = None,
    opsets: Sequence[int] = (17,),
    stream: Mapping[str, int] | None = None,
    outputs: str = "y",
) -> Iterator[Case]:
    """The same model with fixed sizes, and with T as an axis, for several opsets."""
    for opset in opsets:
        yield f"{name}-{opset}-fixed", model(nodes, feeds, constants, opset, None, outputs), feeds
        if stream:
            yield f"{name}-{opset}-T", model(nodes, feeds, constants, opset, stream, outputs), feeds


def ints(*numbers: int) -> np.ndarray:
    """Return an i64 vector."""
    return np.array(numbers, dtype=np.int64)
