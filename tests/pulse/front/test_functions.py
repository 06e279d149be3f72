"""Properties of every function of ``pulse.front``."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from pulse import front
from pulse.front.kaldi import FrameOptions
from pulse.front.mel import BankOptions, MelOptions
from pulse.models import TypedModel
from pulse.runtimes.onnx_check import check_onnx

DOCS = Path(__file__).parents[3] / "docs"
TEXT = "".join(page.read_text() for page in sorted(DOCS.glob("front_*.md")))
"""The pages of the functions."""
FRAMES = 16
"""Smallest pulses in one: a proof runs thousands of frames."""
SMALL: dict[str, dict[str, Any]] = {
    "frames": {"size": 16, "hop": 8, "pad_start": 3},
    "overlap_add": {"size": 16, "hop": 8},
    "stft": {"n_fft": 32, "hop": 16},
    "istft": {"n_fft": 32, "hop": 16},
    "rfft": {"n": 32},
    "irfft": {"n": 32},
    "mel": {"n_mels": 8},
    "mel_spectrogram": {"n_fft": 64, "hop": 16, "n_mels": 8, "log": "db"},
    "mfcc": {"n_mfcc": 4, "n_fft": 64, "hop": 16, "n_mels": 8},
    "whisper_log": {"maximum": 1.5},
    "cmvn": {"mean": 1.0},
    "sliding_cmvn": {"window": 20, "min_window": 5, "shape": "1,frames,4"},
    "kaldi_fbank": {"sample_rate": 2000, "num_mel_bins": 10, "use_energy": True, "snip_edges": False},
    "kaldi_mfcc": {"sample_rate": 2000},
    "tf_spectrogram": {"window_size": 40, "stride": 20},
    "quantize": {"scale": 0.1, "zero": -3, "shape": "1,frames,4"},
    "dequantize": {"scale": 0.1, "zero": 3, "shape": "1,frames,4"},
    "gain": {"db": 6.0},
    "limiter": {"sample_rate": 1000},
    "unsqueeze": {"axis": 1},
    "squeeze": {"axis": 1},
    "transpose": {"perm": [0, 2, 1]},
}


def small(name: str) -> TypedModel:
    return front.FUNCTIONS[name](**SMALL.get(name, {}))


def test_fronts_are_imported_when_they_are_asked_for() -> None:
    code = "import sys, pulse; assert 'pulse.front' not in sys.modules; print(pulse.front.stft.__name__)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "stft\n"
    )


@pytest.mark.parametrize("name", list(front.FUNCTIONS))
def test_parameters_fit_into_a_file(name: str) -> None:
    """They are numbers, text and truth values."""
    for parameter in inspect.signature(front.FUNCTIONS[name]).parameters.values():
        assert parameter.default is inspect.Parameter.empty or isinstance(
            parameter.default, int | float | str | bool | None
        )


@pytest.mark.parametrize("name", list(front.FUNCTIONS))
def test_every_front_has_one_symbol_and_the_input_x(name: str) -> None:
    """All of its tensors are floats, except codes."""
    model = small(name)
    assert next(iter(model.inputs)) == "x"
    assert len(model.symbols) == 1
    assert model.title == name
    kinds = "iuf" if name in ("quantize", "dequantize") else "f"
    assert all(fact.dtype.kind in kinds for fact in (*model.inputs.values(), *model.outputs.values()))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("kaldi_fbank", FrameOptions),
        ("kaldi_mfcc", FrameOptions),
        ("mel", BankOptions),
        ("mel_spectrogram", MelOptions),
        ("mfcc", MelOptions),
    ],
)
def test_collected_options_are_parameters_of_the_same_type(name: str, options: type) -> None:
    """A type checker does not see what ``options_from`` puts into a record."""
    assert get_type_hints(options).items() <= get_type_hints(front.FUNCTIONS[name]).items()


@pytest.mark.parametrize("name", list(front.FUNCTIONS))
def test_the_docs_describe_each_front(name: str) -> None:
    """Each has a section with all parameters and defaults."""
    section = re.search(rf"^### `{name}`\n(.*?)(?=^#|\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert section is not None
    assert "\nDelay: " in section[1]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", section[1], re.MULTILINE)
    expected = [
        (
            parameter.name,
            "required"
            if parameter.default is inspect.Parameter.empty
            else f"`{parameter.default!r}`".replace("'", '"'),
        )
        for parameter in inspect.signature(front.FUNCTIONS[name]).parameters.values()
    ]
    assert rows == expected
    assert f"`{name}`" in (DOCS / "front.md").read_text()


@pytest.mark.parametrize("name", list(front.FUNCTIONS))
def test_a_written_front_end_runs_in_onnxruntime_as_offline(name: str) -> None:
    """Another runtime gives what the offline model gives."""
    model = small(name)
    simplified = model.declutter()
    pulsed = simplified.pulsify(pulse=FRAMES * simplified.pulsify().pulse)
    check_onnx(pulsed.to_onnx(), pulsed, model).require()
