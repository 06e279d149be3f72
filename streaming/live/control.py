"""Control: what may be changed between two pulses while a line runs."""

import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext

from pulse.errors import InputError, PulseError
from pulse.facts import Array
from pulse.program.program import Program
from streaming.live.instances import Instances, heard_inputs, require_alike, sound_output
from streaming.live.line import Line
from streaming.native import line_words as w
from streaming.native import positions
from streaming.native.orders import give_order, obey_now, take_back

ANSWER_S = 2.0
POLL_S = 0.0005
PRIME_S = 1.0


class Control:
    """Changes what is heard of a line, and what its streams remember, without a gap.

    line     that runs, or is still
    running  whether someone computes its pulses; where nobody does, orders are done at once
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._lock = threading.RLock()
        self._running = False
        self._muted = self._bypassed = False

    @property
    def running(self) -> bool:
        """Whether somebody computes the line's pulses. It changes only between two orders."""
        return self._running

    @running.setter
    def running(self, value: bool) -> None:
        with self._lock:
            self._running = value

    @property
    def muted(self) -> bool:
        """Whether nothing is heard; the model goes on."""
        return self._muted

    @muted.setter
    def muted(self, value: bool) -> None:
        with self._lock:
            self._muted = value
            self._fade()

    @property
    def bypassed(self) -> bool:
        """Whether the input is heard, as late as the model's sound would be; the model goes on."""
        return self._bypassed

    @bypassed.setter
    def bypassed(self, value: bool) -> None:
        with self._lock:
            self._bypassed = value
            self._fade()

    def snapshot(self) -> list[bytes]:
        """The state of every stream, all of one moment, each as ``State.snapshot`` gives it. Raises PulseError."""
        with self._lock:
            instances = self._alone()
            if not self._line.native:
                with self._line.turn:
                    return [state.snapshot() for state in instances.states]
            memory = instances.room()
            self._order(w.SAVE, memory)
            return instances.pack(memory, int(self._line.words[w.SAVED]))

    def restore(self, snapshots: list[bytes]) -> None:
        """Let every stream go on from a snapshot with the next pulse. Raises InputError, PulseError."""
        with self._lock:
            memory, pulses = self._alone().unpack(snapshots)
            self._load(memory, pulses, snapshots)

    def reset(self) -> None:
        """Let every stream begin anew with the next pulse. Raises PulseError."""
        with self._lock:
            self._load(self._alone().begin(), 0, ())

    def swap(self, program: Program, prime_s: float = PRIME_S) -> None:
        """Let another program take over without a gap.

        It runs beside the one that is heard for ``prime_s`` seconds of sound, or until its delay is over, so that it
        has heard what it remembers; then the sound fades over within a pulse. Both cost their time meanwhile.
        Raises InputError: another pulse, other inputs or outputs, or a delay that the line has no room for
        """
        with self._lock:
            self._alone()
            line = self._line
            if not line.native:
                raise PulseError("swap: only programs of the numba backend can, while they run")
            require_alike(line.program, program)
            sound = None
            if line.form.channels_out:
                sound = sound_output(program, heard_inputs(program)[0], line.behaviour.output)
            if line.behaviour.records and [port.delay for port in program.outputs] != [
                port.delay for port in line.program.outputs
            ]:
                raise InputError(
                    f"{program.model.title}: its outputs are later or earlier than those that are delivered"
                )
            instances = Instances(program, line.streams, sound, line.constants, line.model_delay)
            if not instances.native:
                raise InputError(
                    f"{program.model.title}: compile it for the numba backend to take over while others run"
                )
            frames = max(round(prime_s * line.form.rate_hz), line.model_delay)
            try:
                self._order(w.SWAP, instances.words, -(-frames // program.pulse) + 1)
            finally:
                line.succeed(instances)

    @property
    def swapping(self) -> bool:
        """Whether another program runs beside the one that is heard."""
        return self._line.swapping

    def restart(self) -> None:
        """The devices are closed and will be opened again: let the line be ready for them. Raises PulseError."""
        with self._lock, nullcontext() if self._line.native else self._line.turn:
            self._order(w.RESTART, self._line.words)

    def _fade(self) -> None:
        self._line.memory.gains[2] = 0 if self._muted or self._bypassed else 1
        self._line.memory.gains[3] = 1 if self._bypassed and not self._muted else 0

    def _alone(self) -> Instances:
        if self.swapping:
            raise PulseError("another program is about to take over: wait until `swapping` is False")
        return self._line.instances

    def _load(self, memory: Array, pulses: int, snapshots: Sequence[bytes]) -> None:
        """Other memory for all states; those in Python begin anew, or take snapshots."""
        if self._line.native:
            self._order(w.LOAD, memory, pulses)
            return
        with self._line.turn:
            for number, state in enumerate(self._line.instances.states):
                state.reset()
                if snapshots:
                    state.restore(snapshots[number])
            self._order(w.LOAD, memory, pulses)

    def _order(self, order: int, memory: Array, number: int = 0) -> None:
        """Have an order done, which needs this memory until then. Raises PulseError: nobody does it.

        However this ends, by Ctrl-C too, the order is done or taken back.
        """
        line = self._line
        end = time.monotonic() + ANSWER_S
        try:
            give_order.call(line.address, order, memory.ctypes.data, number)
            if not (self.running and line.native):
                obey_now.call(line.address)
            while positions.load.call(line.address, w.COMMAND) != w.NONE:
                if time.monotonic() > end and take_back.call(line.address, order):
                    raise PulseError(f"no pulse has ended within {ANSWER_S} s: the device may have stopped")
                time.sleep(POLL_S)
        finally:
            while positions.load.call(line.address, w.COMMAND) != w.NONE:
                take_back.call(line.address, order)
