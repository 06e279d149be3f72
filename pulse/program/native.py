"""The numba backend: an instruction table over weights, state and arena, run by one small machine."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from pulse.dim import TDim
from pulse.errors import InputError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.jit.instruction import Tensor
from pulse.jit.pointer import operand
from pulse.jit.registry import (
    KERNELS,
    compile_kernels,
    modules_of,
    require_kernels,
)
from pulse.ops.check import Site
from pulse.program import lower as lower
from pulse.program import machine
from pulse.program.copies import copies
from pulse.program.executable import Executable
from pulse.program.feeds import Feed
from pulse.program.kernels import families as families
from pulse.program.kernels.time import Tick
from pulse.program.lower.recurrent_siblings import side_by_side
from pulse.program.lowering import Emitted, Lowering
from pulse.program.memory import Region, Value, aligned_bytes
from pulse.program.packed import Packed, pack
from pulse.program.profile import Profile, measured
from pulse.program.state import State
from pulse.program.table import Table, TableBuilder, link
from pulse.pulsify.faults import unchecked_bodies
from pulse.pulsify.network import PulsedNetwork
from pulse.record import record

_MODULES = "kernels"
SHOWN = 12
"""Fields of an instruction in a listing."""


@record
class Place:
    """A tensor of the finished program: where it is, in bytes, and how its axes lie."""

    region: Region
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: "np.dtype[np.generic]"

    @classmethod
    def of(cls, value: Value) -> "Place":
        """The place of a value whose buffer has its offset."""
        size = value.dtype.itemsize
        return cls(
            value.buffer.region,
            value.buffer.offset + value.offset * size,
            value.shape,
            tuple(step * size for step in value.strides),
            value.dtype,
        )

    def view(self, memory: Array) -> Array:
        """The tensor in a region's bytes; an empty one has no place there."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        return np.ndarray(self.shape, self.dtype, memory.data, self.offset, self.strides)


