"""``SPACE_TO_BATCH_ND``, a convolution, ``BATCH_TO_SPACE_ND``: one dilated convolution."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pulse.tflite.operators.pad import PAD_OP
from pulse.tflite.read.file import Operator, Subgraph

CONVOLUTIONS = ("CONV_2D", "DEPTHWISE_CONV_2D")
BEFORE, AFTER = ("EXPAND_DIMS",), ("RESHAPE", "SQUEEZE")
"""The operators allowed between the blocks and the convolution, and after it, if there is one time axis."""
VALID = 1
"""The value of the option for no padding."""
IMAGE_RANK = 4
"""The axes of a convolution's input."""


def merge_dilation(graph: Subgraph) -> Subgraph:
    """Return the subgraph with dilated convolutions."""
    makers = {tensor: index for index, user in enumerate(graph.operators) for tensor in user.outputs}
    readers = Counter(tensor for user in graph.operators for tensor in user.inputs)
    readers.update(graph.outputs)
    replacements: dict[int, Operator | None] = {}
    for index, operator in enumerate(graph.operators):
        if operator.op_type == "BATCH_TO_SPACE_ND" and len(operator.inputs) == 3:
            replacements.update(_dilated_operators(graph, index, makers, readers))
    operators = [replacements.get(index, operator) for index, operator in enumerate(graph.operators)]
    return replace(graph, operators=[operator for operator in operators if operator is not None])


def _maker_of_type(
    graph: Subgraph,
    tensor: int,
    op_types: tuple[str, ...],
    between: tuple[str, ...],
    makers: Mapping[int, int],
) -> tuple[int | None, int | None]:
    """Return the operator of some kinds that produces a tensor, and the operator of other kinds that may be between."""
    maker = makers.get(tensor)
    if maker is None or graph.operators[maker].op_type in op_types:
        return maker, None
    operator = graph.operators[maker]
    earlier = makers.get(operator.inputs[0]) if operator.op_type in between and operator.inputs else None
    if earlier is not None and graph.operators[earlier].op_type in op_types:
        return earlier, maker
    return None, None


def _dilated_operators(
    graph: Subgraph, end: int, makers: Mapping[int, int], readers: Mapping[int, int]
) -> dict[int, Operator | None]:
    """Return the replacements of the operators of one pattern, None for a removed one; empty if there is no pattern."""
    last = graph.operators[end]
    middle, squeezing = _maker_of_type(graph, last.inputs[0], CONVOLUTIONS, AFTER, makers)
    if middle is None:
        return {}
    conv = graph.operators[middle]
    begin, widening = _maker_of_type(graph, conv.inputs[0], ("SPACE_TO_BATCH_ND",), BEFORE, makers)
    if begin is None or len(graph.operators[begin].inputs) != 3 or not _has_unit_window(conv):
        return {}
    first = graph.operators[begin]
    block, other = (graph.tensors[operator.inputs[1]].data for operator in (first, last))
    inner = [index for index in (begin, widening, middle, squeezing) if index is not None]
    if block is None or other is None or not np.array_equal(block, other):
        return {}
    if any(readers[graph.operators[index].outputs[0]] != 1 for index in inner):
        return {}
    axis = None if widening is None else _axis(graph, graph.operators[widening])
    factors = _factors(block.ravel().tolist(), axis)
    if (widening is None) != (squeezing is None) or factors is None or makers.get(last.inputs[2], -1) > begin:
        return {}
    options = {**conv.options, "DilationHFactor": factors[0], "DilationWFactor": factors[1]}
    pads = (first.inputs[0], first.inputs[2], last.inputs[2])
    replacements: dict[int, Operator | None] = {begin: replace(first, op_type=PAD_OP, inputs=pads), end: None}
    if squeezing is None:
        replacements[middle] = replace(conv, options=options, outputs=last.outputs)
    else:
        replacements[middle] = replace(conv, options=options)
        replacements[squeezing] = Operator("SQUEEZE", conv.outputs, last.outputs, {"SqueezeDims": [axis]})
    return replacements


def _has_unit_window(conv: Operator) -> bool:
    """Return whether a convolution has no padding, steps or dilation of its own."""
    names = ("StrideH", "StrideW", "DilationHFactor", "DilationWFactor")
    return conv.options.get("Padding") == VALID and all(conv.options.get(name, 1) == 1 for name in names)


def _axis(graph: Subgraph, widening: Operator) -> int | None:
    """Return the axis that EXPAND_DIMS adds before a convolution."""
    value = graph.tensors[widening.inputs[1]].data if len(widening.inputs) == 2 else None
    return None if value is None or value.size != 1 else int(value.ravel()[0]) % IMAGE_RANK


def _factors(blocks: list[int], added_axis: int | None) -> tuple[int, int] | None:
    """Return the dilations of height and width; ``added_axis`` is the one of them that the frames lack."""
    if added_axis is None:
        return (blocks[0], blocks[1]) if len(blocks) == 2 else (blocks[0], 1) if len(blocks) == 1 else None
    if len(blocks) != 1 or added_axis not in (1, 2):
        return None
    return (1, blocks[0]) if added_axis == 1 else (blocks[0], 1)
