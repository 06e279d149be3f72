"""Programs of the numba backend: a pulsed model compiled to rows of native kernels, and its streams."""

from collections import Counter
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from pulse.graph import OutletId
from pulse.jit.registry import (
    KERNEL_PLUGINS,
    KERNELS,
    modules_of,
    require_kernels,
)
from pulse.ops.op import Op
from pulse.program.file.program_file import encode_program, write_file
from pulse.program.file.proof_note import ProofNote
from pulse.program.kernels.time import TickRow
from pulse.program.lower import families as families
from pulse.program.lowering import LOWER
from pulse.program.native.kernel_program import KernelProgram
from pulse.program.step import lower_step
from pulse.program.table.copies import list_copies
from pulse.program.table.cost import RowNote, cost_of
from pulse.program.table.emitted import EmittedInstruction, make_table
from pulse.program.table.memory import TensorView
from pulse.program.table.place import Place
from pulse.pulsify.faults import find_unchecked_bodies
from pulse.pulsify.network import PulsedNetwork
from pulse.rounding import Rounding
from pulse.support.blake2 import blake2b
from pulse.support.mapping import MIN_MAPPED_BYTES, aligned_bytes, release_heap
from pulse.support.plugins import load_plugins
from pulse.support.report import json_value
from pulse.support.wording import count_of

_MODULES = "kernels"
MAX_SHOWN_FIELDS = 12
"""Maximum number of fields of an instruction in a listing; the others are omitted."""


class NativeProgram(KernelProgram):
    """A pulsed model as rows of native kernels."""

    def __init__(
        self,
        model: PulsedNetwork,
        fetches: Sequence[OutletId] = (),
        rounding: Rounding = Rounding(),
        prepare: Callable[[Sequence[str]], None] | None = None,
    ) -> None:
        super().__init__(model, rounding)
        step = lower_step(
            model.graph,
            registers=model.registers,
            fetches=fetches,
            form=self.form,
            checks=model.checks,
            unchecked=find_unchecked_bodies(model),
        )
        builder = step.builder
        self.arena_bytes = max(builder.place_arena(), 64)
        self.weights = builder.weights.assemble()
        self.weights.flags.writeable = False
        if self.weights.size >= MIN_MAPPED_BYTES:
            release_heap()
        self._state_runs = tuple(run.size for run in builder.state.runs)
        self.initial = builder.state.assemble()
        self.instructions = (
            *builder.instructions,
            *builder.endings,
            EmittedInstruction(TickRow(clock=builder.clock), "", "clock"),
        )
        self.kernel_names = list(dict.fromkeys(row.kernel for row in self.instructions))
        self.length_registers = tuple(
            (length, value.buffer.offset) for length, value in builder.length_registers if not length.is_const
        )
        self.counters = tuple((site, value.buffer.offset) for site, value in builder.fault_counters.items())
        self.fault_total_offset, self.last_pulse_offset = (
            None if word is None else word.buffer.offset
            for word in (builder.find_register("faults"), builder.find_register("last"))
        )
        graph = model.graph
        self.input_places = tuple(
            (graph.label(outlet), Place.of(value)) for outlet, value in zip(graph.inputs, step.inputs)
        )
        self.output_places = tuple(
            (name, Place.of(value)) for name, value in zip(graph.output_names, step.outputs)
        )
        self.fetched_places = tuple(Place.of(value) for value in step.fetched)
        if prepare is not None:
            prepare(self.kernel_names)
        self.link()

    def _digest(self) -> bytes:
        """Return a digest of the model and of the sizes of all runs of the state, in their order."""
        return blake2b(super()._digest() + repr(self._state_runs).encode(), digest_size=16).digest()

    def link(self) -> None:
        """Find the kernels in this process. Raises CompileError: one cannot be compiled."""
        self.unlinked = make_table(self.instructions)
        super().link()

    def __getstate__(self) -> dict[str, Any]:
        rows = [(row.kernel, dict(vars(row.instruction)), row.node, row.op) for row in self.instructions]
        return {**super().__getstate__(), "instructions": rows, _MODULES: modules_of(self.kernel_names)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = dict(state)
        modules = parts.pop(_MODULES)
        super().__setstate__(parts)
        self.weights = aligned_bytes(self.weights.size)
        self.weights[:] = parts["weights"]
        self.weights.flags.writeable = False
        require_kernels(modules)
        self.instructions = tuple(
            EmittedInstruction(KERNELS[kernel].instruction(**fields), node, op)
            for kernel, fields, node, op in parts["instructions"]
        )
        self.link()

    @property
    def row_count(self) -> int:
        return len(self.instructions)

    @property
    def notes(self) -> Sequence[RowNote]:
        return [RowNote(row.node, row.op, row.kernel, cost_of(row)) for row in self.instructions]

    def save(self, path: "str | PathLike[str]", proof: ProofNote | None = None, **metadata: str) -> None:
        """Save as ``Program.save`` does, with the result of a proof and further metadata, such as ``sample_rate``."""
        write_file(self.to_bytes(proof, **metadata), path)

    def to_bytes(self, proof: ProofNote | None = None, **metadata: str) -> bytes:
        """Return the bytes of the file that ``save`` writes. Raises WriteError: inner wires are fetched."""
        model = self.network
        chunks = None if model.chunks is None else json_value(model.chunks)
        sizes = tuple(("size", f"{name} = {size}") for name, size in model.sizes.items())
        lines = () if model.chunks is None else tuple(model.chunks.lines())
        return encode_program(self, {**model.metadata, **metadata}, proof, chunks, (*lines, *sizes))

    def _storage_text(self) -> str:
        """Describe the forms of the instructions' weights; small matrices stay f32."""
        rows_by_form = Counter(
            (
                "weights and activations" if row.instruction.rounds_activations else "weights",
                row.instruction.form,
            )
            for row in self.instructions
            if len(row.instruction.forms()) > 1
        )
        counts = [f"{count} with {form} {what}" for (what, form), count in rows_by_form.items()]
        return f"; {', '.join(counts)}" if counts else ""

    def listing(self) -> list[str]:
        lines = [
            f"{count_of(len(self.instructions), 'instruction')}, {count_of(self.weights.size, 'byte')} of weights "
            f"({self.form}), "
            f"{self.state_bytes} of state, {self.arena_bytes} of arena{self._storage_text()}",
            *map(str, list_copies(self.instructions)),
        ]
        for index, (row, parts) in enumerate(zip(self.instructions, self.thread_cuts.rows)):
            fields = [f"{name}={_text(value)}" for name, value in row.instruction.fields_by_name()]
            text = " ".join(fields if len(fields) <= MAX_SHOWN_FIELDS else [*fields[:MAX_SHOWN_FIELDS], "…"])
            cut_text = "" if parts is None else f"  in parts of {parts.cut.count} from {parts.bounds[:-1]}"
            lines.append(f"{index:4d} {row.kernel:<14} {row.node} ({row.op})  {text}{cut_text}")
        return lines


def has_kernel(op: Op) -> bool:
    """Return whether an op has a lowering, plugins included."""
    if type(op) not in LOWER:
        load_plugins(KERNEL_PLUGINS)
    return type(op) in LOWER


def _text(value: object) -> str:
    if isinstance(value, TensorView):
        place = Place.of(value)
        return f"{place.region.name.lower()[0]}{place.offset}[{'x'.join(map(str, place.shape))}]"
    return str(value)
