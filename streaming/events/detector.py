"""Detector: the base of all detectors. They process single frames, so blocks do not affect results."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.support.wording import count_of
from streaming.events.event import Event
from streaming.events.frame_clock import FrameClock
from streaming.events.parameters import class_names, require_class

StateT = TypeVar("StateT")


@dataclass
class Snapshot(Generic[StateT]):
    """The state of a detector at a frame; it may be pickled."""

    frames: int
    classes: int | None
    ended: bool
    state: StateT


class Detector(ABC, Generic[StateT]):
    """Detects events in frames, independently of how the frames are split into blocks.

    clock   the clock of the output, or its frames per second
    Raises  InputError: invalid parameters

    ``push`` and ``flush`` are all or nothing: after an exception the detector is as it was before. It may be copied
    and pickled at any time.
    """

    _infinite = False
    """Whether minus infinity is a value, as the logarithm of a probability."""

    def __init__(self, clock: FrameClock | float) -> None:
        self.clock = FrameClock.of(clock)
        self.reset()

    def push(self, probabilities: Array | Sequence[float]) -> list[Event]:
        """Take frames, [frames] or [frames, classes]; return the events that they complete.

        Raises InputError: the stream has ended, or the frames have the wrong shape or type
        """
        if self._position.ended:
            raise InputError("the stream of events has ended; call reset() to begin another one")
        rows = self._rows(np.asarray(probabilities))
        position = replace(self._position, state=self._copy(self._position.state))
        if position.classes is None and len(rows):
            classes = position.classes = int(rows.shape[1])
            self._check_classes(classes)
        events: list[Event] = []
        for row in self._prepare(rows):
            events += self._process_frame(position.state, position.frames, row)
            position.frames += 1
        self._position = position
        return events

    def flush(self) -> list[Event]:
        """End the stream; return the events that only the end completes. Raises InputError: already called."""
        if self._position.ended:
            raise InputError("the stream of events has ended; call reset() to begin another one")
        position = deepcopy(self._position)
        events = list(self._end(position.state, position.frames))
        position.ended = True
        self._position = position
        return events

    def reset(self) -> None:
        """Restart for a new output."""
        self._position = Snapshot(0, None, ended=False, state=self._begin())

    def snapshot(self) -> Snapshot[StateT]:
        """Return the state, for ``restore`` of a detector with the same parameters."""
        return deepcopy(self._position)

    def restore(self, snapshot: Snapshot[StateT]) -> None:
        """Restore a snapshot. Raises InputError: it is not of this kind of detector."""
        if type(snapshot.state) is not type(self._position.state):
            raise InputError("this is a snapshot of another kind of detector, or of something else")
        self._position = deepcopy(snapshot)

    @abstractmethod
    def _begin(self) -> StateT:
        """Return the state before the first frame."""

    @abstractmethod
    def _process_frame(self, state: StateT, frame: int, row: list[float]) -> Iterable[Event]:
        """Yield the events that a frame completes, and update ``state``."""

    @abstractmethod
    def _end(self, state: StateT, frames: int) -> Iterable[Event]:
        """Yield the events that the end completes, after this many frames."""

    def _copy(self, state: StateT) -> StateT:
        """Return an independent copy of a state."""
        return deepcopy(state)

    def _prepare(self, rows: Array) -> Iterable[list[float]]:
        """Return the values of each frame for ``_process_frame``, which depend on that frame alone."""
        return rows.tolist()

    def _check_classes(self, classes: int) -> None:
        """Raise InputError if the parameters do not match this number of classes."""

    def _known_at_end(self, frames: int) -> float:
        return self.clock.time_s(frames)

    def _rows(self, frames: Array) -> Array:
        """Convert frames to an array [frames, classes] of f64.

        Raises InputError: they have another shape, or are not probabilities
        """
        if frames.ndim not in (1, 2) or 0 in frames.shape[1:] or frames.dtype.kind not in "fiub":
            shape_text = f"{frames.dtype} {list(frames.shape)}"
            raise InputError(f"{shape_text}: probabilities are numbers [frames] or [frames, classes]")
        rows: Array = frames.astype(np.float64).reshape(len(frames), -1 if frames.size else 1)
        classes = self._position.classes
        if len(rows) and classes is not None and rows.shape[1] != classes:
            raise InputError(
                f"{count_of(rows.shape[1], 'class', 'classes')} after frames of {classes}; give as many in each block"
            )
        wrong: Array = np.isnan(rows) | (np.isposinf(rows) if self._infinite else np.isinf(rows))
        if wrong.any():
            frame, column = (int(index) for index in np.argwhere(wrong)[0])
            raise InputError(
                f"frame {self._position.frames + frame}, class {column}: {rows[frame, column]} is not a probability; "
                "look at the input, or at the model"
            )
        return rows


def only_column(column: int | None, classes: int) -> None:
    """Raise InputError if there are several columns and none is chosen, or the chosen one does not exist."""
    if column is None and classes > 1:
        raise InputError(
            f"{count_of(classes, 'class', 'classes')}, but one probability is expected; give column=0 … {classes - 1}"
        )
    if column is not None and not -classes <= column < classes:
        raise InputError(
            f"column={column}: the output has {count_of(classes, 'class', 'classes')}, counted from 0"
        )


def value_at(row: list[float], column: int | None) -> float:
    """Return the value of the chosen column of a row."""
    return row[0 if column is None else column]


class ClassDetector(Detector[StateT]):
    """A detector of named classes; ``background`` is the class without meaning, None if there is none."""

    def __init__(self, clock: FrameClock | float, labels: Sequence[str], background: int | None) -> None:
        self._labels, self._background = tuple(labels), background
        super().__init__(clock)

    def _check_classes(self, classes: int) -> None:
        class_names(self._labels, classes)
        require_class("background", self._background, classes)
