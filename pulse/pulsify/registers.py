"""Registers: tensors that one pulse leaves for the next."""

from collections.abc import Iterable
from dataclasses import field

from pulse.errors import PulsifyError
from pulse.facts import Array, PulsedFact, TypedFact
from pulse.graph import Graph, OutletId
from pulse.ops.op import Op
from pulse.ops.source import Source
from pulse.support.record import record


@record(eq=False)
class Register:
    """A tensor that one pulse leaves for the next.

    name     the name of the input
    read     the source in the pulsed graph; not one of the graph's inputs
    write    the wire that holds the next value
    initial  the value at the first pulse
    """

    name: str
    read: OutletId
    write: OutletId
    initial: Array = field(repr=False)


def check_registers(graph: Graph[PulsedFact, Op], registers: Iterable[Register]) -> None:
    """Raise PulsifyError if a register's parts do not match, or two registers share a source."""
    visited: set[OutletId] = set()
    for register in registers:
        read, write = graph.fact(register.read), graph.fact(register.write)
        if not isinstance(graph.node(register.read).op, Source) or register.read in graph.inputs:
            raise PulsifyError(
                f"register {register.name}: it must be read from a source that is not an input"
            )
        if register.read in visited:
            raise PulsifyError(f"register {register.name}: another register has the same source")
        visited.add(register.read)
        for what, fact in (("written", write), ("initially", TypedFact.of(register.initial))):
            if (fact.dtype, fact.shape) != (read.dtype, read.shape):
                raise PulsifyError(f"register {register.name} is read as {read} and {what} {fact}")
