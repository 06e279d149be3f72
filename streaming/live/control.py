"""Control: what may be changed between two pulses while a line runs."""

import time


from pulse.errors import InputError, PulseError
from pulse.program.program import Program
from streaming.live.line import Line
from streaming.live.voices import Voices, require_alike, sound_input, sound_output
from streaming.native import line_words as w
from streaming.native.line import give_order, pump_once

ANSWER_S = 2.0
POLL_S = 0.0005
PRIME_S = 1.0


class Control:
    """Changes what is heard of a line, and what its streams remember, without a gap.

    line     that runs, or is still
    running  whether someone computes its pulses; where nobody does, orders are done at once

    One thread at a time.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self.running = False
        self._muted = self._bypassed = False
        self._next: Voices | None = None

    @property
    def muted(self) -> bool:
        """Whether nothing is heard; the model goes on."""
        return self._muted

    @muted.setter
    def muted(self, value: bool) -> None:
        self._muted = value
        self._fade()

    @property
    def bypassed(self) -> bool:
        """Whether the input is heard, as late as the model's sound would be; the model goes on."""
        return self._bypassed

    @bypassed.setter
    def bypassed(self, value: bool) -> None:
        self._bypassed = value
        self._fade()

    def snapshot(self) -> list[bytes]:
        """The state of every stream, all of one moment, each as ``State.snapshot`` gives it. Raises PulseError."""
        voices = self._alone()
        if self._line.native:
            memory = voices.room()
            self._order(w.SAVE, memory.ctypes.data)
            return voices.pack(memory, int(self._line.words[w.SAVED]))
        return [state.snapshot() for state in voices.states]

    def restore(self, snapshots: list[bytes]) -> None:
        """Let every stream go on from a snapshot with the next pulse. Raises InputError, PulseError."""
        voices = self._alone()
        self._require_native("restore")
        memory, pulses = voices.unpack(snapshots)
        self._order(w.LOAD, memory.ctypes.data, pulses)

    def reset(self) -> None:
        """Let every stream begin anew with the next pulse. Raises PulseError."""
        voices = self._alone()
        self._require_native("reset")
        memory = voices.begin()
        self._order(w.LOAD, memory.ctypes.data, 0)

    def swap(self, program: Program, prime_s: float = PRIME_S) -> None:
        """Let another program take over without a gap.

        It runs beside the one that is heard for ``prime_s`` seconds of sound, or until its delay is over, so that it
        has heard what it remembers; then the sound fades over within a pulse. Both cost their time meanwhile.
        Raises InputError: another pulse, other inputs or outputs, or a delay that the line has no room for
        """
        self._alone()
        self._require_native("swap")
        line = self._line
        require_alike(line.program, program)
        sound = None
        if line.form.channels_out:
            sound = sound_output(program, sound_input(program), line.behaviour.output)
        if line.behaviour.records and [port.delay for port in program.outputs] != [
            port.delay for port in line.program.outputs
        ]:
            raise InputError(f"{program.model.title}: its outputs are later or earlier than those that are delivered")
        voices = Voices(program, line.streams, sound, line.constants, line.model_delay)
        if not voices.native:
            raise InputError(f"{program.model.title}: compile it for the numba backend to take over while others run")
        delay = 0 if sound is None else sound.delay
        frames = max(round(prime_s * line.form.rate_hz), delay)
        self._next = voices
        self._order(w.SWAP, voices.address, -(-frames // program.pulse) + 1)

    @property
    def swapping(self) -> bool:
        """Whether another program runs beside the one that is heard."""
        if self._next is not None and int(self._line.words[w.VOICES]) == self._next.address:
            self._line.voices, self._next = self._next, None
        return self._next is not None

    def _fade(self) -> None:
        self._line.gains[2] = 0 if self._muted or self._bypassed else 1
        self._line.gains[3] = 1 if self._bypassed and not self._muted else 0

    def _alone(self) -> Voices:
        if self.swapping:
            raise PulseError("another program is about to take over: wait until `swapping` is False")
        return self._line.voices

    def _require_native(self, what: str) -> None:
        if not self._line.native:
            raise PulseError(f"{what}: only programs of the numba backend can, while they run")

    def _order(self, order: int, first: int, second: int = 0) -> None:
        words = self._line.words
        give_order.call(self._line.address, order, first, second)
        if not self.running:
            pump_once.call(self._line.address)
        end = time.monotonic() + ANSWER_S
        while words[w.COMMAND] != w.NONE:
            if time.monotonic() > end:
                words[w.COMMAND] = w.NONE
                raise PulseError(f"no pulse has ended within {ANSWER_S} s: the device may have stopped")
            time.sleep(POLL_S)


