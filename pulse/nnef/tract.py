"""NNEF files in tract's own runtime, called as our own programs are: the proof of what is written."""

import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.nnef.archive import Archive
from pulse.not_copyable import NotCopyable
from pulse.ops.time_length import FAR_END
from pulse.program.compiled import CompiledProgram
from pulse.program.feeds import Feed
from pulse.program.state import State
from pulse.pulsify.network import PulsedNetwork


class TractProgram(NotCopyable, CompiledProgram):
    """An archive that ``to_nnef`` made of a model, opened in tract. Raises InputError where tract refuses it."""

    instead = "its file is open in a runtime of this process; copy the model, and write and open it there"

    def __init__(self, model: PulsedNetwork, archive: Archive) -> None:
        super().__init__(model)
        tract: Any = import_module("tract")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            archive.save(path)
            try:
                loaded = tract.nnef().load(path)
                self.ends = loaded.input_count() > len(model.inputs)
                self.runnable: Any = loaded.into_runnable()
            except tract.TractError as error:
                raise InputError(f"{model.title}: tract refuses the file ({told(error)})") from error

    @property
    def backend(self) -> str:
        return "tract"

    def spawn(self, constants: Feed | None = None) -> "TractState":
        return TractState(self, constants)


class TractState(State):
    """One stream: a state of tract's."""

    def __init__(self, program: TractProgram, constants: Feed | None) -> None:
        super().__init__(program, constants)
        self._program = program
        self._state: Any = None
        self._given: list[list[Array]] = []
        """The inputs of all pulses: tract's states cannot be copied from Python, so they are run again."""
        self._clear()

    def _clear(self) -> None:
        self._state = self._program.runnable.spawn_state()
        self._given = []

    def _run(self, feed: Feed) -> dict[str, Array]:
        feeds = {**self.constants, **feed}
        arrays = [np.ascontiguousarray(feeds[port.name]).reshape(port.shape) for port in self._program.inputs]
        if self._program.ends:
            arrays.append(np.array(FAR_END if self.clock.end is None else self.clock.end, np.int64))
        self.changing = True
        self._given.append(arrays)
        results = self._state.run(arrays)
        return {
            port.name: np.array(result.to_numpy()).reshape(port.shape)
            for port, result in zip(self._program.outputs, results)
        }

    def _ended(self) -> None:
        """The end is fed with every pulse."""

    def _save(self) -> bytes:
        raise InputError("tract gives no bytes of its states; run the model here to take a snapshot")

    def _load(self, memory: bytes) -> None:
        raise InputError("tract takes no bytes of its states; run the model here to restore a snapshot")

    def _keep(self) -> list[list[Array]]:
        return [*self._given]

    def _put_back(self, memory: list[list[Array]]) -> None:
        self._clear()
        for arrays in memory:
            self._state.run(arrays)
        self._given = [*memory]


def told(error: Exception) -> str:
    """What tract says, without the stack of its functions and the listings of its graphs."""
    lines = str(error).partition("Stack backtrace")[0].splitlines()
    return " ".join(" ".join(line for line in lines if "|" not in line).split())
