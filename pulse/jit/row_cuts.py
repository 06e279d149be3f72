"""Cut rows into parts, by the ``cuts`` of their instructions."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pulse.jit.registry import Kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.fields import fields_of, words_of
from pulse.jit.rows.instruction import ELEMENT_DTYPES, RowFields, element_of
from pulse.jit.rows.pointer import ARENA, REGION_SHIFT
from pulse.support.mapping import align_up
from pulse.support.record import record


@record
class RowCut:
    """The division of a row into parts.

    cut            the way to cut it
    bounds         the beginnings of the parts, and the end of the last one
    scratch_bytes  the bytes of scratch of each part but the first
    """

    cut: Cut
    bounds: tuple[int, ...]
    scratch_bytes: int

    @property
    def largest_share(self) -> float:
        """The largest part of the count, as a fraction."""
        sizes = [last - first for first, last in zip(self.bounds, self.bounds[1:])]
        return max(sizes) / max(sum(sizes), 1)


@record
class _Word:
    """A word of a row: its index, and the bytes of an element if it is an operand."""

    index: int
    element: int


def best_cut(kernel: Kernel, words: Sequence[int], count: int) -> RowCut | None:
    """Return the best cut into ``count`` parts, of similar size and with few shared elements; None if there is none."""
    row = kernel.instruction.from_words(words, 0, (), kernel.form)
    cuts: list[RowCut] = []
    for cut in row.cuts():
        total = int(getattr(row, cut.count))
        blocks = total // cut.block
        if blocks < count:
            continue
        bounds = [cut.block * (blocks * part // count) for part in range(count)]
        word_of = _words(kernel, row)
        scratch = [elements * word_of[name].element for name, elements in cut.scratch.items()]
        cuts.append(RowCut(cut, (*bounds, total), sum(map(align_up, scratch))))
    return min(
        cuts, key=lambda measured: (round(measured.largest_share, 1), measured.cut.shared), default=None
    )


def cut_rows(kernel: Kernel, words: Sequence[int], parts: RowCut, scratch_byte: int) -> list[list[int]]:
    """Return the rows of the parts; ``scratch_byte``: the byte of the arena at which their scratch begins."""
    row = kernel.instruction.from_words(words, 0, (), kernel.form)
    word_of, cut = _words(kernel, row), parts.cut
    rows: list[list[int]] = []
    for index, (first, last) in enumerate(zip(parts.bounds, parts.bounds[1:])):
        part = [*words]
        part[word_of[cut.count].index] = last - first
        for name, step in cut.moves.items():
            word = word_of[name]
            part[word.index] += first * step * word.element
        for name, value in cut.sets.items():
            part[word_of[name].index] = value
        if index > 0:
            byte = scratch_byte + (index - 1) * parts.scratch_bytes
            for name, elements in cut.scratch.items():
                word = word_of[name]
                part[word.index] = ARENA << REGION_SHIFT | byte
                byte += align_up(elements * word.element)
        rows.append(part)
    return rows


def _words(kernel: Kernel, row: RowFields) -> dict[str, _Word]:
    return dict(_named_words(kernel, row, 0, ""))


def _named_words(kernel: Kernel, group: RowFields, start: int, prefix: str) -> Iterator[tuple[str, _Word]]:
    """Yield the words of a row by the names of their fields; a field of a group is prefixed with the group's name."""
    for field in fields_of(type(group)).values():
        index, name = start + field.word, prefix + field.name
        index += sum(getattr(group, count) * size for count, size in field.groups_before)
        if field.kind == "group":
            yield from _named_words(kernel, getattr(group, field.name), index, f"{name}.")
        elif field.kind == "groups":
            for i, inner_group in enumerate(getattr(group, field.name)):
                inner: Any = field.group
                yield from _named_words(kernel, inner_group, index + i * words_of(inner), f"{name}[{i}].")
        else:
            yield name, _Word(index, np.dtype(ELEMENT_DTYPES[element_of(field, kernel.form)]).itemsize)
