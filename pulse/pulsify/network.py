"""PulsedNetwork: every wire of constant shape, memory in the open, time in every fact."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from pulse.chunks.chunking import Chunks
from pulse.dim import Symbol, TDim
from pulse.errors import PulsifyError
from pulse.facts import DType, PulsedFact, StreamFact, dtype_name, shape_text
from pulse.graph import Graph, OutletId
from pulse.ops.op import Op
from pulse.ops.scan import ScanStream
from pulse.ops.stateful import Stateful
from pulse.ops.time import Delay
from pulse.pulsify.receptive import Receptive
from pulse.pulsify.registers import AwaitedWire, Register, check_registers
from pulse.record import record
from pulse.typed import TypedNetwork

PulsedGraph = Graph[PulsedFact, Op]


@record
class Port:
    """An input or output of a pulsed model.

    shape   of one pulse
    axis    the stream axis; None where the tensor does not stream: then an input is given once, and an output
            (or one whose rate is 0) is known when the stream has ended
    delay   leading frames to drop
    rate    frames for each frame of the symbol
    length  valid frames of the whole stream, a function of the symbol
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    axis: int | None
    delay: int
    rate: Fraction
    length: TDim

    @classmethod
    def of(cls, name: str, fact: PulsedFact, stream: StreamFact | None) -> "Port":
        """The port of a wire, with its place in time if it is a stream."""
        if stream is None:
            return cls(name, fact.sizes, fact.dtype, None, 0, Fraction(0), TDim.of(0))
        return cls(name, fact.sizes, fact.dtype, stream.axis, stream.offset, stream.rate, stream.length)

    @property
    def streams(self) -> bool:
        """Whether frames come with every pulse."""
        return self.axis is not None and self.rate > 0

    @property
    def is_sound(self) -> bool:
        """Whether each frame is one floating value of 32 bits."""
        sizes = [size for axis, size in enumerate(self.shape) if axis != self.axis]
        return self.streams and self.dtype == np.float32 and all(size == 1 for size in sizes)

    @property
    def frames(self) -> int:
        """Frames in each pulse."""
        return self.shape[self.axis] if self.axis is not None else 0

    def __str__(self) -> str:
        text = f"{self.name}: {shape_text(self.shape)},{dtype_name(self.dtype)}"
        if self.axis is None:
            return f"{text}, no stream"
        if not self.streams:
            return f"{text}, axis {self.axis}, {self.length} frames at the end"
        return f"{text}, axis {self.axis}, delay {self.delay}, rate {self.rate}, length {self.length}"

    def as_dict(self) -> dict[str, Any]:
        """The same, for JSON."""
        return {
            "name": self.name,
            "shape": list(self.shape),
            "dtype": dtype_name(self.dtype),
            "axis": self.axis,
            "delay_frames": self.delay,
            "rate": str(self.rate),
            "length": str(self.length),
        }


@record
class ScheduledWire:
    """Where a wire of the typed model is in the pulsed one."""

    outlet: OutletId
    fact: PulsedFact


@dataclass
class PulsedNetwork:
    """A model that takes pulses of constant size.

    fields  output name -> which frames of the symbol an output frame depends on
    wires   for each wire of ``typed`` that is in the pulsed graph, its outlet there and its place in time
    registers  tensors that one pulse leaves for the next, beside what stateful ops remember
    awaited    what outputs wait for, beside what ops of the graph say
    chunks     how a chunk model is called; None where the model was pulsified
    sizes      symbols of the file that are no lengths of the stream -> what they were made: ``{"batch": 1}``
    checks     the counters of faults (``CountFaults``); a file read back has none
    """

    graph: PulsedGraph = field(repr=False)
    typed: TypedNetwork = field(repr=False)
    symbol: Symbol
    pulse: int
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    wires: dict[OutletId, ScheduledWire] = field(repr=False)
    fields: dict[str, Receptive] = field(default_factory=dict[str, Receptive])
    registers: tuple[Register, ...] = ()
    awaited: tuple[AwaitedWire, ...] = ()
    chunks: Chunks | None = None
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    checks: tuple[OutletId, ...] = ()

    def __post_init__(self) -> None:
        check_registers(self.graph, self.registers)

    @property
    def title(self) -> str:
        """The model's name."""
        return self.typed.title

    @property
    def targets(self) -> list[OutletId]:
        """The wires that each pulse is run for: the outputs and the registers."""
        return [*self.graph.outputs, *(outlet for r in self.registers for outlet in (r.read, r.write))]

    def buffers(self) -> list[tuple[str, Op, int]]:
        """Name, op and bytes of everything that one pulse leaves for later ones."""
        found: list[tuple[str, Op, int]] = [
            (register.name, self.graph.node(register.read).op, register.initial.nbytes)
            for register in self.registers
        ]
        for node_id in self.graph.order(self.targets):
            node = self.graph.nodes[node_id]
            if isinstance(node.op, ScanStream):
                states = zip(node.op.op.states, node.op.begin())
                found += [(name, node.op, initial.nbytes) for name, initial in states]
            elif isinstance(node.op, Stateful):
                size = sum(array.nbytes for array in node.op.begin())
                if size:
                    found.append((node.name, node.op, size))
        return found

    def waits(self) -> list[AwaitedWire]:
        """Every wire whose last frame some output waits for."""
        found = list(self.awaited)
        for node in self.graph.nodes:
            if isinstance(node.op, Stateful) and node.op.awaits is not None:
                offset, length = node.op.awaits
                found.append(AwaitedWire(self.graph.fact(node.inputs[0]).frames, offset, length))
        return found

    @property
    def delays(self) -> list[Delay]:
        """The delay buffers."""
        return [op for _, op, _ in self.buffers() if isinstance(op, Delay)]

    def port(self, name: str) -> Port:
        """An input or output by its name. Raises PulsifyError."""
        for port in (*self.inputs, *self.outputs):
            if port.name == name:
                return port
        raise PulsifyError(f"no input or output is called {name!r}")
