"""How a row may be cut into parts that run at the same time and give the same bits as the whole row.

A part is a row of the same kernel with a part of one count; its operands begin further on::

    def cuts(self) -> Iterator[Cut]:
        yield Cut("M", 8, {"rows_x": 1, "rows_y": 1}, shared=self.K * self.N)

The parts write elements of their own. No part may read what another one writes. Each element is computed as in the
whole row: where a kernel takes several of the count together, parts begin at multiples of that, and the last part
takes what is left over.
"""

from collections.abc import Mapping
from dataclasses import field

from pulse.support.record import record


@record
class Cut:
    """A count of a row that may be cut.

    count    the name of the field
    block    parts begin at multiples of it
    moves    by how many elements an operand moves on for each of the count; bytes where its type is not declared
    sets     fields with another value in the parts
    scratch  operands that are scratch memory, and how many elements: each part has its own
    shared   about how many elements all parts read in full
    """

    count: str
    block: int
    moves: Mapping[str, int]
    sets: Mapping[str, int] = field(default_factory=dict[str, int])
    scratch: Mapping[str, int] = field(default_factory=dict[str, int])
    shared: int = 0
