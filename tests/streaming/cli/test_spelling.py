"""Messages name options on the command line, and parameters in Python."""

import ast
import inspect
import re
import warnings
from pathlib import Path

import onnx
import pytest

import pulse as package
from pulse.errors import PulseError, PulseWarning
from pulse.support.wording import spell, use_spelling
from streaming.cli.commands import app
from streaming.cli.spelling import as_options, option_of
from tests.documents.vocabulary import commands
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.sources import modules_in, name_of, nodes_in, tree_of
from tests.streaming.cli.chunk_files import save_model
from tests.streaming.command import RUNNER, refusal, save

pytestmark = pytest.mark.usefixtures("working_folder")


def test_names_are_spelled_for_python_and_as_options() -> None:
    """A message is spelled for Python, then inside the command line, then for Python again."""
    values = [("symbol", None), ("inputs", {"x": "1,T"}), ("states", {}), ("ignore_value_info", True)]
    python = ["symbol=", 'inputs={"x": "1,T"}', "chunking=Chunking(states={})", "ignore_value_info=True"]
    assert [spell(*value) for value in values] == python
    with use_spelling(as_options):
        options = ["--symbol", "--input x=1,T", "--state none", "--ignore-value-info"]
        assert [spell(*value) for value in values] == options
        assert spell("inputs", {"my x": "1,T", "y": "T"}) == "--input 'my x=1,T' --input y=T"
        assert spell("backend", "numpy") == "--backend numpy"
        assert spell("check", False) == "--no-check"
    assert [spell(*value) for value in values] == python


def test_every_parameter_has_an_option() -> None:
    """Options cover ``pulse.load``, ``Chunking`` and ``pulse.stream``, except parameters of the call itself."""
    calls = (package.load, package.Chunking, package.stream)
    parameters = {name for call in calls for name in inspect.signature(call).parameters}
    parameters -= {"source", "chunking", "prepare", "align"}
    help_text = RUNNER.invoke(app, ["bench", "--help"]).stdout
    assert all(option_of(name) in help_text for name in parameters - {"specialise"})


def test_every_parameter_that_a_message_names_has_an_option() -> None:
    """Except ``reads``, a key of recipes, and ``check_finite``, which only messages for Python name."""
    calls = [
        call
        for path in modules_in("pulse", "streaming")
        for call in nodes_in(tree_of(path))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "spell"
    ]
    named = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}
    assert len(named) > 30
    options = set().union(*commands().values())
    assert {name for name in named if option_of(str(name)) not in options} == {"reads", "check_finite"}


def test_only_the_command_line_names_options_itself() -> None:
    """Other strings of code have options only inside of a whole command, or those of other programs."""
    of_others = {"streaming/libraries.py", "streaming/realtime/rights.py"}  # a linker; containers
    command, option = re.compile(r"\b(pulse|ray) [a-z]+ [^;:,)]*"), re.compile(r"(?<![\w,-])--[a-z]")
    strings = {
        name_of(path): [
            node.value
            for node in nodes_in(tree_of(path))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        for path in modules_in("pulse", "streaming")
        if "cli" not in path.parts
    }
    assert not {
        name: named
        for name, texts in strings.items()
        if name not in of_others
        and (named := [text for text in texts if option.search(command.sub("", text))])
    }


def test_errors_name_options_or_parameters() -> None:
    """The command names the option, the library the parameter."""
    shape = ["mics", "time", 4]
    path = save_model("named", models.build([node("Relu", "x", "y")], {"x": shape}, {"y": shape}))
    assert (
        refusal("convert", path)
        .rstrip()
        .endswith("with --symbol, and give the others sizes, as in --input x=1,time,4")
    )
    with pytest.raises(PulseError, match=r'symbol=, .*inputs=\{"x": "1,time,4"\}$'):
        package.load(path).analyse().find_symbol(None)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("run", "--input x=1,80,T,f32, or"),
        ("serve", "--input x=1,80,T,f32 of pulse compile, or"),
    ],
)
def test_options_of_other_commands_are_named_with_their_command(command: str, option: str) -> None:
    """They are named with a command that has them, whose result this one takes."""
    if command == "serve":
        pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'pulse-stream[serve]'")
    path = save("fixed.onnx", [node("Relu", "x", "y")], {"x": [1, 4, 9]}, {"y": [1, 4, 9]})
    message = refusal(command, path)
    assert f"such as {option}" in message
    assert "from_torch" not in message
    assert "for a PyTorch module" in message


@pytest.mark.parametrize(
    ("name", "content", "contents"),
    [
        ("model.pkl", b"\x80\x04abc", "a Python pickle, perhaps from PyTorch"),
        ("model.safetensors", b"\x40\0\0\0\0\0\0\0{}", "weights in safetensors"),
    ],
    ids=["a pickle", "safetensors"],
)
def test_advice_on_pytorch_files_suits_the_caller(name: str, content: bytes, contents: str) -> None:
    """Python has a function for them, the command line a name."""
    Path(name).write_bytes(content)
    message = refusal("convert", name)
    assert f"it looks like {contents}; " in message
    assert "and give it as file.py:function" in message
    with pytest.raises(PulseError, match=r"use pulse\.from_torch"):
        package.load(name)


def test_a_backend_of_other_commands_is_named_with_their_command() -> None:
    shape = [1, "T"]
    wide = models.build([node("Abs", "x", "y")], {"x": shape}, {"y": shape})
    for value in (*wide.graph.input, *wide.graph.output):
        value.type.tensor_type.elem_type = onnx.TensorProto.UINT64
    path = save_model("wide", wide)
    assert refusal("bench", path).endswith("use --backend numpy\n")
    assert refusal("compile", path, "-o", "wide.pulse").endswith("use --backend numpy of pulse run\n")


def test_warnings_name_options_or_parameters() -> None:
    """A third as much output as input looks like overlapping chunks, so the user is asked."""
    path = save_model("halved", models.half_context())
    warnings.simplefilter("default")
    errors = RUNNER.invoke(app, ["convert", path, "--pulse", "12"]).stderr
    assert "takes 12 frames of x and returns 4 of y" in errors
    assert "--context x=8; --context x=0 if not" in errors
    assert not RUNNER.invoke(app, ["convert", path, "--pulse", "12", "--context", "x=0"]).stderr
    with pytest.warns(PulseWarning, match=r'context=\{"x": 8\}.*context=\{"x": 0\}. if not'):
        package.stream(path, pulse=12, backend="numpy")
