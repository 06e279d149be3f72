"""The node cases that must pass, and the table of those that are not run."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from pulse.facts import DTYPES
from pulse.onnx.registry import DEFAULT_DOMAINS
from tests.conformance.node_cases import NodeCase, as_array

_MUST = """
Abs Neg Exp Log Sqrt Reciprocal Floor Ceil Round Sign Sin Cos Erf Not Identity Cast
Relu LeakyRelu PRelu Elu Selu Gelu Sigmoid HardSigmoid HardSwish Tanh Softplus Softsign Clip Mish Swish
Add Sub Mul Div Pow Mod Max Min Sum Mean And Or Xor Equal Greater GreaterOrEqual Less LessOrEqual Where
Conv ConvTranspose CausalConvWithState AveragePool MaxPool GlobalAveragePool GlobalMaxPool BatchNormalization
LayerNormalization InstanceNormalization GroupNormalization Dropout Gemm MatMul Einsum Softmax LogSoftmax
LSTM GRU RNN
Constant ConstantOfShape Shape Size Reshape Flatten Transpose Squeeze Unsqueeze Concat Split Slice Gather
GatherElements Expand Tile Pad Range ScatterND Resize
ReduceMean ReduceSum ReduceMax ReduceMin ReduceL2 ReduceSumSquare ArgMax ArgMin CumSum
If Scan Loop
DFT STFT HannWindow HammingWindow BlackmanWindow MelWeightMatrix
QuantizeLinear DequantizeLinear
"""
MUST = tuple(_MUST.split())
"""The operators of which every plain case must pass."""

Test: TypeAlias = Callable[[NodeCase], bool]

TYPES = frozenset(map(helper.np_dtype_to_tensor_dtype, DTYPES.values()))
RANDOM = (
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)
PLUGIN = (
    "AffineGrid",
    "DeformConv",
    "Det",
    "GridSample",
    "MaxUnpool",
    "NegativeLogLikelihoodLoss",
    "RoiAlign",
    "SoftmaxCrossEntropyLoss",
)
"""The operators of ``demos/image_operators``; ``tests/demos/test_image_operators.py`` runs their cases."""
ROUNDED = ("test_dft_inverse", "test_dft_inverse_opset19", "test_attention_4d_causal_fp16_expanded")
"""Cases that no exact result passes; ``test_node_cases`` compares them at the rounding of their own type."""


def nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """The nodes of a graph and of the bodies in it."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from nodes(attribute.g)


def _values(case: NodeCase) -> list[ValueInfoProto]:
    graph = case.model.graph
    return [*graph.input, *graph.output, *graph.value_info]


def _uses(*operators: str) -> Test:
    def test(case: NodeCase) -> bool:
        return any(
            node.domain in DEFAULT_DOMAINS and node.op_type in operators for node in nodes(case.model.graph)
        )

    return test


def _has_non_tensors(case: NodeCase) -> bool:
    return any(not value.type.HasField("tensor_type") for value in _values(case))


def _types(case: NodeCase) -> set[int]:
    return {value.type.tensor_type.elem_type for value in _values(case)}


def _has_strings(case: NodeCase) -> bool:
    return TensorProto.STRING in _types(case)


def _has_other_types(case: NodeCase) -> bool:
    return bool(_types(case) - TYPES)


def _has_other_domains(case: NodeCase) -> bool:
    return any(node.domain not in DEFAULT_DOMAINS for node in nodes(case.model.graph))


def _trains_at_random(case: NodeCase) -> bool:
    """A Dropout in training mode with a ratio other than 0."""
    if case.operator != "Dropout" or len(case.data_sets[0][0]) < 3:
        return False
    _, ratio, training = (as_array(value) for value in case.data_sets[0][0][:3])
    return bool(training) and bool(ratio != 0)


def _divides_by_a_fraction(case: NodeCase) -> bool:
    """A Resize with aligned corners whose scales give no whole numbers of frames."""
    if case.operator != "Resize" or len(case.data_sets[0][0]) < 2:
        return False
    (node,) = case.model.graph.node
    attributes = {entry.name: helper.get_attribute_value(entry) for entry in node.attribute}
    x, scales = (as_array(value) for value in case.data_sets[0][0][:2])
    aligned = attributes.get("coordinate_transformation_mode") == b"align_corners"
    return aligned and scales.dtype == np.float32 and not np.all((scales * x.shape) % 1 == 0)


SKIPS: tuple[tuple[str, Test], ...] = (
    ("sequences, optionals and maps: wires are tensors", _has_non_tensors),
    ("strings: no audio model computes with text", _has_strings),
    ("counts of words: no audio model computes with text", _uses("TfIdfVectorizer")),
    ("bf16, floats of at most 8 bits, integers of at most 4: numpy has no such types", _has_other_types),
    ("another domain than ai.onnx: classic machine learning, training, previews", _has_other_domains),
    ("random numbers: the expected output is one draw of many", _uses(*RANDOM)),
    ("a dropout that trains: the expected output is one draw of many", _trains_at_random),
    ("a choice of boxes: how many there are depends on data", _uses("NonMaxSuppression")),
    ("decodes image files", _uses("ImageDecoder")),
    ("images and training: a plugin in demos/image_operators has them", _uses(*PLUGIN)),
    (
        "its expected output divides by a number of frames that is not whole; PyTorch and onnxruntime "
        "divide by the frames that there are",
        _divides_by_a_fraction,
    ),
    (
        "its expected output is off by more than its own tolerance, through rounding in f32 or f16",
        lambda case: case.name in ROUNDED,
    ),
)
"""Why a case is not run, and which cases; the first row that fits counts."""


def skip_reason(case: NodeCase) -> str:
    """Why a case is not run; empty where it is."""
    return next((reason for reason, applies in SKIPS if applies(case)), "")
