"""The shared cases as NNEF in tract: pulse by pulse, and what tract itself writes, read."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import pulse
from pulse.errors import PulseError, WriteError
from pulse.proof import ProofChoice
from pulse.runtimes.nnef_check import check_nnef, check_offline
from pulse.runtimes.tract import has_tract
from tests.shared import shared_path

pytestmark = pytest.mark.skipif(not has_tract(), reason="tract is not installed: pip install tract")
UNABLE = frozenset({"refused", "WRONG", "crash", "runtime_error", "load_refused"})
"""Outcomes in which tract's own pulses do not stream a case."""


def manifest() -> list[Mapping[str, Any]]:
    cases: list[Mapping[str, Any]] = json.loads((shared_path("cases") / "manifest.json").read_text())
    return cases


def specs(case: Mapping[str, Any]) -> dict[str, str]:
    return {
        port["name"]: ",".join([*map(str, port["shape"]), port.get("dtype", "f32")])
        for port in case["inputs"]
    }


def outcome_in_pulses(case: Mapping[str, Any], folder: Path) -> str:
    """How a case ended: refused before pulses, refused as NNEF, or equal in tract."""
    model = pulse.load(folder / case["file"], inputs=specs(case))
    try:
        typed = model.analyse()
        pulsed = typed.declutter().pulsify(pulse=case["pulse"])
    except PulseError:
        return "no stream"
    try:
        archive = pulsed.to_nnef()
    except WriteError as error:
        return str(error)
    report = check_nnef(archive, pulsed, typed, ProofChoice(case["lengths"]))
    assert report.equal, (case["id"], report.verdict)
    return "equal"


def count_outcomes(step: int) -> tuple[Counter[str], int]:
    """The outcomes of every ``step``-th case, and the number of equal ones that tract's own pulses cannot do."""
    folder = shared_path("cases")
    counts: Counter[str] = Counter()
    beyond = 0
    for case in manifest()[::step]:
        ended = outcome_in_pulses(case, folder)
        counts[ended] += 1
        beyond += ended == "equal" and case["tract_0_23_9"] in UNABLE
    return counts, beyond


def test_some_cases_stream_in_tract() -> None:
    counts, _ = count_outcomes(12)
    assert counts["equal"] >= 12, counts


@pytest.mark.slow
def test_all_cases_stream_in_tract() -> None:
    counts, beyond = count_outcomes(1)
    print(dict(counts), beyond)
    assert counts["equal"] >= 159
    assert set(counts) == {"equal", "no stream"}
    assert beyond >= 14


@pytest.mark.slow
def test_all_cases_run_offline_in_tract() -> None:
    folder, counts = shared_path("cases"), Counter[str]()
    for case in manifest():
        typed = pulse.load(folder / case["file"], inputs=specs(case)).analyse().declutter()
        try:
            archive = typed.to_nnef()
        except WriteError:
            counts["refused"] += 1
            continue
        try:
            proof = check_offline(archive, typed, lengths=case.get("lengths"))
        except WriteError:
            counts["refused by tract"] += 1
            continue
        assert proof.divergence is None, (case["id"], proof.divergence)
        counts["equal"] += 1
    print(dict(counts))
    assert counts["equal"] >= 153


@pytest.mark.slow
def test_gtcrn_streams_in_tract() -> None:
    """Tract's own pulses refuse it."""
    typed = pulse.load(shared_path("models") / "gtcrn_offline.onnx").analyse()
    pulsed = typed.declutter().pulsify(pulse=1)
    report = check_nnef(pulsed.to_nnef(), pulsed, typed, ProofChoice([12]))
    assert report.equal, report.verdict