class NativeExecutable(Executable):
    """Instructions, weights, and the memory that a stream needs."""

    def __init__(
        self,
        model: PulsedNetwork,
        fetches: Sequence[OutletId] = (),
        form: str = "f32",
        prepare: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        super().__init__(model, form)
        lowering = Lowering(
            model.graph,
            set(fetches),
            model.registers,
            form,
            checks=model.checks,
            unchecked=unchecked_bodies(model),
            arrange=side_by_side,
        )
        lowering.run()
        self.arena_bytes = max(lowering.plan(), 64)
        self.weights = aligned_bytes(max(lowering.weights.size, 64))
        image = lowering.weights.image()
        self.weights[: image.size] = image
        self.weights.flags.writeable = False
        self.initial = lowering.state.image()
        self.instructions = (
            *lowering.instructions,
            *lowering.endings,
            Emitted(Tick(clock=lowering.clock), "", "clock"),
        )
        self.ends: tuple[tuple[TDim, int], ...] = tuple(
            (length, value.buffer.offset) for length, value in lowering.ends if not length.is_const
        )
        self.counters = tuple((site, value.buffer.offset) for site, value in lowering.counted.items())
        """What is looked at for faults (node, op, check), and the byte of the state that counts them."""
        self.total_at, self.last_at = (
            None if word is None else word.buffer.offset
            for word in (lowering.word_of("faults"), lowering.word_of("last"))
        )
        """The bytes of the state that count all faults, and that hold the number of the last pulse."""
        graph = model.graph
        self.places = {outlet: Place.of(lowering.values[outlet]) for outlet in graph.inputs}
        self.sent = tuple(Place.of(lowering.results[outlet]) for outlet in graph.outputs)
        self.fetched = tuple(Place.of(lowering.results[outlet]) for outlet in fetches)
        if prepare is not None:
            prepare(self._kernels())
        self._link()

    def _kernels(self) -> list[str]:
        """The names of all that it runs."""
        return list(dict.fromkeys(row.kernel for row in self.instructions))

    def _link(self) -> None:
        """Find the kernels in this process; they are compiled where they are missing. Raises CompileError."""
        compile_kernels(self._kernels())
        self.unlinked = table_of(self.instructions)
        """The table with kernel numbers, for the machine in plain Python."""
        self.table = link(self.unlinked)
        machine.runner()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        del state["unlinked"], state["table"]
        rows = [(row.kernel, dict(vars(row.instruction)), row.node, row.op) for row in self.instructions]
        return {**state, "instructions": rows, _MODULES: modules_of(self._kernels())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = dict(state)
        modules = parts.pop(_MODULES)
        super().__setstate__(parts)
        self.weights = aligned_bytes(self.weights.size)
        self.weights[:] = parts["weights"]
        self.weights.flags.writeable = False
        require_kernels(modules)
        self.instructions = tuple(
            Emitted(KERNELS[kernel].instruction(**fields), node, op)
            for kernel, fields, node, op in parts["instructions"]
        )
        self._link()

    @property
    def backend(self) -> str:
        return "numba"

    @property
    def state_bytes(self) -> int:
        """Memory of each stream, scratch not counted."""
        return self.initial.size

    def listing(self) -> list[str]:
        """The instructions as text: number, kernel, node, fields; in front of them the copies and their reasons."""
        lines = [
            f"{len(self.instructions)} instructions, {self.weights.size} bytes of weights ({self.form}), "
            f"{self.state_bytes} of state, {self.arena_bytes} of arena",
            *map(str, copies(self.instructions)),
        ]
        for number, row in enumerate(self.instructions):
            fields = [f"{name}={_text(value)}" for name, value in row.instruction.named()]
            text = " ".join(fields if len(fields) <= SHOWN else [*fields[:SHOWN], "…"])
            lines.append(f"{number:4d} {row.kernel:<14} {row.node} ({row.op})  {text}")
        return lines


def table_of(rows: Iterable[Emitted]) -> Table:
    """Instructions whose tensors have their places, as an unlinked table."""
    builder = TableBuilder()
    for row in rows:
        words = [_word_of(argument) for argument in row.instruction.arguments()]
        builder.add(KERNELS[row.kernel], *words)
    return builder.finish()


def _word(memory: Array, offset: int) -> "memoryview[int]":
    """An int64 of a memory, which costs less to read than as an array."""
    return memory[offset : offset + 8].data.cast("B").cast("q")


def _word_of(argument: Tensor | int) -> int:
    if isinstance(argument, Value):
        buffer = argument.buffer
        return operand(buffer.region, buffer.offset + argument.offset * argument.dtype.itemsize)
    assert isinstance(argument, int)
    return argument


def _text(value: object) -> str:
    if isinstance(value, Value):
        place = Place.of(value)
        return f"{place.region.name.lower()[0]}{place.offset}[{'x'.join(map(str, place.shape))}]"
    return str(value)


class NativeState(State):
    """One stream: its memory, and scratch of its own."""

    pulses_worth_a_mark = 32  # one copy of the memory is nothing beside them: each pulse moves most of it

    def __init__(
        self, program: NativeExecutable, constants: Feed | None, memory: Array, arena: Array
    ) -> None:
        super().__init__(program, constants)
        self._program = program
        self._memory = memory
        self.arena = arena
        """Scratch, as bytes."""
        regions = {Region.WEIGHTS: program.weights, Region.STATE: self._memory, Region.ARENA: self.arena}
        self.bases = np.array([regions[region].ctypes.data for region in Region], np.int64)
        """Addresses of weights, state and arena."""
        graph = program.model.graph
        self._inputs = [
            (graph.label(outlet), program.places[outlet].view(regions[program.places[outlet].region]))
            for outlet in graph.inputs
        ]
        self._outputs = [
            (name, place.view(regions[place.region])) for name, place in zip(graph.output_names, program.sent)
        ]
        self._fetched = [place.view(regions[place.region]) for place in program.fetched]
        self._alone = self._only_pair()
        """Input and output, their names in front, where there are no others and nothing is fetched."""
        self._ends = [
            (length, self._memory[offset : offset + 8].view(np.int64)) for length, offset in program.ends
        ]
        self._total = None if program.total_at is None else _word(self._memory, program.total_at)
        self._counting = self._total is not None
        self.call = (program.table.ctypes.data, len(program.instructions), self.bases.ctypes.data)
        """What the machine is called with: the address of the table, its rows, the address of ``bases``."""
        self._run_machine = machine.runner()
        self._clear()

    @property
    def memory(self) -> Array:
        """All that the stream remembers, as bytes; what is written there counts at once."""
        return self._memory

    def _clear(self) -> None:
        self.memory[:] = self._program.initial

    def _only_pair(self) -> tuple[str, Array, str, Array] | None:
        if (len(self._inputs), len(self._outputs), len(self._fetched)) != (1, 1, 0) or self.constants:
            return None
        return (*self._inputs[0], *self._outputs[0])

    def _run(self, feed: Feed) -> dict[str, Array]:
        if self._alone is not None:
            name, place, to, result = self._alone
            place[...] = feed[name]
            self.changing = True
            self._run_machine(*self.call)
            return {to: result.copy()}
        for name, place in self._inputs:
            array = feed.get(name)
            place[...] = self.constants[name] if array is None else array  # each pulse writes all of it anew
        self.changing = True
        self._run_machine(*self.call)
        if self._fetched:
            self.fetched = [place.copy() for place in self._fetched]
        results: dict[str, Array] = {}
        for name, place in self._outputs:
            results[name] = place.copy()
        return results

    def _run_into(self, feed: Feed, outputs: dict[str, Array]) -> dict[str, Array]:
        for name, place in self._inputs:
            array = feed.get(name)
            place[...] = self.constants[name] if array is None else array
        self.changing = True
        self._run_machine(*self.call)
        if self._fetched:
            self.fetched = [place.copy() for place in self._fetched]
        for name, place in self._outputs:
            outputs[name][...] = place
        return outputs

    def _ended(self) -> None:
        for length, register in self._ends:
            register[0] = self.clock.frames(length)
        if self._program.last_at is not None and self.clock.last is not None:
            _word(self.memory, self._program.last_at)[0] = self.clock.last

    @property
    def faulted(self) -> bool:
        return self._total is not None and self._total[0] != 0

    def take_faults(self) -> int:
        if self._total is None:
            return 0
        count, self._total[0] = self._total[0], 0
        return count

    def _counts(self) -> Iterator[tuple[Site, int]]:
        for site, offset in self._program.counters:
            yield site, _word(self.memory, offset)[0]

    def _save(self) -> bytes:
        return self.memory.tobytes()

    def _load(self, memory: bytes) -> None:
        if len(memory) != self.memory.size:
            raise InputError(
                f"the snapshot holds {len(memory)} bytes of memory where {self.memory.size} are needed"
            )
        self.changing = True
        self.memory[:] = np.frombuffer(memory, np.uint8)

    def _keep(self) -> Array:
        return self.memory.copy()

    def _put_back(self, memory: Array) -> None:
        self.memory[:] = memory

    def run_machine(self) -> None:
        """Run the table once on whatever is in the inputs; for measuring."""
        self._run_machine(*self.call)

    def packed(self) -> Packed:
        """A pulse as one compiled call. Who calls it adds to ``clock.pulse``."""
        streaming = [pair for pair in self._inputs if pair[0] not in self.constants]
        constants = [pair for pair in self._inputs if pair[0] in self.constants]
        total_at = self._program.total_at
        faults = 0 if total_at is None else self.memory.ctypes.data + total_at
        return pack(self.call, streaming, self._outputs, constants, self.constants, faults)

    def profile(self, steps: int = 1000) -> Profile:
        """The time of each instruction and what it costs, over steps on noise; the stream's state is kept."""
        saved = self.snapshot()
        rng = np.random.default_rng(0)
        for name, place in self._inputs:
            given = self.constants.get(name)
            place[...] = rng.standard_normal(place.shape).astype(place.dtype) if given is None else given
        try:
            return measured(self._program.instructions, self.call[0], self.call[2], steps)
        finally:
            self.restore(saved)
