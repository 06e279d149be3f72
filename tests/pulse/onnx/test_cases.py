"""Every case runs offline as onnxruntime runs it."""

from collections.abc import Iterator
from itertools import chain

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from pulse.model import load
from tests.pulse.cases import (
    attention,
    control,
    conv,
    einsum,
    elementwise,
    matrix,
    newer,
    quantize,
    recurrent,
    resize,
    scan,
    scatter,
    search,
    sequence,
    shape,
    spectral,
)
from tests.pulse.cases.build import Case, Feeds

GENERATORS = [
    *elementwise.ALL,
    *conv.ALL,
    *shape.ALL,
    *matrix.ALL,
    *spectral.ALL,
    *resize.ALL,
    *search.ALL,
    *recurrent.ALL,
    *scan.ALL,
    *attention.ALL,
    *scatter.ALL,
    *einsum.ALL,
    *quantize.ALL,
    *control.ALL,
    *sequence.ALL,
    *newer.ALL,
]
NEWEST = 26
"""The last opset that onnxruntime runs; of later ones onnx has a reference of its own."""


def all_cases() -> Iterator[Case]:
    return chain.from_iterable(generator() for generator in GENERATORS)


def reference(model: ModelProto, feeds: Feeds) -> list[np.ndarray]:
    if model.opset_import[0].version > NEWEST:
        return ReferenceEvaluator(model).run(None, feeds)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


@pytest.mark.parametrize(
    ("model", "feeds"), [pytest.param(model, feeds, id=name) for name, model, feeds in all_cases()]
)
def test_runs_as_onnxruntime(model: ModelProto, feeds: Feeds) -> None:
    typed = load(model).analyse()
    typed.graph.check()
    got = typed.run(feeds)
    env = typed.bind(feeds)
    assert list(got) == [value.name for value in model.graph.output]
    for (name, result), expected in zip(got.items(), reference(model, feeds), strict=True):
        fact = typed.outputs[name]
        assert result.dtype == expected.dtype == fact.dtype
        assert result.shape == tuple(dim.eval(env) for dim in fact.shape)
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


def test_no_two_cases_share_a_name() -> None:
    names = [name for name, _, _ in all_cases()]
    assert len(names) == len(set(names))
