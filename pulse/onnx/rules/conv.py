"""Convolutions and pools. How long they make an axis, the translators know."""

from collections.abc import Iterator

from pulse.infer.relations import HasRank, Relation, SameRank, SameSize, SameType, Scaled
from pulse.infer.wire_facts import Axis
from pulse.onnx.rules.clues import Clues
from pulse.onnx.rules.registry import rule


@rule("Conv", uniform=True)
def conv(clues: Clues) -> Iterator[Relation]:
    """Of x [N, C, X...], w [O, C/group, K...], b [O] -> y [N, O, Y...]."""
    x, w, y = clues.input(0), clues.input(1), clues.output
    yield from _matching(clues)
    yield Scaled(Axis(x, 1), Axis(w, 1), clues.integer("group", 1))
    yield SameSize([Axis(y, 1), Axis(w, 0), *_bias(clues)])
    yield SameSize([Axis(x, 0), Axis(y, 0)])


@rule("ConvTranspose", uniform=True)
def conv_transpose(clues: Clues) -> Iterator[Relation]:
    """Of x [N, C, X...], w [C, O/group, K...], b [O] -> y [N, O, Y...]."""
    x, w, y = clues.input(0), clues.input(1), clues.output
    yield from _matching(clues)
    yield SameSize([Axis(x, 1), Axis(w, 0)])
    yield Scaled(Axis(y, 1), Axis(w, 1), clues.integer("group", 1))
    yield SameSize([Axis(y, 1), *_bias(clues)])
    yield SameSize([Axis(x, 0), Axis(y, 0)])


def _matching(clues: Clues) -> Iterator[Relation]:
    yield SameType([*clues.given(), clues.output])
    yield SameRank([clues.input(0), clues.input(1), clues.output])
    if clues.has(2):
        yield HasRank([clues.input(2)], 1)


def _bias(clues: Clues) -> list[Axis]:
    return [Axis(clues.input(2), 0)] if clues.has(2) else []


@rule("MaxPool", "AveragePool", "LpPool", uniform=True)
def pool(clues: Clues) -> Iterator[Relation]:
    """Of x [N, C, X...] -> y [N, C, Y...], with one spatial axis for each of the kernel."""
    x, y = clues.input(0), clues.output
    yield SameType([x, y])
    yield HasRank([x, *clues.outlets], len(clues.integer_list("kernel_shape")) + 2)
    yield from _channels_kept(clues)


@rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", uniform=True)
def global_pool(clues: Clues) -> Iterator[Relation]:
    """Of x [N, C, X...] -> y [N, C, 1...]."""
    yield SameType([clues.input(0), clues.output])
    yield SameRank([clues.input(0), clues.output])
    yield from _channels_kept(clues)


def _channels_kept(clues: Clues) -> Iterator[Relation]:
    for axis in (0, 1):
        yield SameSize([Axis(clues.input(0), axis), Axis(clues.output, axis)])
