"""Assertions by the project's rule of tolerance (``pulse.proof.tolerance``)."""

from collections.abc import Mapping, Sequence

import numpy as np

from pulse.facts import Array, TypedFact
from pulse.models import TypedModel
from pulse.proof.oracle import typed_oracle
from pulse.proof.tolerance import ExpectedOutputs

NEAR = 1e-5


class Expected:
    """The outputs of an offline model for some inputs, with their tolerances for rounding.

    fetches   labels of the wires to compare; the outputs by default
    Raises    InputError: the model does not take these inputs
    """

    def __init__(
        self, model: TypedModel, feeds: Mapping[str, Array], fetches: Sequence[str] | None = None
    ) -> None:
        with np.errstate(all="ignore"):
            self.reference = ExpectedOutputs(typed_oracle(model, fetches), feeds)
        facts = {name: model.graph.fact(model.graph.find(name)) for name in fetches or ()} or model.outputs
        self._axes = {name: _stream_axis(fact) for name, fact in facts.items()}

    @property
    def outputs(self) -> dict[str, Array]:
        """Outputs in the model's own types."""
        return self.reference.native

    def assert_agrees(self, results: Mapping[str, Array], context: object = "") -> None:
        """Fail if the error of a result is larger than the rounding error."""
        for name in self.outputs:
            judgement = self.reference.judge(name, results[name], self._axes[name])
            assert judgement.fits, (context, name, results[name].shape, self.outputs[name].shape)
            assert judgement.agrees, (context, name, judgement.difference, judgement.share)

    def assert_runtime_agrees(self, results: Mapping[str, Array], context: object = "") -> None:
        """Fail unless another runtime's results agree by the rule or, if its functions round more, within ``NEAR``.

        They may be off by a rounding of 1: onnxruntime's Elu is exp(x) - 1, its tanh in layers a rational function.
        """
        judged = {name: self.reference.judge(name, results[name], self._axes[name]) for name in self.outputs}
        if not all(judgement.fits and judgement.agrees for judgement in judged.values()):
            self.assert_near(results, context, float(np.finfo(np.float32).eps))

    def assert_near(self, results: Mapping[str, Array], context: object = "", allowed: float = 0.0) -> None:
        """Fail unless another runtime's results are within ``NEAR`` of the largest value, as its formulas may differ.

        allowed  an error that is right whatever the largest value is
        """
        for name, expected in self.outputs.items():
            assert results[name].shape == expected.shape, (context, name, results[name].shape, expected.shape)
            off = np.abs(results[name].astype(np.float64) - expected)
            limit = max(NEAR * np.abs(expected).max(initial=0), allowed)
            assert off.max(initial=0) <= limit, (context, name, off.max())


def assert_close(
    output: Array, expected: Array, rtol: float = 0, atol: float = 0, share: float = 0, context: object = ""
) -> None:
    """Fail unless shape and type are equal, and values within the limits; ``share`` is that of the largest value."""
    assert (output.shape, output.dtype) == (expected.shape, expected.dtype), context
    limit = atol + share * np.abs(expected).max(initial=0) if share else atol
    np.testing.assert_allclose(output, expected, rtol, limit, err_msg=str(context))


def assert_outputs_close(
    outputs: Mapping[str, Array], expected: Mapping[str, Array], rtol: float = 1e-5, atol: float = 1e-6
) -> None:
    """Fail unless the outputs have equal names, shapes and types, and values within the limits."""
    assert outputs.keys() == expected.keys()
    for name, array in expected.items():
        assert_close(outputs[name], array, rtol, atol, context=name)


def assert_outputs_equal(outputs: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    """Fail unless the outputs have equal names, shapes and types, and the same values."""
    assert_outputs_close(outputs, expected, 0, 0)


def _stream_axis(fact: TypedFact) -> int | None:
    return next((axis for axis, dim in enumerate(fact.shape) if dim.symbols), None)
