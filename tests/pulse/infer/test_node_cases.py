"""ONNX's node cases without the sizes of their inputs: all facts that are inferred are true."""

import onnx
import pytest
from onnx.backend.test.loader import load_model_tests

from pulse.errors import PulseError
from pulse.loading.onnx_files import read_onnx
from pulse.onnx.registry import RULES
from tests.failed_cases import FailedCases
from tests.pulse.infer.fact_agreement import assert_agrees, facts_by_name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # from onnx's own cases
def test_inferred_facts_of_node_cases_are_true() -> None:
    reached = 0
    failed = FailedCases()
    for case in load_model_tests(kind="node"):
        whole = case.model or onnx.load(f"{case.model_dir}/model.onnx")
        if not any(node.op_type in RULES for node in whole.graph.node):
            continue
        try:
            read_onnx(whole).analyse()
        except PulseError:
            continue
        truth = facts_by_name(read_onnx(whole))
        for erase in (erase_shapes, erase_sizes):
            with failed.collect(case.name):
                assert_agrees(facts_by_name(read_onnx(erase(whole))), truth)
            reached += 1
    assert not failed, "\n".join(failed)
    assert reached > 1000


def erase_shapes(model: onnx.ModelProto) -> onnx.ModelProto:
    left = onnx.ModelProto.FromString(model.SerializeToString())
    for value in left.graph.input:
        value.type.tensor_type.ClearField("shape")
    return left


def erase_sizes(model: onnx.ModelProto) -> onnx.ModelProto:
    left = onnx.ModelProto.FromString(model.SerializeToString())
    for value in left.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    return left
