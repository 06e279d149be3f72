"""A model that is written as NNEF, read back and run by tract gives what the offline model gives."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

import pulse
from pulse.errors import InputError, WriteError
from pulse.nnef.archive import Archive
from pulse.nnef.write.model import to_nnef
from pulse.proof import ProofChoice
from pulse.runtimes.nnef_check import check_nnef, check_offline
from pulse.runtimes.tract import TractProcess, has_tract
from tests.agreement import Expected
from tests.failed_cases import FailedCases
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.families import all_cases
from tests.pulse.nnef.streaming_models import BEYOND, STREAMS, conv, typed_and_pulsed
from tests.pulse.program.static_models import fixed_specs, static_model

needs_tract = pytest.mark.skipif(not has_tract(), reason="tract is not installed: pip install tract")
REASONS = ("have no tensors without elements", "layers with one direction", "no operators for", "no exact remainders",
           "count the positions", "does not allow it")  # fmt: skip


def operator_cases(step: int, in_tract: bool) -> Counter[str]:
    """The outcomes of every ``step``-th case of constant shape. Raises AssertionError with all cases that differ."""
    counts: Counter[str] = Counter()
    failed = FailedCases()
    for name, source, feeds in [case for case in all_cases() if case[0].endswith("-fixed")][::step]:
        typed = pulse.load(source, inputs=fixed_specs(feeds)).model.analyse()
        try:
            expected = Expected(typed, feeds)
            static = static_model(typed)
            archive = to_nnef(static)
        except (WriteError, InputError) as error:
            assert isinstance(error, InputError) or any(reason in str(error) for reason in REASONS), (
                name,
                str(error),
            )
            counts["refused"] += 1
            continue
        back = pulse.load(archive.pack()).model.analyse()
        arrays = [feeds[port.name] for port in static.inputs]
        names = [port.name for port in static.outputs]
        read = back.run(dict(zip((back.graph.label(outlet) for outlet in back.graph.inputs), arrays)))
        with failed.collect(name):
            expected.assert_agrees(dict(zip(names, read.values())), name)
        counts["read"] += 1
        if not in_tract:
            continue
        try:
            process = TractProcess(archive, name)
        except WriteError:
            counts["refused by tract"] += 1
            continue
        with failed.collect(f"{name} in tract"):
            expected.assert_near(dict(zip(names, process.run("0", arrays))), name)
        counts["tract"] += 1
    assert not failed, "\n".join(failed)
    return counts


def test_operator_cases_are_read_back_or_refused() -> None:
    counts = operator_cases(9, in_tract=False)
    assert counts["read"] >= 180
    assert counts["refused"] <= 6, counts


@needs_tract
def test_some_operators_run_in_tract() -> None:
    counts = operator_cases(86, in_tract=True)
    assert counts["tract"] >= 17
    assert counts["refused by tract"] <= 1, counts


@needs_tract
@pytest.mark.slow
def test_all_operators_run_in_tract() -> None:
    counts = operator_cases(1, in_tract=True)
    print(dict(counts))
    assert counts["tract"] >= 1_730
    assert counts["refused by tract"] <= 4, counts


@needs_tract
@pytest.mark.parametrize("name", STREAMS)
def test_streams_in_tract(name: str) -> None:
    """Pulses and flush are equal, with NaN as padding of the last pulse."""
    typed, streamed = typed_and_pulsed(*STREAMS[name])
    report = check_nnef(streamed.to_nnef(), streamed, typed, ProofChoice((1, 2, 5, 12)))
    assert report.backends == ("tract",)
    assert report.equal, report.verdict


def with_table() -> ModelProto:
    """Each frame and its row of a table."""
    nodes = [
        node("Shape", "x", "n", start=2, end=3), node("Slice", "table zero n two", "rows"), node("Add", "x rows", "y"),
    ]  # fmt: skip
    constants = {"two": np.array([2]), "zero": np.array([0]), "table": floats("table", 1, 2, 64)}
    return model(nodes, {"x": floats("x", 1, 2, 9)}, constants, opset=17, stream={"x": 2})


@needs_tract
def test_bounds_are_written_in_terms_of_a_symbol() -> None:
    """The bounds are the rows of a table, and a slice of an unpadded convolution, empty for 1 frame."""
    typed = pulse.load(with_table()).analyse().declutter()
    archive = typed.to_nnef()
    assert "end = [T]" in archive.document.text()
    assert "shape_of" not in archive.document.text()
    assert check_offline(archive, typed, lengths=(1, 2, 5, 64)).divergence is None
    nodes = [node("Conv", "x w", "c"), node("Slice", "c s e a", "y")]
    bounds = {"s": np.array([1]), "e": np.array([-1]), "a": np.array([2]), "w": floats("w", 2, 2, 3)}
    typed = (
        pulse.load(model(nodes, {"x": floats("x", 1, 2, 9)}, bounds, stream={"x": 2})).analyse().declutter()
    )
    assert check_offline(typed.to_nnef(), typed, lengths=(5, 8)).divergence is None


@needs_tract
@pytest.mark.parametrize(
    "name",
    ["causal convolution", "centred convolution", "strided convolution", "joined slices", "GRU", "LSTM"],
)
def test_offline_models_run_in_tract(name: str) -> None:
    typed = pulse.load(STREAMS[name][0]).analyse().declutter()
    proof = check_offline(typed.to_nnef(), typed, lengths=(3, 4, 7, 12))
    assert proof.divergence is None
    assert len(proof.lengths) == 4


def test_a_wrong_nnef_archive_is_found() -> None:
    pytest.importorskip("tract", reason="pip install tract")
    typed = pulse.load(conv(pads=[2, 0])).analyse()
    archive = typed.to_nnef()
    wrong = Archive(archive.document, {name: value + 1 for name, value in archive.tensors.items()})
    assert "y differs by" in (check_offline(wrong, typed).divergence or "")


def kinds(archive: Archive) -> set[str]:
    return {
        line.split(" = ", 1)[1].split("(", 1)[0]
        for line in archive.document.text().splitlines()
        if " = " in line
    }


def test_extensions_are_named_only_if_plain_nnef_lacks_operators() -> None:
    """A registry of tract is named only for its operators; a pulsed model has its states in one scan."""
    typed, streamed = typed_and_pulsed(conv(pads=[2, 0]), 4)
    offline = typed.declutter().to_nnef()
    assert kinds(offline) == {"external", "variable<scalar>", "conv", "relu"}
    assert offline.document.extensions == (("tract_symbol", "T"),)
    archive = streamed.to_nnef()
    assert archive.states == 1
    assert "tract_core_scan" in kinds(archive)
    assert '("pulse.delay", tract_core_cast([0], to = "i64"))' in archive.document.text()
    relu = model([node("Relu", "x")], {"x": floats("x", 1, 2, 9)}, stream={"x": 2})
    stateless = typed_and_pulsed(relu, 4)[1].to_nnef()
    assert stateless.states == 0
    assert [line.split(" = ", 1)[1] for line in stateless.document.text().splitlines()[-3:-1]] == [
        "external(shape = [1, 2, 4]);", "relu(x);",
    ]  # fmt: skip


def test_names_become_identifiers() -> None:
    nodes = [node("Relu", "a/b.c", "1y"), node("Relu", "1y", "in")]
    source = model(nodes, {"a/b.c": floats("x", 1, 2)}, outputs="in")
    document = pulse.load(source).analyse().to_nnef().document
    assert (document.inputs, document.outputs) == (("a_b_c",), ("_in",))


REFUSED: Sequence[tuple[ModelProto, str]] = [
    (model([node("Mod", "x c", fmod=1)], {"x": floats("x", 1, 2)}, {"c": floats("c", 1, 2)}),
     r"y \(Mod\): NNEF and tract have no exact remainders of floats; compute it with integers"),
    (model([node("MaxPool", "x", "p y", kernel_shape=[2])], {"x": floats("x", 1, 2, 9)}),
     "count the positions of a pool differently; omit the second output"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "reason"), REFUSED, ids=["remainder of floats", "positions of a pool"])
def test_models_that_cannot_be_expressed_are_refused(source: ModelProto, reason: str) -> None:
    with pytest.raises(WriteError, match=reason):
        pulse.load(source).analyse().to_nnef()


def test_an_archive_is_saved_under_any_kind_of_path(tmp_path: Path) -> None:
    """A text too, as for the other files that models are written to."""
    archive = to_nnef(typed_and_pulsed(conv(), 1)[0])
    archive.save(f"{tmp_path}/folder.nnef")
    archive.save(tmp_path / "one.nnef.tgz")
    assert (tmp_path / "folder.nnef" / "graph.nnef").is_file()
    assert (tmp_path / "one.nnef.tgz").is_file()


def test_equal_models_give_equal_bytes() -> None:
    first, second = (typed_and_pulsed(conv(pads=[1, 1]), 4)[1].to_nnef() for _ in range(2))
    assert first.pack() == second.pack()


@pytest.mark.parametrize("name", BEYOND)
def test_models_that_tract_cannot_pulse_are_written_exactly(name: str, tmp_path: Path) -> None:
    tract = pytest.importorskip("tract", reason="pip install tract")
    path = tmp_path / "model.onnx"
    path.write_bytes(BEYOND[name].SerializeToString())
    with pytest.raises(tract.TractError):
        tract.onnx().load(path).into_model().transform(tract.Pulse(4, symbol="T"))
    typed, streamed = typed_and_pulsed(BEYOND[name], 4)
    report = check_nnef(streamed.to_nnef(), streamed, typed, ProofChoice((4, 5, 9)))
    assert report.equal, report.verdict
