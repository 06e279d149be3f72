"""The graphs that ops run inside themselves."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pulse.graph import Node
from pulse.ops.control import Loop
from pulse.ops.op import Op
from pulse.ops.scan import Scan, ScanStream
from pulse.typed import TypedGraph, TypedNetwork


def bodies(op: Op) -> Sequence[TypedGraph]:
    """Return the bodies of a scan or a loop; empty for other ops."""
    inner = op.op if isinstance(op, ScanStream) else op
    return [inner.body.graph] if isinstance(inner, Scan | Loop) else []


def with_bodies(op: Op, change: Callable[[TypedNetwork], TypedNetwork]) -> Op:
    """Return the op with its bodies changed, or the op itself if it has none."""
    if isinstance(op, ScanStream):
        inner = with_bodies(op.op, change)
        assert isinstance(inner, Scan)
        return replace(op, op=inner)
    return replace(op, body=change(op.body)) if isinstance(op, Scan | Loop) else op


def nodes_within(nodes: Iterable[Node[Any, Op]]) -> Iterator[Node[Any, Op]]:
    """Yield the nodes, each followed by those of its bodies."""
    for node in nodes:
        yield node
        for body in bodies(node.op):
            yield from nodes_within(body.nodes)
