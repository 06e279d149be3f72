"""Functions that a file defines: their calls are replaced by their nodes."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pulse.errors import LoadError
from pulse.onnx.proto import FunctionProto, ModelProto, NodeProto
from pulse.support.budget import current_spending

Key: TypeAlias = tuple[str, str, str]


def inline(model: ModelProto, subject: str) -> ModelProto:
    """Return the model without functions. Raises LoadError: they call themselves, or are too many nodes."""
    if not model.functions:
        return model
    functions = {
        _key(function.domain, function.name, function.overload): function for function in model.functions
    }
    counts: dict[Key, int | None] = {}
    for node in model.graph.node:
        current_spending().take_nodes(
            _count([node], functions, counts, subject) - 1, f"{subject}: {_describe(node)}"
        )
    import onnx.inliner
    from onnx import checker

    try:
        return onnx.inliner.inline_local_functions(model)
    except (RuntimeError, ValueError, IndexError, checker.ValidationError) as error:
        raise LoadError(
            f"{subject}: its functions cannot be unfolded ({error}); export it without functions"
        ) from error


def _describe(node: NodeProto) -> str:
    return f"{node.name or next(iter(node.output), 'a node')} ({node.op_type})"


def _key(domain: str, name: str, overload: str) -> Key:
    return ("" if domain == "ai.onnx" else domain, name, overload)


def _count(
    nodes: Iterable[NodeProto],
    functions: Mapping[Key, FunctionProto],
    counts: dict[Key, int | None],
    subject: str,
) -> int:
    """Return nodes after unfolding, bodies included; ``counts`` has those of functions, None while one is counted."""
    total = 0
    for node in nodes:
        total += 1
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                total += _count(graph.node, functions, counts, subject)
        key = _key(node.domain, node.op_type, node.overload)
        function = functions.get(key)
        if function is None:
            continue
        if key not in counts:
            counts[key] = None
            counts[key] = _count(function.node, functions, counts, subject)
        count = counts[key]
        if count is None:
            raise LoadError(
                f"{subject}: its function {node.op_type} calls itself; export it without functions"
            )
        total += count
    return total
