"""The outcomes of node cases: run by the oracle and compared, or not run, with a reason."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import numpy as np
from onnx import ModelProto

import pulse
from pulse.errors import InputError, LoadError, PulseError
from pulse.facts import Array, dtype_name
from tests.conformance.node_cases import NodeCase, as_array, node_cases
from tests.conformance.node_skips import MUST, skip_reason

Status: TypeAlias = Literal["passed", "skipped", "refused", "wrong", "crashed"]


@dataclass(frozen=True)
class NodeOutcome:
    """How a case ended, and why it did not pass.

    fixed  whether inputs had to be constants, because the shape of an output depends on their values
    """

    case: NodeCase
    status: Status
    reason: str = ""
    fixed: bool = False

    @property
    def must(self) -> bool:
        """Whether it is a plain case of an operator that must run."""
        return not self.case.expanded and self.case.operator in MUST

    def __str__(self) -> str:
        return f"{self.case.name} {self.status}: {self.reason}"


@cache
def outcomes() -> tuple[NodeOutcome, ...]:
    """How every case of the installed onnx ends."""
    return tuple(outcome(case) for case in node_cases())


def failures(outcomes_of: Iterable[NodeOutcome]) -> list[NodeOutcome]:
    """The cases that neither pass nor have a reason."""
    return [outcome for outcome in outcomes_of if outcome.status not in ("passed", "skipped")]


def outcome(case: NodeCase) -> NodeOutcome:
    """Run a case, unless there is a reason not to."""
    reason = skip_reason(case)
    return NodeOutcome(case, "skipped", reason) if reason else attempt(case)


def attempt(case: NodeCase) -> NodeOutcome:
    """Run a case on all of its data sets. Warnings count as crashes, as everywhere in the tests."""
    fixed = False
    for inputs, outputs in case.data_sets:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                results, constants = run_with_few_constants(case.model, [as_array(value) for value in inputs])
        except PulseError as error:
            return NodeOutcome(case, "refused", str(error))
        except Exception as error:
            return NodeOutcome(case, "crashed", f"{type(error).__name__}: {error}")
        fixed |= constants
        for value, expected in zip(case.model.graph.output, outputs, strict=True):
            difference = differs(results[value.name], as_array(expected), case.rtol, case.atol)
            if difference:
                return NodeOutcome(case, "wrong", f"{value.name}: {difference}")
    return NodeOutcome(case, "passed", fixed=fixed)


def run_with_few_constants(model: ModelProto, inputs: Sequence[Array]) -> tuple[dict[str, Array], bool]:
    """The outputs, and whether inputs had to be constants.

    Shapes, axes and sizes are inputs of most node cases, and then no shape is known before the values are. A case
    that is refused with all of its inputs fed is tried again with as few constants as possible.
    """
    feeds = {value.name: array for value, array in zip(model.graph.input, inputs)}
    refusal: PulseError | None = None
    for constants in _constants(feeds):
        try:
            shapes = {name: _spec(array) for name, array in feeds.items() if name not in constants}
            values = {name: feeds[name] for name in constants}
            typed = pulse.load(model, inputs=shapes, constants=values).model.analyse()
            return typed.run({name: feeds[name] for name in typed.inputs}), bool(constants)
        except (InputError, LoadError) as error:
            refusal = refusal or error
    assert refusal is not None
    raise refusal


def _constants(feeds: Mapping[str, Array]) -> Iterator[list[str]]:
    yield []
    yield [name for name, array in feeds.items() if array.ndim <= 1 and array.dtype.kind in "iu"]
    yield list(feeds)[1:]
    yield list(feeds)


def _spec(array: Array) -> str:
    """The shape and type of an input, as ``pulse.load`` takes them."""
    return ",".join([*map(str, array.shape), dtype_name(array.dtype)])


def differs(output: Array, expected: Array, rtol: float, atol: float) -> str:
    """How a result differs in type, shape or value; empty where it does not."""
    if output.dtype != expected.dtype or output.shape != expected.shape:
        return f"{output.dtype} {output.shape} instead of {expected.dtype} {expected.shape}"
    try:
        np.testing.assert_allclose(output, expected, rtol, atol)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""
