"""``pulse check`` of every shared model, as a user would call it, at several pulses: proved, every output."""

import json

import pytest

from tests.shared import shared_path
from tests.streaming.command import pulse

PULSES = (1, 2, 4, 8, 10, 16)
VAD = ("--input", "feat=1,time,80")
SILERO = ("--context", "input=64")
CHECKS = [
    *(("fireredvad_stream", frames, VAD) for frames in PULSES),
    *(("fireredvad_stream_cached", frames, ()) for frames in PULSES),
    *(("gtcrn_offline", frames, ()) for frames in PULSES),
    *(("swift_f0", 256 * frames, ()) for frames in PULSES),
    ("silero_vad_16k", 512, (*SILERO, "--constant", "sr=16000")),
    ("silero_vad_16k_static", 512, SILERO),
    ("fastenhancer_t_wav", 256, ("--context", "wav_in=256")),
    ("fastenhancer_b_spec", 1, ()),
    ("gtcrn_stream", 1, ()),
    ("dtln_1", 1, ()),
    ("dtln_2", 1, ()),
]


def assert_check_succeeds(name: str, frames: int, options: tuple[str, ...]) -> None:
    path = shared_path("models") / f"{name}.onnx"
    proof = json.loads(pulse("check", path, "--pulse", frames, *options, "--json").stdout)["proof"]
    assert proof["outcome"] == "equal"
    assert proof["share"] <= 1
    assert all(output["proved"] for output in proof["outputs"])
    print(
        name,
        frames,
        f"{len(proof['streams'])} streams up to {proof['lengths'][-1]}, {proof['share']:.0%}, {proof['spent_s']:.1f} s",
    )


def test_large_caches_raise_no_false_alarm() -> None:
    """Values of its caches reach thousands, elements near zero are sums of these."""
    assert_check_succeeds("fireredvad_stream", 8, VAD)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "frames", "options"), CHECKS)
def test_every_model_is_checked(name: str, frames: int, options: tuple[str, ...]) -> None:
    assert_check_succeeds(name, frames, options)
