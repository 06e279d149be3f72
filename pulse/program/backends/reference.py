"""The numpy backend: runs a pulsed model node by node; the reference of the kernels."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array, DType, is_symbolic
from pulse.graph import OutletId
from pulse.ops.arithmetic import NATIVE, Arithmetic
from pulse.ops.check import Site, Tally, count_faults, replace_all_failing
from pulse.ops.fault import CountFaults
from pulse.ops.op import Op
from pulse.ops.source import Const, Source
from pulse.ops.stateful import Stateful
from pulse.program.backends.implementations import OpFunction
from pulse.program.backends.weight_rounding import rounded_operands, with_rounded_bodies
from pulse.program.program import Program
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State, split_memory
from pulse.pulsify.faults import body_sites, find_unchecked_bodies
from pulse.pulsify.network import PulsedNetwork
from pulse.rounding import Rounding
from pulse.support.record import record

BODIES_KEY = -1
"""The key, among the memories of nodes, of the count of faults in bodies."""


@record(eq=False)
class PlannedNode:
    """A node as every pulse runs it.

    node     the node
    name     its name
    op       its op, with the weights of its bodies rounded
    inputs   the outlets that it reads
    rounded  input slot -> the value that replaces what it reads
    outputs  its outlets
    dtypes   their dtypes, by their facts
    """

    node: int
    name: str
    op: Op
    inputs: tuple[OutletId, ...]
    rounded: Mapping[int, Array]
    outputs: tuple[OutletId, ...]
    dtypes: tuple[DType, ...]


class ReferenceProgram(Program):
    """A program that runs each op in numpy.

    arithmetic  how ops compute, as in ``TypedNetwork.run``
    computes    node -> the function that replaces the op's ``eval``
    """

    def __init__(
        self,
        model: PulsedNetwork,
        fetches: Sequence[OutletId] = (),
        rounding: Rounding = Rounding(),
        arithmetic: Arithmetic = NATIVE,
        computes: Mapping[int, OpFunction] | None = None,
    ) -> None:
        super().__init__(model, rounding)
        self.arithmetic = arithmetic
        self.computes = dict(computes or {})
        self.fetches = tuple(fetches)
        graph = model.graph
        self.order = graph.order([*model.targets, *self.fetches, *model.checks])
        self.unchecked = find_unchecked_bodies(model)
        nodes = [graph.nodes[node_id] for node_id in self.order]
        self.bodied = {node.id for node in nodes if node.op.bodies}
        self.read_back = model.is_reopened
        """Whether it is unknown which values belong to the stream; if so, the ops raise FaultError themselves."""
        looked_at = (node for node in nodes if node.id not in self.unchecked)
        sites = (site for node in looked_at for site in body_sites(node.name, node.op))
        self.sites = {site: index for index, site in enumerate(dict.fromkeys(sites))}
        """Checked operand in a body -> index of its counter."""
        rounded = {
            node.id: dict(rounded_operands(node.name, node.op, graph.input_facts(node), self.form))
            for node in nodes
        }
        """Node -> slot -> the f32 value of a weight's stored form, if it differs from the weight."""
        steps = [
            PlannedNode(
                node=node.id,
                name=node.name,
                op=with_rounded_bodies(node.name, node.op, self.form),
                inputs=tuple(node.inputs),
                rounded=rounded[node.id],
                outputs=tuple(node.wires),
                dtypes=tuple(outlet.fact.dtype for outlet in node.outputs),
            )
            for node in nodes
        ]
        self.ops = {step.node: step.op for step in steps}
        """Node -> its op, with the weights of its bodies rounded."""
        self.checked = {step.node for step in steps if type(step.op).checks is not Op.checks}
        """The nodes whose operands may have values without a result."""
        is_native = arithmetic is NATIVE
        self.constant_values = {
            step.outputs[0]: step.op.value
            for step in steps
            if is_native and isinstance(step.op, Const) and not is_symbolic(step.op.value)
        }
        """The values of constants, if each pulse would compute the same ones."""
        self.plan = [step for step in steps if step.outputs[0] not in self.constant_values]
        """The other nodes, in order."""

    @property
    def backend(self) -> str:
        return "numpy"

    def spawn(self, constants: Feed | None = None) -> "ReferenceState":
        return ReferenceState(self, constants)


