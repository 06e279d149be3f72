"""Ctc: text with times from the outputs of a model that was trained with connectionist temporal classification."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.support.record import record
from pulse.support.wording import count_of
from streaming.events.detector import Detector
from streaming.events.event import Event
from streaming.events.frame_clock import FrameClock
from streaming.events.parameters import require_class, require_one_of, require_seconds
from streaming.events.tokens import begins_word, find_blank, join_tokens, read_tokens

UNITS = ("token", "word", "phrase")
VALUES = ("logits", "probabilities")
PAUSE_S = 0.6
"""Silence of this length ends a phrase, if no other is given."""


@record
class _Token:
    """A token that was the best in frames ``first`` to ``end - 1``, and the sum of its probabilities there."""

    text: str
    first: int
    end: int
    total: float


@dataclass
class _State:
    """The tokens of the current text, and the best class of the previous frame, initially the blank."""

    last: int
    tokens: list[_Token] = field(default_factory=list[_Token])


class Ctc(Detector[_State]):
    """Greedy decoding: the best class of each frame, without repetitions and blanks.

    clock    the clock of the output, or its frames per second
    tokens   a file of lines ``token id``, as sherpa and icefall have it, or the texts in order
    unit     what an event is: ``token``, ``word`` or ``phrase``
    pause_s  without a new token for this long, a word or phrase has ended; None: 0.6 s for phrases, never for words
    blank    the class of the blank; None: the token of a usual name, such as <blk>, else 0
    values   the model's output: ``logits``, or their log-softmax; ``probabilities``
    Raises   InputError: the tokens cannot be read, or a parameter is not valid

    A word begins with a token that starts with a space (SentencePiece's U+2581), or after a token that is a space
    (<space>, |). An event goes from the first frame of its first token to the end of the last frame of its last one.
    The score is the mean probability in the frames of its tokens.
    """

    _infinite = True

    def __init__(
        self,
        clock: FrameClock | float,
        tokens: str | Path | Sequence[str],
        unit: str = "word",
        *,
        pause_s: float | None = None,
        blank: int | None = None,
        values: str = "logits",
    ) -> None:
        require_one_of("unit", unit, UNITS)
        require_one_of("values", values, VALUES)
        require_seconds(pause_s=pause_s)
        clock = FrameClock.of(clock)
        self._tokens = read_tokens(tokens) if isinstance(tokens, str | Path) else tuple(tokens)
        self._blank = find_blank(self._tokens) if blank is None else blank
        require_class("blank", self._blank, len(self._tokens))
        pause_s = PAUSE_S if pause_s is None and unit == "phrase" else pause_s
        self._pause_frames = None if pause_s is None else clock.frames(pause_s)
        self._unit, self._logits = unit, values == "logits"
        super().__init__(clock)

    def _begin(self) -> _State:
        return _State(self._blank)

    def _copy(self, state: _State) -> _State:
        """Copy the state; tokens are immutable."""
        return _State(state.last, list(state.tokens))

    def _check_classes(self, classes: int) -> None:
        if classes != len(self._tokens):
            raise InputError(
                f"{count_of(len(self._tokens), 'token')} for {count_of(classes, 'class', 'classes')}; give the file "
                "of this model"
            )

    def _prepare(self, rows: Array) -> Iterable[list[float]]:
        """Yield the best class of each frame, and its probability."""
        for row in rows:
            best = int(np.argmax(row))
            value = float(row[best])
            if self._logits:
                value = float(1 / np.exp(row - value).sum()) if value > -np.inf else 1 / len(row)
            yield [best, value]

    def _process_frame(self, state: _State, frame: int, row: list[float]) -> Iterator[Event]:
        best, value = int(row[0]), row[1]
        if best != state.last:
            if self._unit == "token":
                yield from self._event(state, self.clock.known_s(frame))
            if best != self._blank:
                text = self._tokens[best]
                if self._unit == "word" and begins_word(text):
                    yield from self._event(state, self.clock.known_s(frame))
                state.tokens.append(_Token(text, frame, frame + 1, value))
            state.last = best
        elif best != self._blank and state.tokens:
            token = state.tokens[-1]
            state.tokens[-1] = replace(token, end=frame + 1, total=token.total + value)
        if (
            self._pause_frames is not None
            and state.tokens
            and frame + 1 - state.tokens[-1].end >= self._pause_frames
        ):
            yield from self._event(state, self.clock.known_s(frame))

    def _end(self, state: _State, frames: int) -> Iterator[Event]:
        return self._event(state, self._known_at_end(frames))

    def _event(self, state: _State, known_s: float) -> Iterator[Event]:
        """Yield the event with the text of the tokens, if that is more than a space."""
        text = join_tokens([token.text for token in state.tokens])
        if text:
            tokens = [token for token in state.tokens if join_tokens([token.text])]
            frames = sum(token.end - token.first for token in tokens)
            score = sum(token.total for token in tokens) / frames
            start_s, end_s = self.clock.time_s(tokens[0].first), self.clock.time_s(tokens[-1].end)
            yield Event(start_s, end_s, text, score, known_s)
        state.tokens = []
