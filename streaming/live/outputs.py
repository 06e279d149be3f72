"""Outputs: the outputs of the model in a live run, for Python."""

from collections.abc import Mapping
from itertools import groupby

import numpy as np

from pulse.facts import Array
from streaming.blocks.output_trim import OutputTrim
from streaming.live.pipeline import Pipeline, PulseRecord


class Outputs:
    """Valid frames of every output, in order, from the records of a pipeline.

    pipeline  a pipeline with ``EngineConfig.records`` set

    After states are loaded, all frames are from the new ones; the last frames of the old ones never arrive.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._load_count: int = 0
        self._output_trims = self._new(0)

    @property
    def pulses_lost(self) -> int:
        """Pulses whose outputs were not taken in time."""
        return self._pipeline.control_block.records_lost

    def take_ready(self) -> list[dict[str, Array]]:
        """Return each stream's outputs since the last call, as ``Session.push`` returns them."""
        parts = self._take_frames([])
        for load_count, group in groupby(self._pipeline.take_records(), lambda record: record.load_count):
            records = list(group)
            self._begin(load_count, records[0].state_pulses)
            parts = [join_frames(*pair, self._pipeline) for pair in zip(parts, self._take_frames(records))]
        return parts

    def flush(self) -> list[dict[str, Array]]:
        """End the streams and return their last frames. The pipeline must no longer be used elsewhere.

        Raises InputError: the model does not take this length
        """
        earlier, control = self.take_ready(), self._pipeline.control_block
        control.out_channels = 0  # playing has stopped, so further output needs no space
        self._pipeline.pump()
        parts = [join_frames(*pair, self._pipeline) for pair in zip(earlier, self.take_ready())]
        self._begin(control.load_count, control.state_pulse_offset + control.pulses)
        filled_frames, instances = control.filled_frames, self._pipeline.instances
        ends: list[dict[str, Array]] = []
        for index, (state, output_trim) in enumerate(zip(instances.states, self._output_trims)):
            pulses_run = instances.structs[index].pulses_run
            if self._pipeline.native:
                state.clock.pulse = pulses_run
            pulse, limit = state.program.pulse, state.program.limit
            remaining_frames = (
                filled_frames if limit is None else min(filled_frames, limit - pulses_run * pulse)
            )
            output_trim.check_end(pulses_run * pulse + remaining_frames)
            results = state.flush(
                instances.model_inputs(self._pipeline.memory.slots[index], remaining_frames),
                complete=True,
            )
            control.faults += state.take_faults()
            earlier = (output_trim.pulses - pulses_run) * pulse
            end = earlier + (state.clock.end or 0)
            output_trim.end_at(end, state.clock.completed, earlier + state.clock.whole)
            ready = output_trim.take(results, len(results))
            ends.append({**join_frames(parts[index], ready, self._pipeline), **output_trim.final_outputs()})
        return ends

    def _begin(self, load_count: int, state_pulses: int) -> None:
        """Start over if states have been loaded; they have run ``state_pulses``."""
        if load_count != self._load_count:
            self._load_count = load_count
            self._output_trims = self._new(state_pulses)

    def _new(self, pulses: int) -> list[OutputTrim]:
        trims = [OutputTrim(self._pipeline.program) for _ in range(self._pipeline.stream_count)]
        for output_trim in trims:
            output_trim.begin_at(pulses)
        return trims

    def _take_frames(self, records: list[PulseRecord]) -> list[dict[str, Array]]:
        return [
            output_trim.take((record.outputs[index] for record in records), len(records))
            for index, output_trim in enumerate(self._output_trims)
        ]


def join_frames(
    first: Mapping[str, Array], second: Mapping[str, Array], pipeline: Pipeline
) -> dict[str, Array]:
    """Concatenate the frames of each output."""
    axes = {port.name: port.axis or 0 for port in pipeline.program.outputs}
    return {name: np.concatenate([first[name], second[name]], axes[name]) for name in first}
