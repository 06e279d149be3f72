"""Programs whose nodes run on several backends: each part is a program, and the parts share one clock."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.check import Site
from pulse.ops.source import Const
from pulse.program.backends.groups import BackendGroup, choices_by_node, split_by_backend, transfers
from pulse.program.backends.implementations import ImplementationChoice
from pulse.program.backends.registry import BACKENDS, CompileRequest
from pulse.program.program import Program
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State
from pulse.support.wording import count_of

_SIZE = struct.Struct("<q")


class MixedProgram(Program):
    """A pulsed model whose views may run on different backends.

    parts      the parts and their programs, in the order of execution
    transfers  the wires from one backend to another
    """

    def __init__(self, request: CompileRequest, backend: str) -> None:
        super().__init__(request.model, request.rounding)
        self._default = backend
        self.fetches = tuple(request.fetches)
        self.parts: list[tuple[BackendGroup, Program]] = []
        for part in split_by_backend(request.model, request.choices, self.fetches):
            chosen = {node: request.choices[whole_node] for whole_node, node in part.nodes.items()}
            part_request = replace(request, model=part.network, fetches=(), choices=chosen)
            self.parts.append((part, BACKENDS[part.backend].compile(part_request)))
        self.transfers = transfers([part for part, _ in self.parts], request.model.graph)
        names = dict.fromkeys([backend, *(part.backend for part, _ in self.parts)])
        self._backend = " + ".join(names)

    @property
    def backend(self) -> str:
        return self._backend

    @cached_property
    def choices(self) -> Mapping[int, ImplementationChoice]:
        return choices_by_node(self.network, self._default)

    def spawn(self, constants: Feed | None = None) -> "MixedState":
        return MixedState(self, constants)


class MixedState(State):
    """One stream, which consists of a stream of each part."""

    def __init__(self, program: MixedProgram, constants: Feed | None) -> None:
        super().__init__(program, constants)
        self._program = program
        self._states = [part.spawn() for _, part in program.parts]
        for state in self._states:
            state.clock = self.clock
        self.counts_faults = any(state.counts_faults for state in self._states)

    def _clear(self) -> None:
        for state in self._states:
            state._clear()

    def _run(self, feed: Feed) -> dict[str, Array]:
        graph = self._program.network.graph
        values: dict[OutletId, Array] = {
            outlet: self.constants[name] if name in self.constants else feed[name]
            for outlet, name in ((outlet, graph.label(outlet)) for outlet in graph.inputs)
        }
        self.changing = True
        for (part, _), state in zip(self._program.parts, self._states):
            results = state._run({name: values[outlet] for name, outlet in part.inputs.items()})
            state.changing = False
            values |= {outlet: results[name] for name, outlet in part.outputs.items()}
        self.fetched = [self._value(values, outlet) for outlet in self._program.fetches]
        return {
            name: np.array(self._value(values, outlet))
            for name, outlet in zip(graph.output_names, graph.outputs)
        }

    def _value(self, values: Mapping[OutletId, Array], outlet: OutletId) -> Array:
        op = self._program.network.graph.node(outlet).op
        return op.value if isinstance(op, Const) else values[outlet]

    def _set_end(self) -> None:
        for state in self._states:
            state._set_end()

    @property
    def has_faulted(self) -> bool:
        return any(state.has_faulted for state in self._states)

    def take_faults(self) -> int:
        return sum(state.take_faults() for state in self._states)

    def _counts(self) -> Iterator[tuple[Site, int]]:
        for state in self._states:
            yield from state._counts()

    def _memory_bytes(self) -> bytes:
        memories = [state._memory_bytes() for state in self._states]
        return b"".join(_SIZE.pack(len(memory)) + memory for memory in memories)

    def _set_memory_bytes(self, memory: bytes) -> None:
        memories: list[bytes] = []
        start = 0
        for _ in self._states:
            size = _SIZE.unpack_from(memory, start)[0] if len(memory) >= start + _SIZE.size else -1
            start += _SIZE.size
            if size < 0 or start + size > len(memory):
                raise InputError(
                    f"the snapshot holds {count_of(len(memory), 'byte')} of memory, which is not the size of this "
                    "stream's"
                )
            memories.append(memory[start : start + size])
            start += size
        previous_memories = self._copy_memory()
        self.changing = True
        try:
            for state, part in zip(self._states, memories):
                state._set_memory_bytes(part)
                state.changing = False
        except InputError:
            self._restore_memory(previous_memories)
            self.changing = False
            raise

    def _copy_memory(self) -> list[Any]:
        return [state._copy_memory() for state in self._states]

    def _restore_memory(self, memory: list[Any]) -> None:
        for state, part in zip(self._states, memory):
            state._restore_memory(part)
            state.changing = False
