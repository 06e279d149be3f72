"""Control: changes to a running pipeline, applied between two pulses."""

import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext

from pulse.errors import InputError, PulseError
from pulse.facts import Array
from pulse.program.program import Program
from streaming.live.instances import Instances, live_inputs, require_same_ports
from streaming.live.pipeline import Pipeline
from streaming.native import control_block as cb
from streaming.native import positions
from streaming.native.commands import apply_now, give_command, withdraw_command
from streaming.routing import playable_output

ANSWER_TIMEOUT_S = 2.0
"""A command that no pulse has taken by then is an error: the device may have stopped."""
POLL_S = 0.0005
"""The seconds between two looks at the answer of a command."""
PRIME_S = 1.0
"""How long a new program runs alongside the old one before a swap."""


class Control:
    """Changes the output of a pipeline, and the states of its streams, without a gap.

    pipeline  a pipeline, running or not yet
    running   whether the pipeline is computing pulses; if not, commands take effect at once
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._lock = threading.RLock()
        self._running = False
        self._muted = self._bypassed = False

    @property
    def running(self) -> bool:
        """Whether the pipeline is computing pulses. Changes only between two commands."""
        return self._running

    @running.setter
    def running(self, value: bool) -> None:
        with self._lock:
            self._running = value

    @property
    def muted(self) -> bool:
        """Whether the output is silent; the model keeps running."""
        return self._muted

    @muted.setter
    def muted(self, value: bool) -> None:
        with self._lock:
            self._muted = value
            self._set_target_gains()

    @property
    def bypassed(self) -> bool:
        """Whether the input is played instead, with the delay of the model's output; the model keeps running."""
        return self._bypassed

    @bypassed.setter
    def bypassed(self, value: bool) -> None:
        with self._lock:
            self._bypassed = value
            self._set_target_gains()

    def snapshot(self) -> list[bytes]:
        """Return the states of all streams at one moment, each as from ``State.snapshot``.

        Raises PulseError: no pulse ends in time
        """
        with self._lock:
            instances = self._current_instances()
            if not self._pipeline.native:
                with self._pipeline.python_lock:
                    return [state.snapshot() for state in instances.states]
            memory = instances.new_memory()
            self._run_command(cb.SAVE, memory)
            return instances.make_snapshots(memory, self._pipeline.control_block.saved_state_pulses)

    def restore(self, snapshots: list[bytes]) -> None:
        """Restore every stream from its snapshot, before the next pulse.

        Raises InputError: the snapshots do not fit; PulseError: no pulse ends in time
        """
        with self._lock:
            memory, pulses = self._current_instances().read_snapshots(snapshots)
            self._load(memory, pulses, snapshots)

    def reset(self) -> None:
        """Restart every stream with the next pulse. Raises PulseError: no pulse ends in time."""
        with self._lock:
            self._load(self._current_instances().initial_memory(), 0, ())

    def swap(self, program: Program, prime_s: float = PRIME_S) -> None:
        """Switch to another program without a gap.

        Both programs run for ``prime_s`` seconds of audio, or for the delay of the pipeline if that is longer: if the
        new one remembers no more, its memory is then filled with real frames. Then the audio crossfades within one
        pulse. Until then, both use processor time.
        Raises InputError: the pulse, inputs or outputs differ, or the delay exceeds the pipeline's memory
        """
        with self._lock:
            self._current_instances()
            pipeline = self._pipeline
            if not pipeline.native:
                raise PulseError(
                    f"swap: {pipeline.program.model.title} runs on {pipeline.program.backend}, in Python; only a "
                    "program that runs entirely on the numba backend can be replaced while it runs"
                )
            require_same_ports(pipeline.program, program)
            pipeline.require_threads(program, pipeline.engine_config)
            sound = None
            if pipeline.stream_config.channels_out:
                sound = playable_output(program, live_inputs(program)[0], pipeline.engine_config.output)
            if pipeline.engine_config.records and [port.delay for port in program.outputs] != [
                port.delay for port in pipeline.program.outputs
            ]:
                raise InputError(
                    f"{program.model.title}: its outputs are later or earlier than those that are delivered"
                )
            instances = Instances(
                program, pipeline.stream_count, sound, pipeline.constants, pipeline.model_delay_frames
            )
            if not instances.native:
                raise InputError(
                    f"{program.model.title}: runs on {program.backend}, in Python; compile all of it for the numba "
                    "backend to take over while others run"
                )
            frames = max(round(prime_s * pipeline.stream_config.rate_hz), pipeline.model_delay_frames)
            try:
                self._run_command(cb.SWAP, instances.memory, -(-frames // program.pulse) + 1)
            finally:
                pipeline.set_successors(instances)

    @property
    def is_swapping(self) -> bool:
        """Whether a swap is in progress: another program runs alongside the one that is played."""
        return self._pipeline.is_swapping

    def restart(self) -> None:
        """Prepare the pipeline for devices that were closed and will be opened again.

        Raises PulseError: no pulse ends in time
        """
        with self._lock, nullcontext() if self._pipeline.native else self._pipeline.python_lock:
            self._run_command(cb.RESTART, self._pipeline.control_block.words)

    def _set_target_gains(self) -> None:
        gains = self._pipeline.memory.gains
        gains.wanted_model = 0.0 if self._muted or self._bypassed else 1.0
        gains.wanted_bypass = 1.0 if self._bypassed and not self._muted else 0.0

    def _current_instances(self) -> Instances:
        if self.is_swapping:
            raise PulseError("another program is about to take over: wait until `is_swapping` is False")
        return self._pipeline.instances

    def _load(self, memory: Array, pulses: int, snapshots: Sequence[bytes]) -> None:
        """Load new memory into all states; states in Python restart, or restore snapshots."""
        if self._pipeline.native:
            self._run_command(cb.LOAD, memory, pulses)
            return
        with self._pipeline.python_lock:
            for index, state in enumerate(self._pipeline.instances.states):
                state.reset()
                if snapshots:
                    state.restore(snapshots[index])
            self._run_command(cb.LOAD, memory, pulses)

    def _run_command(self, command: int, memory: Array, pulses: int = 0) -> None:
        """Run a command, which uses this memory until it is done. Raises PulseError: it was not done.

        On return or on any exception, Ctrl-C included, the command is either done or withdrawn.
        """
        pipeline = self._pipeline
        end = time.monotonic() + ANSWER_TIMEOUT_S
        try:
            give_command.call(pipeline.address, command, memory.ctypes.data, pulses)
            if not (self.running and pipeline.native):
                apply_now.call(pipeline.address)
            while positions.load(pipeline.control_block, "command") != cb.NONE:
                if time.monotonic() > end and withdraw_command.call(pipeline.address, command):
                    raise PulseError(
                        f"no pulse has ended within {ANSWER_TIMEOUT_S} s: the device may have stopped"
                    )
                time.sleep(POLL_S)
        finally:
            while positions.load(pipeline.control_block, "command") != cb.NONE:
                withdraw_command.call(pipeline.address, command)
