"""Instances: the states of one program, one for each stream of a pipeline, and their structs for compiled code."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from pulse.errors import InputError
from pulse.facts import Array
from pulse.interface import MAX_CHANNELS, Port
from pulse.jit.rows.fields import FLOAT_BYTES
from pulse.ops.clock import frames_at
from pulse.program.machine.packed import PackedCall, pack
from pulse.program.native.native_state import NativeState
from pulse.program.program import Program
from pulse.program.streams.state import State
from pulse.program.table.memory import align
from pulse.support.bounds import UNBOUNDED
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import count_of
from streaming.audio.channels import InputChannel, OutputChoice
from streaming.native.control_block import Instance, Sound


class Instances(NotCopyable, reason="it holds addresses of this process; make another one"):
    """The states of a program, one for each stream.

    program     a program whose streaming inputs are sound
    sound       what to play of its outputs; None for nothing
    constants   the inputs that do not stream, by name
    delay       the delay of the audio in frames, the model's own delay included
    Raises      InputError: another input streams, or the delay is too short
    """

    def __init__(
        self,
        program: Program,
        streams: int,
        sound: OutputChoice | None,
        constants: Mapping[str, Array],
        delay: int,
    ) -> None:
        self.program = program
        self.inputs = live_inputs(program)
        self.sound = sound
        sizes = [align(prod(port.shape) * FLOAT_BYTES) // FLOAT_BYTES for port in self.inputs]
        self._slot_offsets = [sum(sizes[:index]) for index in range(len(sizes))]
        self.slot_floats = sum(sizes)
        """The size of the packed inputs of one stream."""
        self.states: list[State] = [program.spawn(constants) for _ in range(streams)]
        for state in self.states:
            state.stops_at_faults = False
        self.packed = [_pack(state) for state in self.states]
        self.native = all(isinstance(state, NativeState) for state in self.states)
        conversion_delay = sound.port.delay if sound is not None else 0
        if delay < conversion_delay:
            raise InputError(
                f"{program.model.title}: delays the audio by {count_of(conversion_delay, 'frame')}, "
                f"but the pipeline reserves {delay}; start with a larger reserve"
            )
        self._outputs = np.zeros((streams, max(self.packed[0].output_bytes, 64)), np.uint8)
        self._memories = [_memory(state) for state in self.states]
        memory = Instance.new(streams)
        self.memory = memory.words
        """The memory of the ``Instance`` structs."""
        self.structs = [memory[index] for index in range(streams)]
        channels = 0 if sound is None else len(sound.channels)
        self._sounds = Sound.new(max(streams * channels, 1))
        self._samples = np.zeros((streams, channels, program.pulse), np.float32)
        self._delay_lines = np.zeros((streams, channels, max(delay - conversion_delay, 1)), np.float32)
        for index, instance in enumerate(self.structs):
            instance.packed = self.packed[index].call.address
            instance.slot_out = self._outputs[index].ctypes.data
            instance.sounds = self._sounds[index * channels].address
            instance.delay_left_frames = instance.delay_frames = conversion_delay
            instance.memory = self._memories[index].ctypes.data
            instance.memory_bytes = self._memories[index].size
            instance.max_pulses = UNBOUNDED if program.limit is None else program.limit // program.pulse
            if sound is not None:
                self._set_up_sounds(index, sound, delay - conversion_delay)

    def _set_up_sounds(self, stream: int, choice: OutputChoice, added_delay_frames: int) -> None:
        """Set up the played channels of a stream."""
        tensor = next(t for t in self.packed[stream].outputs if t.name == choice.port.name)
        for index, channel in enumerate(choice.channels):
            sound = self._sounds[stream * len(choice.channels) + index]
            start, sound.step = choice.port.sound_layout(channel)
            sound.source = self._outputs[stream].ctypes.data + tensor.offset + start * FLOAT_BYTES
            sound.samples = self._samples[stream, index].ctypes.data
            sound.delay_line = self._delay_lines[stream, index].ctypes.data
            sound.delay_line_frames = added_delay_frames

    @property
    def address(self) -> int:
        """The address of the first ``Instance`` struct."""
        return self.memory.ctypes.data

    @property
    def output_bytes(self) -> int:
        """The size in bytes of the packed outputs of one stream."""
        return self.packed[0].output_bytes

    def new_memory(self) -> Array:
        """Allocate memory for the states of all streams."""
        return np.zeros(sum(memory.size for memory in self._memories), np.uint8)

    def initial_memory(self) -> Array:
        """Return the memory of states before their first pulse."""
        fresh = [_memory(self.program.spawn(state.constants)) for state in self.states]
        return np.concatenate(fresh)

    def make_snapshots(self, memory: Array, pulses: int) -> list[bytes]:
        """Return snapshots of the states, from their memory after this many pulses."""
        snapshots: list[bytes] = []
        for part, state in zip(self._parts(memory), self.states):
            spare = self.program.spawn(state.constants)
            _memory(spare)[:] = part
            spare.clock.pulse = pulses
            snapshots.append(spare.snapshot())
        return snapshots

    def read_snapshots(self, snapshots: Sequence[bytes]) -> tuple[Array, int]:
        """Return the memory in snapshots, and how many pulses the states had run.

        Raises InputError: their number is wrong, or they are not of one moment of this program
        """
        if len(snapshots) != len(self.states):
            raise InputError(f"{len(snapshots)} snapshots for {len(self.states)} streams: give one for each")
        memory, counts = self.new_memory(), set[int]()
        for part, state, snapshot in zip(self._parts(memory), self.states, snapshots):
            spare = self.program.spawn(state.constants)
            spare.restore(snapshot)
            if spare.clock.end is not None:
                raise InputError("the snapshot is of a stream that has ended")
            part[:] = _memory(spare)
            counts.add(spare.clock.pulse)
        if len(counts) != 1:
            raise InputError("the snapshots are not from the same moment: pass those that one call returned")
        return memory, counts.pop()

    def _parts(self, memory: Array) -> list[Array]:
        sizes = [state_memory.size for state_memory in self._memories]
        return [memory[end - size : end] for end, size in zip(np.cumsum(sizes), sizes)]

    def outputs(self, record: Array) -> list[dict[str, Array]]:
        """Return copies of each stream's outputs, from the bytes after a record's header."""
        parts = record.reshape(len(self.states), -1)
        return [
            {tensor.name: tensor.view(part).copy() for tensor in self.packed[0].outputs} for part in parts
        ]

    def faults(self) -> list[str]:
        """Return descriptions of the faults: values for which a node had no result, by node and stream."""
        names_stream = len(self.states) > 1
        return [
            f"{f'stream {index}: ' if names_stream else ''}{fault}"
            for index, state in enumerate(self.states)
            for fault in state.faults
        ]

    def slot_layout(self, channel: InputChannel) -> tuple[int, int]:
        """Return the index of a channel's first value in the packed inputs, and the step to its next one."""
        start, step = channel.port.sound_layout(channel.index)
        return self._slot_offsets[self.inputs.index(channel.port)] + start, step

    def model_inputs(self, slots: NDArray[np.float32], frames: int) -> dict[str, Array]:
        """Return the first frames of a stream's packed inputs as the model's inputs."""
        arrays = {
            port.name: slots[offset : offset + prod(port.shape)].reshape(port.shape)
            for port, offset in zip(self.inputs, self._slot_offsets)
        }
        return {port.name: frames_at(arrays[port.name], port.axis or 0, 0, frames) for port in self.inputs}

    def run(self, slots: NDArray[np.float32]) -> int:
        """Run a pulse in Python, for programs that are not compiled: packed inputs of streams into packed outputs.

        Returns the number of values for which a node had no result.
        """
        faults = 0
        for index, state in enumerate(self.states):
            results = state.step(self.model_inputs(slots[index], self.program.pulse))
            faults += state.take_faults()
            for tensor in self.packed[index].outputs:
                tensor.view(self._outputs[index])[...] = results[tensor.name]
        return faults


