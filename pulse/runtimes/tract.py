"""NNEF files in tract's own runtime, called like our own programs, to prove written files."""

import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import numpy as np

from pulse.errors import InputError, WriteError
from pulse.facts import Array
from pulse.nnef.archive import Archive
from pulse.program.program import Program
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State
from pulse.pulsify.network import PulsedNetwork
from pulse.runtimes.tract_worker import pack, receive, send, unpack
from pulse.support.bounds import FAR_END
from pulse.support.not_copyable import NotCopyable


def has_tract() -> bool:
    """Return whether tract is installed."""
    return find_spec("tract") is not None


class TractProcess:
    """A process that runs an archive in tract, which may abort its process on unexpected input.

    inputs  how many the model has
    Raises  WriteError: tract refuses the file
    """

    def __init__(self, archive: Archive, title: str) -> None:
        self._title = title
        self._folder = tempfile.TemporaryDirectory()
        path = Path(self._folder.name) / "model"
        archive.save(path)
        command = [sys.executable, "-m", "pulse.runtimes.tract_worker", str(path)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        weakref.finalize(self, _end, self._process, self._folder)
        self.inputs = int(self._answer())

    def run(self, stream: str, arrays: Sequence[Array]) -> list[Array]:
        """Return the outputs of one run of a stream, which keeps its states. Raises WriteError: tract failed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            send(self._process.stdin, [stream.encode(), str(len(arrays)).encode(), *map(pack, arrays)])
        except BrokenPipeError:
            raise self._end_error() from None
        return [unpack(receive(self._process.stdout)) for _ in range(int(self._answer()))]

    def _answer(self) -> bytes:
        assert self._process.stdout is not None
        try:
            outcome, answer = receive(self._process.stdout), receive(self._process.stdout)
        except EOFError:
            raise self._end_error() from None
        if outcome == b"+":
            return answer
        raise WriteError(
            f"{self._title}: tract refuses what was written ({answer.decode()}); write ONNX instead"
        )

    def _end_error(self) -> WriteError:
        return WriteError(f"{self._title}: tract ended its process on what was written; write ONNX instead")


def _end(process: "subprocess.Popen[bytes]", folder: "tempfile.TemporaryDirectory[str]") -> None:
    assert process.stdin is not None and process.stdout is not None
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    folder.cleanup()


class TractProgram(
    NotCopyable, Program, reason="a process of tract has it open; copy the model, and open it there"
):
    """An archive that ``to_nnef`` made of a pulsed model, in tract. Raises WriteError: tract refuses it."""

    def __init__(self, model: PulsedNetwork, archive: Archive) -> None:
        super().__init__(model)
        self.process = TractProcess(archive, model.title)
        self.ends = self.process.inputs > len(model.inputs)
        self.streams = count()

    @property
    def backend(self) -> str:
        return "tract"

    def spawn(self, constants: Feed | None = None) -> "TractState":
        return TractState(self, constants)


class TractState(State):
    """One stream: a state of tract's. A mark is all that was fed, which is run again to go back to it."""

    def __init__(self, program: TractProgram, constants: Feed | None) -> None:
        super().__init__(program, constants)
        self._program = program
        self._inputs: list[list[Array]] = []
        self._stream = ""
        self._clear()

    def _clear(self) -> None:
        self._stream, self._inputs = str(next(self._program.streams)), []

    def _run(self, feed: Feed) -> dict[str, Array]:
        feeds = {**self.constants, **feed}
        ports = self._program.inputs
        arrays = [np.array(feeds[port.name]).reshape(port.shape) for port in ports]
        if self._program.ends:
            arrays.append(np.array(FAR_END if self.clock.end is None else self.clock.end, np.int64))
        self.changing = True
        self._inputs.append(arrays)
        results = self._program.process.run(self._stream, arrays)
        return {port.name: result.reshape(port.shape) for port, result in zip(self._program.outputs, results)}

    def _set_end(self) -> None:
        """Do nothing: the end is fed with every pulse."""

    def _memory_bytes(self) -> bytes:
        raise InputError("tract does not return its states; run the model here to take a snapshot")

    def _set_memory_bytes(self, memory: bytes) -> None:
        raise InputError("tract takes no bytes of its states; run the model here to restore a snapshot")

    def _copy_memory(self) -> list[list[Array]]:
        return [*self._inputs]

    def _restore_memory(self, memory: list[list[Array]]) -> None:
        self._clear()
        self._inputs = [*memory]
        for arrays in memory:
            self._program.process.run(self._stream, arrays)
