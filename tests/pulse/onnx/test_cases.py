"""Every case runs offline as onnxruntime runs it."""

import numpy as np
import pytest
from onnx import ModelProto

from pulse.loading.format_registry import read_onnx as load
from tests.pulse.cases.build import Feeds
from tests.pulse.cases.families import all_cases
from tests.pulse.onnx.reference import reference


@pytest.mark.parametrize(
    ("model", "feeds"), [pytest.param(model, feeds, id=name) for name, model, feeds in all_cases()]
)
def test_operator_cases_run_as_in_onnxruntime(model: ModelProto, feeds: Feeds) -> None:
    typed = load(model).analyse()
    typed.graph.check()
    outputs = typed.run(feeds)
    env = typed.bind(feeds)
    assert list(outputs) == [value.name for value in model.graph.output]
    for (name, result), expected in zip(outputs.items(), reference(model, feeds), strict=True):
        fact = typed.outputs[name]
        assert result.dtype == expected.dtype == fact.dtype
        assert result.shape == tuple(dim.eval(env) for dim in fact.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_no_two_cases_share_a_name() -> None:
    names = [name for name, _, _ in all_cases()]
    assert len(names) == len(set(names))
