"""Specialised kernels for a program whose streams run: a separate process compiles them, then the streams use them."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Self

from pulse.errors import InputError, PulseError
from pulse.program.native.kernel_program import KernelProgram
from pulse.program.program import MAX_SPECIALISE_MEGABYTES, MAX_SPECIALISE_SECONDS, Program
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import spell
from streaming.compilation.child import is_python, python_process, read_answer, reserve_stdout, write_answer
from streaming.compilation.warming import why_not_cached

if TYPE_CHECKING:
    from pulse.program.specialise.outcome import Specialisation

COMPILER_NICENESS = 19
"""The niceness of the compiling process: streams go first."""


class BackgroundSpecialisation(NotCopyable, reason="it has a process; make another one for the program"):
    """``Program.specialise`` while streams run; they wait for nothing, and their results are bit-identical.

    program    its streams on one thread use the code at once, running ones from their next instruction on
    seconds    CPU time after which no further kernels are compiled
    megabytes  size of machine code, likewise
    Raises     InputError: the program has no instructions that could be specialised

    A process of the lowest priority compiles and measures. Its code goes through the folder of compiled kernels to
    this process, which puts it into the table. Leaving the ``with`` ends the process; what it has compiled is kept.

        with BackgroundSpecialisation(program):
            run_streams(program)
    """

    def __init__(
        self,
        program: Program,
        seconds: float = MAX_SPECIALISE_SECONDS,
        megabytes: float = MAX_SPECIALISE_MEGABYTES,
    ) -> None:
        if not isinstance(program, KernelProgram):
            raise InputError(
                f"the {program.backend} backend has no kernels to specialise; use the numba backend"
            )
        if program.threads > 1:
            raise InputError(
                f"{program.model.title}: kernels are specialised for streams on one thread, and this program uses "
                f"{program.threads}; omit {spell('specialise')} or {spell('threads')}"
            )
        self._program = program
        self._bounds = str(seconds), str(megabytes)
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._compile, name="pulse specialisation", daemon=True)
        self._leaving = False
        self.outcome: Specialisation | None = None
        """The gain of the specialised kernels; None while it is not known."""
        self.problem: str | None = None
        """Why there will be none; None if nothing is wrong."""

    def __str__(self) -> str:
        if self.problem is not None:
            return f"specialised kernels: {self.problem}"
        if self.outcome is None:
            return "specialised kernels: " + (
                "not ready yet" if self._thread.is_alive() else "not ready before the end"
            )
        return f"specialised kernels: {self.outcome}"

    def __enter__(self) -> Self:
        if not is_python():
            self.problem = "this Python is a part of another program, which cannot start a process to compile"
        elif reason := why_not_cached():
            self.problem = f"the folder of compiled kernels cannot store anything: {reason}"
        else:
            self._process = python_process(__name__, *self._bounds)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._leaving = True
            self._process.kill()
            self._thread.join()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end of the process. Returns whether it has ended."""
        if self._process is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _compile(self) -> None:
        """Send the program to the process and take its answer, in its own thread."""
        assert self._process is not None
        with self._process as process:
            answer, _ = process.communicate(pickle.dumps(self._program))
        if self._leaving:
            return
        try:
            self._take(answer)
        except PulseError as error:
            self.problem = str(error)

    def _take(self, answer: bytes) -> None:
        """Let the streams run the rows. Raises PulseError: the process failed, or its code cannot be linked."""
        from pulse.program.specialise.outcome import Specialisation

        if not answer:
            assert self._process is not None
            raise PulseError(
                f"the process that compiled them ended by itself, code {self._process.returncode}"
            )
        values = read_answer(answer)
        kernels: list[str] = values.pop("kernels")
        outcome = Specialisation(kernels=tuple(kernels), **values)
        if outcome.used:
            self._program.use_specialised_kernels(outcome.kernels)
        self.outcome = outcome


def serve_requests() -> None:
    """Run the process: a pickled program on stdin, its ``Specialisation`` or an error as JSON on stdout."""
    # an interrupt is for the streams; leaving them ends this process
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(COMPILER_NICENESS)
    warnings.simplefilter("ignore")  # the parent has shown them
    seconds, megabytes = map(float, sys.argv[1:3])
    answers = reserve_stdout()
    write_answer(answers, lambda: pickle.load(sys.stdin.buffer).specialise(seconds, megabytes))
