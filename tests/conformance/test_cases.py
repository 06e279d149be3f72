"""The shared conformance cases: streamed equals onnxruntime's offline result, or is refused by name."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import pulse
from pulse.errors import PulseError
from pulse.models import TypedModel
from pulse.program.compiler import compile_model
from pulse.program.whole_stream import stream_whole
from tests.agreement import Expected
from tests.backends import BACKENDS
from tests.noise import next_noise
from tests.onnxruntime_sessions import open_session
from tests.shared import SHARED_FOLDER, shared_path


@cache
def manifest() -> list[dict[str, Any]]:
    """All cases, none if the shared material is missing."""
    path = SHARED_FOLDER / "cases" / "manifest.json"
    return json.loads(path.read_text()) if path.exists() else []


def cases_that_expect(action: str) -> list[Any]:
    """The cases of one expectation, as parameters."""
    cases = [pytest.param(case, id=case["id"]) for case in manifest() if case["expect"]["do"] == action]
    return cases or [pytest.param(None, id="missing")]


def load_case(case: dict[str, Any] | None) -> tuple[Path, TypedModel]:
    """The model of a case; skips where the shared material is missing."""
    folder = shared_path("cases")
    assert case is not None
    path = folder / case["file"]
    return path, pulse.load(path).analyse()


def offline(path: Path, case: dict[str, Any]) -> Any:
    """A function from feeds to the reference outputs, by name."""
    model = onnx.load(path)
    names = [output.name for output in model.graph.output]
    if case.get("offline_reference") == "onnx.reference":
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(model)
        return lambda feeds: dict(zip(names, evaluator.run(None, feeds)))
    session = open_session(path)
    return lambda feeds: dict(zip(names, session.run(None, feeds)))


def feeds_of(case: dict[str, Any], length: int) -> dict[str, Any]:
    """Random inputs of one length."""
    rng = np.random.default_rng(length)
    feeds = {}
    for entry in case["inputs"]:
        shape = [length if isinstance(dim, str) else dim for dim in entry["shape"]]
        floats = entry.get("dtype", "f32") == "f32"
        feeds[entry["name"]] = next_noise(rng, *shape) if floats else rng.integers(0, 4, shape)
    return feeds


@pytest.mark.parametrize("case", cases_that_expect("match"))
def test_streamed_cases_agree_with_offline(case: dict[str, Any] | None) -> None:
    """Every length, every frame, both backends, the padding of the last pulse NaN; onnxruntime equals our oracle."""
    path, typed = load_case(case)
    assert case is not None
    model = typed.declutter().pulsify(pulse=case["pulse"])
    max_delay = case["expect"].get("delay_at_most")
    if max_delay is not None:
        assert model.outputs[0].delay <= max_delay
    reference = offline(path, case)
    programs = [compile_model(model, backend) for backend in BACKENDS]
    for length in case["lengths"]:
        feeds = feeds_of(case, length)
        expected = Expected(typed, feeds)
        expected.assert_near(reference(feeds), f"offline, length {length}")
        for program in programs:
            expected.assert_agrees(stream_whole(program, feeds), f"{program.backend}, length {length}")


@pytest.mark.parametrize("case", cases_that_expect("refuse"))
def test_a_refusal_names_the_node_or_the_symbolic_dim(case: dict[str, Any] | None) -> None:
    """The error names the node that cannot stream, or says what is missing."""
    _, typed = load_case(case)
    assert case is not None
    with pytest.raises(PulseError) as caught:
        typed.declutter().pulsify(pulse=case["pulse"])
    message = str(caught.value)
    names = [node.name for node in typed.graph.nodes]
    assert any(name in message for name in names) or "symbolic dim" in message


def test_no_case_is_missing() -> None:
    """The manifest has at least as many cases as when it was written."""
    shared_path("cases")
    assert len(manifest()) >= 170
