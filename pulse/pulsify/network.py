"""PulsedNetwork: all shapes constant, all memory explicit, the position in time in every fact."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from pulse.chunks.chunking import CallPlan
from pulse.dim import Symbol, TDim
from pulse.facts import PulsedFact
from pulse.graph import Graph, Node, OutletId
from pulse.interface import AwaitedWire, Port, find_port
from pulse.metadata import is_exported
from pulse.ops.op import Op
from pulse.ops.stateful import Stateful
from pulse.ops.time import Delay
from pulse.pulsify.receptive_fields import ReceptiveField
from pulse.pulsify.registers import Register, check_registers
from pulse.support.record import record
from pulse.typed import TypedNetwork

PulsedGraph = Graph[PulsedFact, Op]
PulsedNode: TypeAlias = Node[PulsedFact, Op]


@record
class ScheduledWire:
    """The outlet and the position in time, in the pulsed model, of a wire of the typed one."""

    outlet: OutletId
    fact: PulsedFact


@record(frozen=False)
class PulsedNetwork:
    """A model that takes pulses of constant size.

    graph                the pulsed graph
    typed                the offline model
    symbol               the frames of the stream
    pulse                frames of the symbol in each pulse
    inputs, outputs      its ports
    wires                typed outlet -> its outlet in the pulsed graph and its position in time
    receptive_fields     output name -> which frames of the symbol an output frame depends on
    registers            tensors that one pulse leaves for the next, apart from the states of ops
    extra_awaited_wires  wires that outputs wait for, in addition to the ops' own
    chunks               how a chunk model is called; None for an offline model
    sizes                symbols of the file other than stream lengths -> their values: ``{"batch": 1}``
    checks               the counters of faults (``CountFaults``); none in a file read back
    """

    graph: PulsedGraph = field(repr=False)
    typed: TypedNetwork = field(repr=False)
    symbol: Symbol
    pulse: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    wires: dict[OutletId, ScheduledWire] = field(repr=False)
    receptive_fields: dict[str, ReceptiveField] = field(default_factory=dict[str, ReceptiveField])
    registers: tuple[Register, ...] = ()
    extra_awaited_wires: tuple[AwaitedWire, ...] = ()
    chunks: CallPlan | None = None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    checks: tuple[OutletId, ...] = ()

    def __post_init__(self) -> None:
        check_registers(self.graph, self.registers)

    @property
    def title(self) -> str:
        """The model's name."""
        return self.typed.title

    @property
    def metadata(self) -> Mapping[str, str]:
        """The metadata of the file."""
        return self.typed.metadata

    @property
    def is_reopened(self) -> bool:
        """Whether it was read from a file in pulses, which has no offline form."""
        return is_exported(self.metadata)

    @property
    def assumptions(self) -> Sequence[TDim]:
        """The assumptions on the length of a stream."""
        return self.typed.scope.assumptions

    @property
    def targets(self) -> list[OutletId]:
        """The wires that each pulse computes: the outputs and the registers."""
        return [*self.graph.outputs, *(outlet for r in self.registers for outlet in (r.read, r.write))]

    def buffers(self) -> list[tuple[str, Op, int]]:
        """Return name, op and bytes of each state that one pulse leaves for later ones."""
        buffers: list[tuple[str, Op, int]] = [
            (register.name, self.graph.node(register.read).op, register.initial.nbytes)
            for register in self.registers
        ]
        for node_id in self.graph.order(self.targets):
            node = self.graph.nodes[node_id]
            if isinstance(node.op, Stateful):
                buffers += [(name, node.op, size) for name, size in node.op.buffers(node.name)]
        return buffers

    def awaited_wires(self) -> list[AwaitedWire]:
        """Return every wire whose last frame some output waits for."""
        waits = list(self.extra_awaited_wires)
        for node in self.graph.nodes:
            if isinstance(node.op, Stateful) and node.op.awaits is not None:
                offset, length = node.op.awaits
                waits.append(AwaitedWire(self.graph.fact(node.inputs[0]).frames, offset, length))
        return waits

    @property
    def delays(self) -> list[Delay]:
        """The delay buffers."""
        return [op for _, op, _ in self.buffers() if isinstance(op, Delay)]

    def port(self, name: str) -> Port:
        """Return an input or output by its name. Raises PulsifyError: no such port."""
        return find_port(self, name)
