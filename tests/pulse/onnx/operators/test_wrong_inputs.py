"""Nodes with the wrong number, rank or type of inputs are accepted or refused by name; nothing else comes out."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
import onnx.helper
import onnx.printer
import pytest

import pulse
from pulse.errors import PulsifyError
from pulse.onnx.operators import families as families
from pulse.onnx.registry import TRANSLATORS
from tests.invariants.hostile_models import model
from tests.pairs import pairs
from tests.pulse.cases.build import node

INPUTS = ("", "x", "x x", "x x x", " ".join("x" * 9), "i", "i x", "x i", "- x", "x -", "-", "- -")
"""The inputs of a node: x has floats, i integers; - is left out."""
SHAPES: Sequence[Sequence[int | str]] = (("T",), (), (1, "T"), (1, 3, "T"))


def models_of(op: str, half: bool = False) -> Iterator[onnx.ModelProto]:
    """Yield a model of one node for each list of inputs and each shape, or every second one; one if it reads none."""
    domain, _, op_type = op.rpartition("::")
    opsets = [onnx.helper.make_opsetid(*opset) for opset in {"": 23, domain: 1 if domain else 23}.items()]
    for inputs, shape in pairs(INPUTS, SHAPES, half):
        names = ["" if name == "-" else name for name in inputs.split()]
        if not any(names) and shape != SHAPES[0]:
            continue
        tensors = [
            onnx.helper.make_tensor_value_info(name, dtype, shape)
            for name, dtype in (("x", onnx.TensorProto.FLOAT), ("i", onnx.TensorProto.INT64))
        ]
        y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.UNDEFINED, None)
        operator = onnx.helper.make_node(op_type, names, ["y"], domain=domain)
        graph = onnx.helper.make_graph([operator], "g", tensors, [y])
        yield onnx.helper.make_model(graph, opset_imports=opsets)


@pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
@pytest.mark.parametrize("op", sorted(TRANSLATORS))
def test_onnx_nodes_with_wrong_inputs_are_read_or_refused(op: str, default_suite: bool) -> None:
    refused = 0
    for proto in models_of(op, half=default_suite):
        try:
            pulse.load(proto).analyse()
        except pulse.PulseError:
            refused += 1
    assert refused or op == "OptionalHasElement"  # which asks about any input, and about none


def test_a_stream_that_becomes_a_scalar_is_refused() -> None:
    proto = model([node("Reshape", "x s")], {"s": np.zeros(0, np.int64)}, ("T",))
    with pytest.raises(PulsifyError, match="reshaping T to scalar interleaves frames of the whole stream"):
        pulse.load(proto).analyse().pulsify()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pulse.PulseWarning")
@pytest.mark.parametrize("op", sorted(TRANSLATORS))
def test_a_node_that_streams_whatever_its_inputs_streams_exactly(op: str) -> None:
    for proto in models_of(op):
        try:
            report = pulse.verify(proto, lengths=(1, 2, 3, 9))
        except pulse.PulseError:
            continue  # refused
        assert report.equal, onnx.printer.to_text(proto)
