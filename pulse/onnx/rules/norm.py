"""Normalisations: the shape stays, and the channels are those of the parameters."""

from collections.abc import Iterator

from pulse.infer.relations import HasRank, Relation, SameShape, SameSize, SameType
from pulse.infer.wire_facts import Axis
from pulse.onnx.rules.clues import Clues
from pulse.onnx.rules.registry import rule


@rule("Softmax", "LogSoftmax", "Hardmax", "CumSum", "LpNormalization", "MeanVarianceNormalization", "LRN")
def kept(clues: Clues) -> Iterator[Relation]:
    """Type and shape stay."""
    yield SameType([clues.input(0), clues.output])
    yield SameShape([clues.input(0), clues.output])


@rule("BatchNormalization", "InstanceNormalization")
def channelwise(clues: Clues) -> Iterator[Relation]:
    """Of x [N, C, X...] and parameters [C] each."""
    yield from kept(clues)
    yield from _channels(clues)


@rule("GroupNormalization")
def grouped(clues: Clues) -> Iterator[Relation]:
    """Of x [N, C, X...]; each parameter is [C] from opset 21 on, one for each group before."""
    yield from kept(clues)
    if clues.opset >= 21:
        yield from _channels(clues)


def _channels(clues: Clues) -> Iterator[Relation]:
    parameters = clues.given()[1:]
    yield HasRank(parameters, 1)
    yield SameSize([Axis(clues.input(0), 1), *(Axis(parameter, 0) for parameter in parameters)])


@rule("LayerNormalization", "RMSNormalization")
def layer(clues: Clues) -> Iterator[Relation]:
    """The shape stays; a scale of one axis is as long as the last one of x, where it is not of size 1."""
    yield from kept(clues)
    scale = clues.input(1)
    size = clues.fact(scale).dim(0)
    if clues.rank(scale) == 1 and size is not None and size != 1:
        yield SameSize([Axis(clues.input(0), -1), Axis(scale, 0)])
