"""Loops over the axes of a copy."""

from pulse.program.table.loops import Loops


def test_loops_are_merged_and_split() -> None:
    loops = Loops((2, 1, 3, 4), ((12, 5, 4, 1), (24, 7, 8, 2)))
    assert loops.merge() == Loops((24,), ((1,), (2,)))
    apart = Loops((2, 3, 4), ((12, 4, 1), (1, 2, 6)))
    assert apart.merge() == apart
    turns = list(apart.inner_loops(2))
    assert [offsets for offsets, _ in turns] == [(0, 0), (12, 1)]
    assert turns[0][1] == Loops((3, 4), ((4, 1), (2, 6)))
    turned = Loops((2, 3, 4, 5), ((1, 2, 3, 4), (5, 6, 7, 8))).move_longest_inside()
    assert turned == Loops((2, 3, 4, 5), ((1, 2, 3, 4), (5, 6, 7, 8)))
    turned = Loops((7, 3, 4, 5), ((1, 2, 3, 4), (5, 6, 7, 8))).move_longest_inside()
    assert turned == Loops((3, 4, 7, 5), ((2, 3, 1, 4), (6, 7, 5, 8)))
    ((offsets, inner),) = apart.inner_loops(5)
    assert offsets == (0, 0)
    assert inner.sizes == (1, 1, 2, 3, 4)
