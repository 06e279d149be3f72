"""The memories of several streams in one call, for kernels.

``bases`` of a lane kernel has four words for each lane: weights, state and arena of that lane, then the number of
lanes. ``bases + LANE_WORDS * lane`` are the bases of one lane, for the accessors of ``pointer``.
"""

from pulse.jit.language.structs import Struct, struct_at
from pulse.jit.registry import device
from pulse.jit.rows.fields import fields_of, words_of
from pulse.jit.rows.instruction import RowFields, RowT, with_bases_at, word_of_bases


class LaneBases(Struct):
    """The bases of the memories of a lane, and the number of lanes."""

    weights: int
    state: int
    arena: int
    lanes: int


lane_bases_at = struct_at(LaneBases)
LANE_WORDS = words_of(LaneBases)
LANE_COUNT_WORD = fields_of(LaneBases)["lanes"].word
"""The word of the bases that is the number of lanes."""
MIN_SHARING_LANES = 4
"""The fewest lanes that share one reading of the weights."""
MAX_STACK_LANES = 64
"""The lanes whose addresses a kernel keeps on the stack."""


@device
def lane(row: RowT, number: int) -> RowT:
    """Return the row over the memories of one lane."""
    return with_bases_at(row, LANE_WORDS * number)


@device
def lane_count(row: RowFields) -> int:
    """Return the number of lanes."""
    return word_of_bases(row, LANE_COUNT_WORD)
