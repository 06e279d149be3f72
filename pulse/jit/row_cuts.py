"""Cut rows into parts, by the ``cuts`` of their instructions."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pulse.jit.registry import Kernel
from pulse.jit.rows.cut import Cut
from pulse.jit.rows.fields import LINE, WORD, fields_of, words_of
from pulse.jit.rows.instruction import DTYPES, FORMS, RowFields
from pulse.jit.rows.pointer import ARENA, REGION_SHIFT
from pulse.support.record import record


@record
class RowCut:
    """The division of a row into parts.

    bounds         the beginnings of the parts, and the end of the last one
    scratch_bytes  the further scratch memory of each part but the first
    """

    cut: Cut
    bounds: tuple[int, ...]
    scratch_bytes: int

    @property
    def largest(self) -> float:
        """The share of the largest part."""
        sizes = [last - first for first, last in zip(self.bounds, self.bounds[1:])]
        return max(sizes) / max(sum(sizes), 1)


@record
class _Word:
    """A word of a row: its index, and the bytes of an element if it is an operand."""

    index: int
    element: int


def best_cut(kernel: Kernel, words: Sequence[int], count: int) -> RowCut | None:
    """Return the best cut into ``count`` parts: of similar size, with few elements that all read, or None."""
    row = kernel.instruction.from_words(words, 0, (), kernel.form)
    cuts: list[RowCut] = []
    for cut in row.cuts():
        total = int(getattr(row, cut.count))
        blocks = total // cut.block
        if blocks < count:
            continue
        bounds = [cut.block * (blocks * part // count) for part in range(count)]
        placed = _words(kernel, row)
        scratch = [elements * placed[name].element for name, elements in cut.scratch.items()]
        cuts.append(RowCut(cut, (*bounds, total), sum(map(_align, scratch))))
    return min(cuts, key=lambda each: (round(each.largest, 1), each.cut.shared), default=None)


def cut_rows(kernel: Kernel, words: Sequence[int], parts: RowCut, scratch_at: int) -> list[list[int]]:
    """Return the rows of the parts; ``scratch_at``: the byte of the arena at which their scratch memory begins."""
    row = kernel.instruction.from_words(words, 0, (), kernel.form)
    placed, cut = _words(kernel, row), parts.cut
    rows: list[list[int]] = []
    for number, (first, last) in enumerate(zip(parts.bounds, parts.bounds[1:])):
        part = [*words]
        part[placed[cut.count].index] = last - first
        for name, step in cut.moves.items():
            word = placed[name]
            part[word.index] += first * step * word.element
        for name, value in cut.sets.items():
            part[placed[name].index] = value
        if number > 0:
            at = scratch_at + (number - 1) * parts.scratch_bytes
            for name, elements in cut.scratch.items():
                word = placed[name]
                part[word.index] = ARENA << REGION_SHIFT | at
                at += _align(elements * word.element)
        rows.append(part)
    return rows


def _align(size: int) -> int:
    line = LINE * WORD
    return -(-size // line) * line


def _words(kernel: Kernel, row: RowFields) -> dict[str, _Word]:
    return dict(_named_words(kernel, row, 0, ""))


def _named_words(kernel: Kernel, group: RowFields, at: int, prefix: str) -> Iterator[tuple[str, _Word]]:
    """Yield the words of a row by the names of their fields, those of groups prefixed with the name of the group."""
    for each in fields_of(type(group)).values():
        place, name = at + each.at, prefix + each.name
        place += sum(getattr(group, count) * size for count, size in each.behind)
        if each.kind == "group":
            yield from _named_words(kernel, getattr(group, each.name), place, f"{name}.")
        elif each.kind == "groups":
            for i, part in enumerate(getattr(group, each.name)):
                inside: Any = each.group
                yield from _named_words(kernel, part, place + i * words_of(inside), f"{name}[{i}].")
        else:
            yield name, _Word(place, _element_bytes(kernel, each.kind, each.spec.element))


def _element_bytes(kernel: Kernel, kind: str, element: str | None) -> int:
    if kind == "weights":
        element = FORMS[kernel.form]
    return 1 if element is None else np.dtype(DTYPES[element]).itemsize
