"""The original module of an exported model; a proof compares the streams with it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pulse.chunks.chunking import CallPlan
from pulse.errors import InputError
from pulse.facts import Array
from pulse.interface import Interface
from pulse.proof.oracle import Feeds
from pulse.support.record import record
from pulse.torch.arguments import ModuleCall
from pulse.torch.inputs import SampledInputs, draw_inputs
from pulse.torch.module import ModuleOracle, to_array
from pulse.torch.preservation import preserve_state
from pulse.torch.states import StateLeaf


@record(eq=False)
class ModuleOriginal:
    """A module, how it is called, and what each call passes on to the next; see ``pulse.proof.original.Original``.

    torch    the package
    module   the module
    call     its example and its dynamic axes
    name     the name of its class, and its method
    outputs  their names in the model
    states   the tensors that a call passes on to the next one
    dtype    the float type to compute in; None: the module's own
    """

    torch: Any
    module: Any
    call: ModuleCall
    name: str
    outputs: Sequence[str]
    states: Sequence[StateLeaf]
    dtype: Any

    @property
    def title(self) -> str:
        """Its name, for reports."""
        return f"the module {self.name}"

    def draw(self, model: Interface, frames: int, seed: int) -> dict[str, Array]:
        """Return frames of the example in random order; for a module of chunks, whole ones."""
        leaves = self.call.leaves(self.torch)
        unit = model.chunks.pulse if isinstance(model.chunks, CallPlan) else 1
        frames = -(-frames // unit) * unit
        samples: dict[str, SampledInputs] = {}
        lengths: dict[str, int] = {}
        for port in model.inputs:
            symbol = str(port.length)
            samples[port.name] = SampledInputs(
                to_array(self.torch, leaves[port.name]), {} if port.axis is None else {port.axis: symbol}
            )
            lengths[symbol] = port.length.eval({model.symbol: frames})
        return draw_inputs(samples, lengths, np.random.default_rng((seed, frames)))

    def run(self, model: Interface, feeds: Feeds, precise: bool = False) -> dict[str, Array]:
        """Return its outputs; the chunks of a module of chunks are joined, without the frames of their delay.

        precise  whether to compute in f64
        Raises   InputError: the module raises
        """
        with preserve_state(self.torch, self.module, self.call) as state:
            dtype = self.torch.float64 if precise else self.dtype
            oracle = ModuleOracle(self.torch, self.module, self.call, state.restore_eval, self.outputs, dtype)
            if isinstance(model.chunks, CallPlan):
                return self._run_chunks(oracle, model.chunks, model, feeds)
            return oracle(dict(feeds))

    def _run_chunks(
        self, oracle: ModuleOracle, plan: CallPlan, model: Interface, feeds: Feeds
    ) -> dict[str, Array]:
        """Call it chunk by chunk, each call with the states of the call before."""
        carried = {state.input: state.initial for state in self.states}
        streams: dict[str, tuple[int, int, Array]] = {}
        for port in plan.inputs:
            if port.axis is not None:
                past = plan.context.get(port.name, 0)
                widths = [(past if axis == port.axis else 0, 0) for axis in range(feeds[port.name].ndim)]
                streams[port.name] = port.axis, port.frames, np.pad(feeds[port.name], widths)
        first = next(iter(streams))
        axis, frames, _ = streams[first]
        results: list[dict[str, Array]] = []
        for chunk_index in range(feeds[first].shape[axis] // frames):
            chunk = {
                name: whole.take(
                    range(chunk_index * new, (chunk_index + 1) * new + plan.context.get(name, 0)), along
                )
                for name, (along, new, whole) in streams.items()
            }
            result = oracle({**feeds, **chunk, **carried})
            values = list(result.values())
            carried = {state.input: values[state.output] for state in self.states}
            results.append(result)
        if not results:
            raise InputError("the stream is shorter than a chunk")
        joined: dict[str, Array] = {}
        for port in plan.outputs:
            values = [result[port.name] for result in results]
            if port.axis is None:
                joined[port.name] = values[-1]
                continue
            whole = np.concatenate(values, port.axis)
            dropped = min(_dropped_frames(model, port.name), whole.shape[port.axis])
            joined[port.name] = whole.take(range(dropped, whole.shape[port.axis]), port.axis)
        return joined


def _dropped_frames(model: Interface, output: str) -> int:
    return next((port.delay for port in model.outputs if port.name == output), 0)
