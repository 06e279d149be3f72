"""Cuts: how to divide a row into parts that run at the same time, with bit-identical results.

A part is a row of the same kernel with a part of one count; its operands begin later::

    def cuts(self) -> Iterator[Cut]:
        yield Cut("M", 8, {"rows_x": 1, "rows_y": 1}, shared=self.K * self.N)

Each part writes its own elements, and no part may read elements that another one writes. Each element is computed as in
the whole row: if a kernel computes several of the count at once, parts begin at multiples of that number, and the last
part has the remainder.
"""

from collections.abc import Mapping
from dataclasses import field

from pulse.support.record import record


@record
class Cut:
    """A count of a row that may be cut.

    count    the name of the field
    block    parts begin at multiples of it
    moves    operand -> elements that it advances for each of the count; bytes if its type is not declared; or
             number -> by how much it grows
    sets     fields with another value in the parts
    scratch  operands for the row's own use -> number of elements: each part has its own
    shared   the approximate number of elements that every part reads
    """

    count: str
    block: int
    moves: Mapping[str, int]
    sets: Mapping[str, int] = field(default_factory=dict[str, int])
    scratch: Mapping[str, int] = field(default_factory=dict[str, int])
    shared: int = 0
