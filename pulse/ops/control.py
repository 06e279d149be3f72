"""A body that is repeated until its condition is false."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.errors import FactError, InputError
from pulse.facts import Array, TypedFact
from pulse.ops.arithmetic import arithmetic_in_use
from pulse.ops.control_iterations import iteration_counter
from pulse.ops.op import Env, Op, Relation, Whole
from pulse.ops.work import Work, graph_work, iteration_seconds
from pulse.support.record import record
from pulse.support.wording import count_of
from pulse.typed import OfflineRun, TypedGraph, TypedNetwork

MAX_ITERATIONS = 1 << 20
"""Maximum number of iterations of a loop without a trip count; more are an error."""


@record(eq=False)
class Loop(Op):
    """Run a body again and again; states go from each iteration to the next.

    condition, states, gathered[j] = body(j, condition, states, captured)   while condition and j < limit

    Inputs   initial states…, captured…; preceded by limit i64 and condition bool (scalars) if ``iterations`` is None
    Outputs  the last states; the gathered values of all iterations, stacked along a new first axis of ``iterations``
    Stream   whole
    Raises   FactError: states that change their shape
    Source   ONNX Loop-25

    body        takes ``names`` and ``captured``, if it reads them
    names       its inputs: the number of the iteration, condition, the states
    captured    its inputs that do not change
    iterations  their number, if it does not depend on data; it may be a length
    """

    iterates = True

    body: TypedNetwork
    names: tuple[str, ...]
    captured: tuple[str, ...]
    iterations: TDim | None

    @property
    def bodies(self) -> Sequence[TypedGraph]:
        return (self.body.graph,)

    def with_bodies(self, change: Callable[[TypedNetwork], TypedNetwork]) -> "Loop":
        return replace(self, body=change(self.body))

    def facts(self, inputs: Sequence[TypedFact]) -> list[TypedFact]:
        count = len(self.names) - 2
        results = [self.body.graph.fact(outlet) for outlet in self.body.graph.outputs][1:]
        states = inputs[self._first_state :][:count]
        for name, before, after in zip(self.names[2:], states, results):
            if not before.agrees(after):
                raise FactError(f"its state {name} begins as {before} and continues as {after}")
        gathered = results[count:]
        if gathered and self.iterations is None:
            raise FactError(
                "how often it runs depends on data, so the length of what it gathers is not known"
            )
        iterations = TDim.of(0) if self.iterations is None else self.iterations
        last = [TypedFact(fact.dtype, fact.shape) for fact in states]
        return [*last, *(TypedFact(fact.dtype, (iterations, *fact.shape)) for fact in gathered)]

    @property
    def _first_state(self) -> int:
        """The input that is the first state."""
        return 2 if self.iterations is None else 0

    def eval(self, inputs: Sequence[Array], env: Env) -> list[Array]:
        count, first = len(self.names) - 2, self._first_state
        limit, condition = (
            (int(inputs[0]), bool(inputs[1]))
            if self.iterations is None
            else (self.iterations.eval(env), True)
        )
        states, outer_values = list(inputs[first:][:count]), dict(zip(self.captured, inputs[first + count :]))
        outlets = self.body.graph.outputs[1 + count :]
        scan_outputs: list[list[Array]] = [[] for _ in outlets]
        count_iteration = iteration_counter(self, inputs) if self.iterations is None else None
        run = OfflineRun(self.body, list(self.body.inputs))
        iteration = 0
        while condition and iteration < limit:
            if iteration == MAX_ITERATIONS:
                raise InputError(
                    f"{self.body.title}: the loop has not stopped after {count_of(iteration, 'iteration')}"
                )
            if count_iteration is not None:
                count_iteration()
            feeds = dict(zip(self.names, (np.array(iteration), np.array(condition), *states))) | outer_values
            results = run(feeds, arithmetic_in_use().without_noise)
            values = [results[name] for name in self.body.graph.output_names]
            condition, states = bool(values[0]), values[1 : 1 + count]
            for frames, value in zip(scan_outputs, values[1 + count :]):
                frames.append(value)
            iteration += 1
        facts = [self.body.graph.fact(outlet) for outlet in outlets]
        empty = [np.zeros((0, *(dim.eval(env) for dim in fact.shape)), fact.dtype) for fact in facts]
        return [
            *states,
            *(
                np.concatenate([no_frames, *(frame[None] for frame in frames)])
                for no_frames, frames in zip(empty, scan_outputs)
            ),
        ]

    def work(self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Work:
        """Return the work of all iterations; of one if their number is not known."""
        return graph_work(self.body.graph).times(self.iterations or TDim.of(1))

    def eval_seconds(
        self, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact], size: Callable[[TDim], int]
    ) -> float:
        return size(self.iterations or TDim.of(1)) * iteration_seconds(self.body.graph, size)

    def relation(self, inputs: Sequence[TypedFact], axes: Sequence[int | None]) -> Relation:
        return Whole(
            "a loop reads all of its inputs in every iteration",
            "export a loop over frames as Scan, or give it a constant trip count",
        )

    def detail(self) -> str:
        times = "until it stops" if self.iterations is None else count_of(self.iterations, "time")
        return f"{count_of(len(self.body.graph.nodes), 'node')}, {times}"
