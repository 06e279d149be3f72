"""The bias of a mask at one length: how far it reaches, and which pattern it repeats."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pulse.facts import Array
from pulse.pulsify.bands.attention_refusals import NoBandError
from pulse.support.record import record

MAX_COUNTEREXAMPLES = 16
"""Maximum number of rows that refuted other shifts and are compared before all the others."""


@record(eq=False)
class MaskSample:
    """The bias at one length, [A..., N, N], and whether a masked score is a finite number."""

    bias: Array
    finite: bool
    tolerance: float = 0.0

    @property
    def frames(self) -> int:
        """The number of frames, N."""
        return self.bias.shape[-1]

    @property
    def has_blind_frame(self) -> bool:
        """Whether some frame attends to no frame."""
        return bool((self.bias == -np.inf).all(axis=-1).any())

    def reach(self) -> tuple[int, int]:
        """Return how many frames any frame attends to at most, back and ahead."""
        visible = np.logical_or.reduce((self.bias > -np.inf).reshape(-1, self.frames, self.frames))
        rows = np.flatnonzero(visible.any(1))
        if not rows.size:
            raise NoBandError("it masks every frame")
        first, last = visible[rows].argmax(axis=1), self.frames - 1 - visible[rows, ::-1].argmax(axis=1)
        return int((rows - first).max()), int((last - rows).max())

    def sink_count(self) -> int:
        """Return the number of sinks: first frames that all frames attend to, though the last skips some after them."""
        visible = np.logical_or.reduce((self.bias > -np.inf).reshape(-1, self.frames, self.frames))
        last, half = ~visible[-1], self.frames // 2
        count = int(last.argmax()) if last.any() else 0
        return count if count < half and bool(visible[half:, :count].all()) and last[count:half].any() else 0

    def agrees(self, other: Array) -> bool:
        """Return whether another bias agrees within the tolerance."""
        return (self.tolerance == 0 and np.array_equal(self.bias, other)) or bool(
            self._close_entries(other).all()
        )

    def _close_entries(self, other: Array) -> NDArray[np.bool_]:
        """Return a mask of the entries at which another bias agrees within the tolerance."""
        return np.isclose(self.bias, other, 1e-6, self.tolerance or 1e-6)

    def period(self) -> int | None:
        """Return the smallest shift of rows and columns together that keeps the bias; None if there is none."""
        x = self.bias
        counterexamples = [self.frames - 1]  # rows that refuted one shift refute most of the next ones too
        for c in range(1, self.frames // 3 + 1):
            rows = [row for row in counterexamples[-MAX_COUNTEREXAMPLES:] if row >= c]
            if not all(replace(self, bias=x[..., row, c:]).agrees(x[..., row - c, :-c]) for row in rows):
                continue
            shifted_sample = replace(self, bias=x[..., c:, c:])
            if shifted_sample.agrees(x[..., :-c, :-c]):
                return c
            equal_rows = (
                shifted_sample._close_entries(x[..., :-c, :-c]).all(axis=-1).reshape(-1, self.frames - c)
            )
            differing_rows = ~equal_rows.all(axis=0)
            counterexamples.append(c + int(differing_rows.argmax()))
        return None

    def relative(self) -> "MaskSample":
        """Return each row minus its maximum, which a softmax ignores."""
        top = self.bias.max(axis=-1, keepdims=True)
        finite = self.bias[self.bias > -np.inf]
        size = float(np.abs(finite).max()) if finite.size else 0.0
        bias = self.bias - np.where(top > -np.inf, top, 0)
        return MaskSample(bias, self.finite, 4 * size * float(np.finfo(np.float32).eps))

    def table(self, period: int, back: int, ahead: int) -> Array:
        """Return the bias of column j for row i at [i mod period, j - i + back]; -inf if no row has that pair.

        Rounded numbers are the most exact in the first rows.
        """
        shape = (*self.bias.shape[:-2], period, back + 1 + ahead)
        table = np.full(shape, -np.inf, self.bias.dtype)
        filled = np.zeros(shape[-2:], np.bool_)
        rows = range(self.frames)
        for i in rows if self.tolerance else reversed(rows):
            first, last = max(0, i - back), min(self.frames, i + ahead + 1)
            columns = np.arange(first, last) - i + back
            new = ~filled[i % period, columns]
            if new.any():
                table[..., i % period, columns[new]] = self.bias[..., i, first:last][..., new]
                filled[i % period, columns] = True
            if filled.all():
                break
        return table
