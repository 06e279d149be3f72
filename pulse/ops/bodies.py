"""The graphs that ops run inside of themselves."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pulse.graph import Node
from pulse.ops.control import Loop
from pulse.ops.op import Op
from pulse.ops.scan import Scan, ScanStream
from pulse.typed import TypedGraph


def bodies(op: Op) -> Sequence[TypedGraph]:
    """The bodies of a scan or a loop; none of another op."""
    inner = op.op if isinstance(op, ScanStream) else op
    return [inner.body.graph] if isinstance(inner, Scan | Loop) else []


def nodes_within(nodes: Iterable[Node[Any, Op]]) -> Iterator[Node[Any, Op]]:
    """The nodes, each followed by those of its bodies."""
    for node in nodes:
        yield node
        for body in bodies(node.op):
            yield from nodes_within(body.nodes)
