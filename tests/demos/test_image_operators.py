"""The plugin of demos/image_operators: found by its entry point, exact, and streaming where its ops do."""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.errors import FaultError, LoadError
from pulse.models import TypedModel
from pulse.onnx import registry
from pulse.support import plugins
from streaming import Session
from tests.conformance.node_cases import node_cases
from tests.conformance.node_outcomes import attempt, failures
from tests.conformance.node_skips import PLUGIN
from tests.pulse.cases.build import Feeds, floats, model, node, rng

FOLDER = Path(__file__).parents[2] / "demos" / "image_operators"


@pytest.fixture(autouse=True)
def installed_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the plugin beside the other plugins for one test."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    info = tmp_path / "pulse_images-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0.1.0\n")
    lines = [f"{name} = {module}" for name, module in project["entry-points"]["pulse.operators"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[pulse.operators]", *lines]) + "\n")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "USER_TRANSLATORS", {})
    plugins.load_plugins.cache_clear()
    yield
    for name in [name for name in sys.modules if name.startswith("pulse_images")]:
        del sys.modules[name]
    plugins.load_plugins.cache_clear()


@pytest.mark.parametrize("operator", PLUGIN)
def test_node_cases_of_onnx_pass(operator: str) -> None:
    outcomes = [attempt(case) for case in node_cases() if case.operator == operator]
    assert outcomes
    assert not failures(outcomes), "\n".join(map(str, failures(outcomes)))


def test_without_the_plugin_the_operator_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [])
    x = np.eye(3, dtype=np.float32)
    with pytest.raises(LoadError, match="Det"):
        pulse.load(model([node("Det", "x")], {"x": x})).analyse()


def streamed_output(typed: TypedModel, feeds: Feeds, backend: str) -> np.ndarray:
    """The only output of a stream, joined along the last axis."""
    session = Session(typed.declutter().pulsify(pulse=4).compile(backend=backend))
    parts = [session.push(feeds), session.flush()]
    return np.concatenate([next(iter(part.values())) for part in parts], axis=-1)


def loss(reduction: str, **attributes: int) -> tuple[ModelProto, Feeds]:
    """The loss of 5 classes over time."""
    feeds = {"x": floats("x", 2, 5, 7), "t": rng("t").integers(0, 5, (2, 7))}
    operator = node("SoftmaxCrossEntropyLoss", "x t", "y", reduction=reduction, **attributes)
    return model([operator], feeds, {}, 13, {"x": 2, "t": 1}), feeds


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_losses_stream(backend: str) -> None:
    source, feeds = loss("none", ignore_index=1)
    typed = pulse.load(source).analyse()
    np.testing.assert_allclose(streamed_output(typed, feeds, backend), typed.run(feeds)["y"], 1e-5, 1e-6)


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("wrong", [-1, 5, 100])
def test_targets_that_are_not_classes_are_faults(wrong: int, backend: str) -> None:
    """A target must be a class, or the one that is ignored."""
    source, feeds = loss("none", ignore_index=-100)
    typed = pulse.load(source).analyse()
    feeds["t"][1, 6] = wrong
    with pytest.raises(FaultError, match=r"1 value .* outside 0 … 4"):
        typed.run(feeds)
    with pytest.raises(FaultError, match=r"1 value .* outside 0 … 4"):
        streamed_output(typed, feeds, backend)


def test_a_grid_streams_over_a_constant_image() -> None:
    """Points of a constant image, frame by frame; the op has no kernel, so numpy runs it."""
    feeds = {"grid": floats("grid", 1, 9, 4, 2)}
    operator = node("GridSample", "image grid", "y", mode="linear", padding_mode="border")
    source = model([operator], feeds, {"image": floats("image", 1, 3, 6, 5)}, 20, {"grid": 1})
    typed = pulse.load(source).analyse()
    session = Session(typed.declutter().pulsify(pulse=2).compile(backend="numpy"))
    parts = [session.push(feeds)["y"], session.flush()["y"]]
    np.testing.assert_array_equal(np.concatenate(parts, axis=2), typed.run(feeds)["y"])
