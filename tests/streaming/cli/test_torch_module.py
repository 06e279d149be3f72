"""Commands that take a PyTorch module by its name."""

import importlib.util
import sys
import warnings
from pathlib import Path

import pytest

from tests.streaming.command import pulse, refusal, report

pytest.importorskip("torch", reason="PyTorch is an extra: pip install 'pulse-stream[torch]'")
pytestmark = [
    pytest.mark.usefixtures("working_folder"),
    pytest.mark.skipif(
        importlib.util.find_spec("onnxscript") is None, reason="the exporter needs onnxscript"
    ),
    pytest.mark.filterwarnings("ignore::pulse.PulseWarning"),
]
CODE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv1d(1, width, 3)
    def forward(self, x):
        return self.conv(nn.functional.pad(x, (2, 0)))
    def encode(self, x):
        return self.forward(x).abs()

class Sum(nn.Module):
    def forward(self, x, y):
        return x + y

class Cached(nn.Module):
    def forward(self, x, cache):
        joined = torch.cat([cache, x], 2)
        return joined[..., 1:] - joined[..., :-1], joined[..., -1:]

class Picky(nn.Module):
    def forward(self, x):
        if x.shape[-1] % 16:
            raise ValueError("whole blocks of 16, please")
        return x * 2

net = Net()
pair = net, torch.randn(1, 1, 32)

def make():
    print("loading")
    return net, torch.randn(1, 1, 32), {"dynamic": {"x": {2: "T"}}, "method": "encode"}

def cached():
    return Cached(), (torch.randn(1, 2, 6), torch.zeros(1, 2, 1)), {"states": {"cache": 1}}

def picky():
    return Picky(), torch.randn(1, 1, 64), {"dynamic": {"x": {2: "T"}}}

def needy(width, *more, bias=True):
    return Net(width)

def failing():
    raise KeyError("weights")

def odd():
    return net, torch.randn(1, 1, 32), {"axes": {}}

number = 3
triple = net, 1, 2, 3
"""


@pytest.fixture(autouse=True)
def code(working_folder: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "code_18.py").write_text(CODE)
    yield
    sys.modules.pop("code_18", None)
    sys.modules.pop("_file_code_18", None)


TWO_LENGTHS = "--length", 9, "--length", 33


def test_check_compares_the_stream_with_the_module() -> None:
    checked = pulse("check", "code_18:Net", "--example", "1,1,32", "--pulse", 8, *TWO_LENGTHS)
    assert "compared on streams of 9, 33 frames of the example" in checked.stdout
    assert "equal: every frame of every stream, and the module Net" in checked.stdout
    original = report("check", "code_18.py:make", "--pulse", 8, *TWO_LENGTHS)["proof"]["original"]
    assert original["title"] == "the module Net.encode"
    assert original["lengths"] == [9, 33]
    assert original["error"] < 1e-6


def test_a_module_that_differs_from_its_model_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module changes after the export, which compared them."""
    from pulse.torch.module_original import ModuleOriginal

    run_module = ModuleOriginal.run

    def wrong(self, model, feeds, precise=False):
        return {
            name: value + (value.shape[-1] > 20)
            for name, value in run_module(self, model, feeds, precise).items()
        }

    monkeypatch.setattr(ModuleOriginal, "run", wrong)
    result = pulse("check", "code_18:pair", "--pulse", 8, *TWO_LENGTHS, code=1)
    assert (
        "diverges in a stream of 33 frames of the example (numba): at [0, 0, 0] the module Net"
        in result.stderr
    )


def test_lengths_that_the_module_refuses_are_named() -> None:
    arguments = "check", "code_18:picky", "--pulse", 16, "--length", 9
    checked = pulse(*arguments, code=3)
    assert "whole blocks of 16, please" in checked.stdout
    assert "compared on streams of 32 frames" in pulse(*arguments, "--length", 32).stdout


def test_options_of_the_conversion_are_taken() -> None:
    named = "--example", "x=1,1,32", "--dynamic", "x=2:N", "--method", "encode"
    assert report("check", "code_18:net", *named, *TWO_LENGTHS)["model"] == "Net.encode"
    two = "--example", "1,4,32", "--example", "1,4,32"
    summed = report("check", "code_18:Sum", *two, "--dynamic", "x=2", "--dynamic", "y=2", *TWO_LENGTHS)
    assert summed["proof"]["outcome"] == "equal"
    chunks = report("check", "code_18:cached", "--pulse", 2, *TWO_LENGTHS)
    assert chunks["proof"]["original"]["lengths"]


def test_the_axis_that_was_found_is_reported_as_an_option() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warning = pulse("dump", "code_18:pair").stderr
    assert "warning: Net: time (T) is axis 2 of x:" in warning
    assert "--dynamic x=2:T says so\n" in warning


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["code_18:Net"], "a module without an example of its input; give --example 1,1,4800"),
        (["code_18:number"], "is int; it must be a torch.nn.Module"),
        (["code_18:triple"], "is (Net, int, int, int); it must be"),
        (["code_18:needy"], "needs arguments (width)"),
        (["code_18:failing"], "its call raises KeyError: 'weights'"),
        (
            ["code_18:odd"],
            "arguments of pulse.from_torch (dynamic, opset, compare, lengths, method, states), not axes",
        ),
        (["code_18:net", "--example", "1,x"], "--example 1,x: give sizes of 1 and more"),
        (["code_18:Sum", "--example", "x=1,4", "--example", "1,4"], "give each input its own name, or none"),
        (["code_18:pair", "--dynamic", "x"], "--dynamic 'x': give a name and an axis"),
        (["code_18:pair", "--input", "x=1,1,T"], "--input is an option for reading a file"),
        (["code_18:pair", "--method", "decode"], "Net has no method 'decode'"),
    ],
)
def test_bad_modules_and_examples_are_refused(arguments: list[str], words: str) -> None:
    assert words in refusal("check", *arguments)


def test_other_commands_open_a_module(tmp_path: Path) -> None:
    for command in (("compile", "-o", "net.pulse"), ("convert", "-o", "net.onnx")):
        name, *more = command
        text = pulse(name, "code_18:make", "--pulse", 8, *TWO_LENGTHS, *more).stdout
        assert "the module Net.encode" in text
    assert "and the module Net.encode" in pulse("check", "net.pulse").stdout
    assert report("bench", "code_18:make", "--pulse", 8, "--rounds", 1, "--steps", 9)["model"] == "Net.encode"