class ReferenceState(State):
    """One stream in numpy arrays."""

    def __init__(self, program: ReferenceProgram, constants: Feed | None) -> None:
        super().__init__(program, constants)
        self._program = program
        self._memory: dict[int, list[Array]] = {}
        self._next: dict[int, list[Array]] = {}
        """The next memory, collected while a pulse runs; it replaces the memory when the pulse is complete."""
        self.counts_faults = bool(program.network.checks or program.sites)
        self.takes_nan_padding = not (program.read_back and program.checked)
        self._clear()

    def _clear(self) -> None:
        self._faults_before = 0
        nodes = self._program.network.graph.nodes
        self._memory = {BODIES_KEY: [np.zeros(len(self._program.sites), np.int64)]}
        self._memory |= {
            node_id: [self._program.arithmetic.take_input(array) for array in op.initial_state()]
            for node_id in self._program.order
            if isinstance(op := nodes[node_id].op, Stateful)
        }
        for register in self._program.network.registers:
            initial = self._program.arithmetic.take_input(register.initial)
            self._memory[register.read.node] = [initial.copy()]

    def _run(self, feed: Feed) -> dict[str, Array]:
        network, arithmetic = self._program.network, self._program.arithmetic
        graph = network.graph
        memory = {node_id: [array.copy() for array in arrays] for node_id, arrays in self._memory.items()}
        self._next = memory
        values = dict(self._program.constant_values)
        for step in self._program.plan:
            if isinstance(step.op, Source):
                if step.node in memory:
                    results: Sequence[Array] = memory[step.node]
                else:
                    value = feed[step.name] if step.name in feed else self.constants[step.name]
                    results = [arithmetic.take_input(value)]
            else:
                inputs = [values[outlet] for outlet in step.inputs]
                for slot, value in step.rounded.items():
                    inputs[slot] = value
                try:
                    results = arithmetic.evaluate(
                        step.op, inputs, step.dtypes, partial(self.evaluate, step.node)
                    )
                except (ValueError, IndexError) as error:
                    raise InputError(f"{step.name} ({step.op.name}): {error}") from error
            values.update(zip(step.outputs, results))
        fetched = [values[outlet] for outlet in self._program.fetches]
        outputs = {
            name: np.array(values[outlet])
            for name, outlet in zip(graph.output_names, graph.outputs, strict=True)
        }
        for register in network.registers:
            memory[register.read.node] = [np.array(values[register.write])]
        self.changing = True
        self._memory, self.fetched = memory, fetched
        return outputs

    def evaluate(self, node_id: int, inputs: Sequence[Array]) -> Sequence[Array]:
        op = self._program.ops[node_id]
        if isinstance(op, Stateful):
            return self._with_bodies(node_id, lambda: op.step(inputs, self._next[node_id], self.clock))
        if self._program.read_back:
            return op.eval(inputs, {})
        values = inputs
        if node_id in self._program.checked:
            checks = op.checks([value.shape for value in inputs], [value.dtype for value in inputs])
            # faults are counted by separate nodes; most of these values do not belong to the stream
            values, _ = replace_all_failing(checks, inputs)
        compute = self._program.computes.get(node_id)
        if compute is not None:
            return compute(op, values)
        return self._with_bodies(node_id, lambda: op.eval(values, {}))

    def _with_bodies(self, node_id: int, compute: Callable[[], list[Array]]) -> list[Array]:
        """Compute a node and count the faults in its bodies."""
        if node_id not in self._program.bodied:
            return compute()
        tally = Tally(path=[self._program.network.graph.nodes[node_id].name])
        results = count_faults(tally, compute)
        if node_id not in self._program.unchecked:
            (counts,) = self._next[BODIES_KEY]
            for site, count in tally.counts.items():
                counts[self._program.sites[site]] += count
        return results

    @property
    def has_faulted(self) -> bool:
        return sum(count for _, count in self._counts()) != self._faults_before

    def take_faults(self) -> int:
        faults_before, self._faults_before = self._faults_before, sum(count for _, count in self._counts())
        return self._faults_before - faults_before

    def _counts(self) -> Iterator[tuple[Site, int]]:
        graph = self._program.network.graph
        for outlet in self._program.network.checks:
            op = graph.node(outlet).op
            assert isinstance(op, CountFaults)
            yield (op.node, op.op, op.check), int(self._memory[outlet.node][0][0])
        for site, word in self._program.sites.items():
            yield site, int(self._memory[BODIES_KEY][0][word])

    def _set_end(self) -> None:
        """Do nothing: every op reads the clock itself."""

    def _memory_bytes(self) -> bytes:
        return b"".join(array.tobytes() for arrays in self._memory.values() for array in arrays)

    def _set_memory_bytes(self, memory: bytes) -> None:
        parts = split_memory(memory, [array for arrays in self._memory.values() for array in arrays])
        self.changing = True
        self._faults_before = 0
        self._memory = {node: [next(parts).copy() for _ in arrays] for node, arrays in self._memory.items()}

    def _copy_memory(self) -> tuple[dict[int, list[Array]], int]:
        return self._memory, self._faults_before  # each pulse makes a new memory

    def _restore_memory(self, memory: tuple[dict[int, list[Array]], int]) -> None:
        self._memory, self._faults_before = memory