def _memory(state: State) -> Array:
    return state.memory if isinstance(state, NativeState) else np.zeros(1, np.uint8)


def _pack(state: State) -> PackedCall:
    if isinstance(state, NativeState):
        return state.pack()
    outputs = [(port.name, np.zeros(port.shape, port.dtype)) for port in state.program.outputs]
    layout = pack((0, 0, 0), [], outputs, [], {})
    empty = pack((0, 0, 0), [], [], [], {})
    return PackedCall(empty.call, empty.kept, (), layout.outputs, 0, layout.output_bytes)


def live_inputs(program: Program) -> list[Port]:
    """Return the audio inputs of a model, in order. Raises InputError: an input other than sound streams."""
    streaming = [port for port in program.inputs if port.streams]
    if streaming and all(port.channels and port.frames == program.pulse for port in streaming):
        return streaming
    port_texts = "; ".join(port.label for port in program.inputs)
    raise InputError(
        f"{program.model.title}: takes {port_texts}, not sound; in a live run all inputs that stream are sound, "
        f"float32, of one to {MAX_CHANNELS} channels: a recipe adds the stages before such a model, see "
        "docs/recipes.md, and audio of more channels runs as .npy, not live"
    )


def require_same_ports(old: Program, new: Program) -> None:
    """Raise InputError unless ``new`` can take the place of ``old`` between two pulses."""

    def descriptions(ports: Sequence[Port]) -> list[tuple[object, ...]]:
        return [(port.name, port.shape, port.dtype, port.streams) for port in ports]

    if old.pulse != new.pulse:
        raise InputError(
            f"{new.model.title}: has pulses of {count_of(new.pulse, 'frame')} where {old.pulse} are running; "
            "compile it for those"
        )
    if descriptions(old.outputs) != descriptions(new.outputs) or descriptions(old.inputs) != descriptions(
        new.inputs
    ):
        raise InputError(
            f"{new.model.title}: its inputs or outputs differ from those of the program that runs; begin a new run"
        )
