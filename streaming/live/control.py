"""Control: what may be changed between two pulses while a pipeline runs."""

import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext

from pulse.errors import InputError, PulseError
from pulse.facts import Array
from pulse.program.program import Program
from streaming.live.instances import Instances, live_inputs, require_same_ports, sound_output
from streaming.live.pipeline import Pipeline
from streaming.native import control_block as cb
from streaming.native import positions
from streaming.native.commands import apply_now, give_command, take_back

ANSWER_S = 2.0
POLL_S = 0.0005
PRIME_S = 1.0


class Control:
    """Changes the output of a pipeline, and the states of its streams, without a gap.

    pipeline  a pipeline, running or not yet
    running   whether its pulses are being computed; if not, commands are carried out at once
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._lock = threading.RLock()
        self._running = False
        self._muted = self._bypassed = False

    @property
    def running(self) -> bool:
        """Whether the pipeline's pulses are computed. It changes only between two commands."""
        return self._running

    @running.setter
    def running(self, value: bool) -> None:
        with self._lock:
            self._running = value

    @property
    def muted(self) -> bool:
        """Whether the output is silent; the model continues."""
        return self._muted

    @muted.setter
    def muted(self, value: bool) -> None:
        with self._lock:
            self._muted = value
            self._fade()

    @property
    def bypassed(self) -> bool:
        """Whether the input is played, with the delay of the model's sound; the model continues."""
        return self._bypassed

    @bypassed.setter
    def bypassed(self, value: bool) -> None:
        with self._lock:
            self._bypassed = value
            self._fade()

    def snapshot(self) -> list[bytes]:
        """The state of every stream, all of one moment, each as ``State.snapshot`` gives it. Raises PulseError."""
        with self._lock:
            instances = self._current_instances()
            if not self._pipeline.native:
                with self._pipeline.turn:
                    return [state.snapshot() for state in instances.states]
            memory = instances.new_memory()
            self._command(cb.SAVE, memory)
            return instances.pack(memory, self._pipeline.control_block.saved)

    def restore(self, snapshots: list[bytes]) -> None:
        """Let every stream go on from a snapshot with the next pulse. Raises InputError, PulseError."""
        with self._lock:
            memory, pulses = self._current_instances().unpack(snapshots)
            self._load(memory, pulses, snapshots)

    def reset(self) -> None:
        """Let every stream begin anew with the next pulse. Raises PulseError."""
        with self._lock:
            self._load(self._current_instances().initial_memory(), 0, ())

    def swap(self, program: Program, prime_s: float = PRIME_S) -> None:
        """Let another program take over without a gap.

        It runs beside the current one for ``prime_s`` seconds of sound, or until its delay is over, so that it
        has seen as many frames as its memory covers; then the sound fades over within a pulse. Until then both cost
        their time.
        Raises InputError: another pulse, other inputs or outputs, or a delay that the pipeline has no memory for
        """
        with self._lock:
            self._current_instances()
            pipeline = self._pipeline
            if not pipeline.native:
                raise PulseError(
                    f"swap: {pipeline.program.model.title} runs on {pipeline.program.backend}, in Python; only a "
                    "program wholly of the numba backend gives way while it runs"
                )
            require_same_ports(pipeline.program, program)
            pipeline.require_threads(program, pipeline.engine_config)
            sound = None
            if pipeline.stream_config.channels_out:
                sound = sound_output(program, live_inputs(program)[0], pipeline.engine_config.output)
            if pipeline.engine_config.records and [port.delay for port in program.outputs] != [
                port.delay for port in pipeline.program.outputs
            ]:
                raise InputError(
                    f"{program.model.title}: its outputs are later or earlier than those that are delivered"
                )
            instances = Instances(program, pipeline.streams, sound, pipeline.constants, pipeline.model_delay)
            if not instances.native:
                raise InputError(
                    f"{program.model.title}: runs on {program.backend}, in Python; compile all of it for the numba "
                    "backend to take over while others run"
                )
            frames = max(round(prime_s * pipeline.stream_config.rate_hz), pipeline.model_delay)
            try:
                self._command(cb.SWAP, instances.memory, -(-frames // program.pulse) + 1)
            finally:
                pipeline.set_successors(instances)

    @property
    def swapping(self) -> bool:
        """Whether another program runs beside the one that is played."""
        return self._pipeline.is_swapping

    def restart(self) -> None:
        """The devices are closed and will be opened again: let the pipeline be ready for them. Raises PulseError."""
        with self._lock, nullcontext() if self._pipeline.native else self._pipeline.turn:
            self._command(cb.RESTART, self._pipeline.control_block.words)

    def _fade(self) -> None:
        gains = self._pipeline.memory.gains
        gains.wanted_model = 0.0 if self._muted or self._bypassed else 1.0
        gains.wanted_bypass = 1.0 if self._bypassed and not self._muted else 0.0

    def _current_instances(self) -> Instances:
        if self.swapping:
            raise PulseError("another program is about to take over: wait until `swapping` is False")
        return self._pipeline.instances

    def _load(self, memory: Array, pulses: int, snapshots: Sequence[bytes]) -> None:
        """Give all states other memory; those in Python begin anew, or restore snapshots."""
        if self._pipeline.native:
            self._command(cb.LOAD, memory, pulses)
            return
        with self._pipeline.turn:
            for number, state in enumerate(self._pipeline.instances.states):
                state.reset()
                if snapshots:
                    state.restore(snapshots[number])
            self._command(cb.LOAD, memory, pulses)

    def _command(self, command: int, memory: Array, number: int = 0) -> None:
        """Have a command done, which needs this memory until then. Raises PulseError: it is not done.

        However this ends, by Ctrl-C too, the command is done or taken back.
        """
        pipeline = self._pipeline
        end = time.monotonic() + ANSWER_S
        try:
            give_command.call(pipeline.address, command, memory.ctypes.data, number)
            if not (self.running and pipeline.native):
                apply_now.call(pipeline.address)
            while positions.load(pipeline.control_block, "command") != cb.NONE:
                if time.monotonic() > end and take_back.call(pipeline.address, command):
                    raise PulseError(f"no pulse has ended within {ANSWER_S} s: the device may have stopped")
                time.sleep(POLL_S)
        finally:
            while positions.load(pipeline.control_block, "command") != cb.NONE:
                take_back.call(pipeline.address, command)
