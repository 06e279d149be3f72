"""The demos run and print the expected results."""

import shutil
import sys
from pathlib import Path

import pytest

from pulse.proof import trials
from tests.demos.scripts import run_demo
from tests.noise import normal_noise
from tests.shared import shared_path


def test_denoise_blocks_runs(tmp_path: Path) -> None:
    result = run_demo("denoise_blocks.py", "--out", str(tmp_path / "out.wav"))
    assert result.returncode == 0, result.stderr
    difference = float(result.stdout.rsplit(" ", 1)[1])
    assert difference < 1e-5
    assert (tmp_path / "out.wav").stat().st_size > 100_000


@pytest.mark.parametrize(("ahead", "delay"), [(0, 0), (2, 1), pytest.param(4, 2, marks=pytest.mark.slow)])
def test_a_model_written_by_the_demo_streams_exactly(ahead: int, delay: int) -> None:
    result = run_demo("write_a_model.py", "--ahead", str(ahead))
    assert result.returncode == 0, result.stderr
    assert f"delay {delay}" in result.stdout
    assert "streamed equals offline" in result.stdout
    assert result.stdout.strip().endswith("True")


def test_a_pulse_that_does_not_suit_is_refused() -> None:
    result = run_demo("write_a_model.py", "--pulse", "3")
    assert result.returncode == 1
    assert "use 2 or 4" in result.stderr


@pytest.mark.parametrize(
    "seconds", [trials.MAX_TOTAL_S / 4, pytest.param(trials.MAX_TOTAL_S, marks=pytest.mark.slow)]
)
def test_gtcrn_by_hand_streams_with_random_weights(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: float
) -> None:
    """The demo runs in this process with a shorter proof; other tests prove the layers with real weights."""
    from demos.gtcrn_by_hand import main

    monkeypatch.setattr(trials, "MAX_TOTAL_S", seconds)
    monkeypatch.setattr(sys, "argv", ["gtcrn_by_hand.py", "--pulse", "8"])
    main()
    printed = capsys.readouterr().out
    assert "parameters" in printed
    assert printed.strip().endswith("True")


def test_gtcrn_by_hand_agrees_with_its_file() -> None:
    import pulse
    from demos.gtcrn_by_hand import Weights, gtcrn
    from tests.agreement import Expected

    path = shared_path("models") / "gtcrn_offline.onnx"
    sound = normal_noise(1, 257, 30, 2, seed=1)
    expected = Expected(pulse.load(path).analyse(), {"mix": sound})
    model = gtcrn(Weights(str(path))).analyse()
    expected.assert_agrees(model.run({"mix": sound}), "by hand")
    pulse.verify(model, pulse=2, lengths=[9]).require()


def test_the_exported_model_agrees_with_our_session(tmp_path: Path) -> None:
    """Onnxruntime alone computes the outputs of our session from an exported file."""
    import numpy as np
    import soundfile

    import pulse
    from streaming import Session
    from streaming.builtin import model_path, noisy_path

    pulsed = pulse.load(model_path()).analyse().declutter().pulsify(pulse=160)
    pulsed.save(tmp_path / "out.onnx")
    result = run_demo(
        "run_exported.py", str(tmp_path / "out.onnx"), str(noisy_path()), str(tmp_path / "out.wav")
    )
    assert result.returncode == 0, result.stderr
    samples, _ = soundfile.read(noisy_path(), dtype="float32")
    session = Session(pulsed.compile())
    pieces = [session.push(samples[None])["denoised"], session.flush()["denoised"]]
    recorded, _ = soundfile.read(tmp_path / "out.wav", dtype="float32")
    np.testing.assert_allclose(recorded, np.concatenate(pieces, 1)[0], atol=2 / (1 << 15))


@pytest.mark.parametrize("arguments", [(), ("--c",)])
def test_zero_out_runs(arguments: tuple[str, ...]) -> None:
    if arguments and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    result = run_demo("zero_out.py", *arguments)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "[5, 4, 3, 2, 1] called [5, 0, 0, 0, 0] in a graph [5, 0, 0, 0, 0]",
        "[] called [] in a graph []",
    ]
