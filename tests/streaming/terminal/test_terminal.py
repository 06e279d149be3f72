"""Names from models and files reach a terminal escaped: in errors, warnings, dumps, reports and paths."""

import io
import json
import pickle
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from onnx import ModelProto, helper

import pulse
from pulse.errors import LoadError, PulseError, PulseWarning, PulsifyError, Refusal
from pulse.support.printable import printable, printable_lines
from pulse.support.report import Pairs, Report, Section, Table, Text, json_text
from pulse.text import dump
from streaming.cli.commands import app
from streaming.cli.console import print_report, stderr
from streaming.terminal.output import Terminal
from tests.invariants.hostile_models import model
from tests.streaming.command import RUNNER

EVIL = "a\x1b[31m\x1b]0;t\x07b\rc\nd\x9b2J\u202e\u2066e\u200bf\x7fg\u2028h"
"""Colours, the window's title, the start of the line, a new line, C1, marks of direction, no width, DEL."""
SAFE = r"a\x1b[31m\x1b]0;t\x07b\rc\nd\x9b2J\u202e\u2066e\u200bf\x7fg\u2028h"


def evil_model(op: str = "Relu", **attributes: object) -> ModelProto:
    """Input, wires, nodes, output and title of evil names."""
    first, second = (helper.make_node(kind, [a], [b], name=f"{EVIL}{b}") for kind, a, b in
                     (("Relu", "x", f"{EVIL}1"), (op, f"{EVIL}1", "y")))  # fmt: skip
    for name, value in attributes.items():
        second.attribute.append(helper.make_attribute(name, value))
    proto = model([first, second])
    proto.graph.input[0].name = proto.graph.node[0].input[0] = f"{EVIL}in"
    proto.graph.output[0].name = proto.graph.node[1].output[0] = f"{EVIL}out"
    proto.graph.name = f"{EVIL}title"
    return proto


@dataclass(frozen=True)
class EvilReport(Report):
    name: str = EVIL

    def sections(self) -> list[Section]:
        return [Pairs([(EVIL, EVIL)]), Table(EVIL, [EVIL], [[EVIL]]), Text(EVIL)]


def assert_harmless(text: str) -> None:
    assert printable_lines(text) == text


def test_control_characters_are_made_printable() -> None:
    assert printable(EVIL) == SAFE
    assert printable(SAFE) == SAFE
    plain = "Zeitraum ü é 日本語 🙂\u00a0عربي"
    assert printable(plain) == plain
    assert printable("\ud800") == "\\ud800"
    assert printable_lines("a\nb\x1b") == "a\nb\\x1b"


def test_errors_and_their_tracebacks_are_printable() -> None:
    with pytest.raises(LoadError) as refusal:
        pulse.load(evil_model("Nothing")).analyse()
    assert_harmless("".join(traceback.format_exception(refusal.value)))
    assert "\n" not in str(refusal.value)
    assert SAFE in str(refusal.value)


def test_refusals_are_one_line_each_and_keep_the_names() -> None:
    refusal = Refusal(EVIL, "Relu", 1, "whole", "why", "what helps")
    error = PulsifyError(f"{EVIL}: no", [refusal, refusal])
    assert len(str(error).split("\n")) == 3
    assert_harmless(str(error))
    assert error.refusals[0].node == EVIL
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.refusals) == (str(error), error.refusals)
    assert PulseError(3).args == (3,)


def test_warnings_are_printable() -> None:
    proto = evil_model()
    shape = helper.make_tensor_value_info(f"{EVIL}1", 1, [1, 2, 9, 9])
    proto.graph.value_info.append(shape)
    with pytest.warns(PulseWarning) as warned:
        pulse.load(proto).analyse()
    assert_harmless(str(warned[0].message))


def test_text_of_hostile_models_is_printable() -> None:
    loaded = pulse.load(evil_model())
    typed = loaded.analyse()
    pulsed = typed.declutter().pulsify()
    lines = loaded.model.lines() + str(pulse.cost_report(typed)).splitlines()
    assert all("\n" not in line and printable(line) == line for line in lines)
    for text in (dump.text(typed.graph, EVIL), dump.dot(typed.graph, EVIL), dump.text(pulsed.graph)):
        assert_harmless(text)
    assert len(dump.text(typed.graph).splitlines()) == 5
    assert list(typed.inputs) == [f"{EVIL}in"]


@pytest.mark.parametrize("arguments", [
    ["dump", "--stage", "load"], ["dump", "--stage", "typed"], ["dump", "--dot"], ["dump"],
    ["dump", "--stage", "program"], ["dump", "--stage", "costs"],
    ["convert"], ["convert", "--json"], ["check", "--backend", "numpy"], ["check", "--backend", "numpy", "--json"],
    ["dump", "--stage", "costs", "--json"],
])  # fmt: skip
@pytest.mark.parametrize("op", ["Sigmoid", "Nothing"])
def test_commands_print_hostile_names_printably(arguments: list[str], op: str, tmp_path: Path) -> None:
    path = tmp_path / (EVIL.replace("/", "") + ".onnx")
    path.write_bytes(evil_model(op).SerializeToString())
    command, *options = arguments
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PulseWarning)
        result = RUNNER.invoke(app, [command, str(path), *options])
    assert_harmless(result.stdout)
    assert_harmless(result.stderr)
    names_in_json = "--json" in arguments and op == "Sigmoid"
    assert ("\\u001b" if names_in_json else "\\x1b") in result.stdout + result.stderr


def test_json_has_everything() -> None:
    value = {"name": EVIL, "list": ["é", "\ud800"], EVIL: 1.5}
    text = json_text(value)
    assert_harmless(text)
    assert json.loads(text) == value
    assert "é" in text


def test_a_terminal_escapes_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    Terminal(file=file, force_terminal=True, width=200).print(f"{EVIL}!", style="bold red")
    assert file.getvalue().startswith("\x1b[1;31m")
    assert "\x1b]0" not in file.getvalue()
    stderr().print(EVIL)
    print_report(EvilReport())
    print_report(EvilReport(), json=True)
    print_report(EvilReport(), markdown=True)
    printed = capsys.readouterr()
    assert_harmless(printed.out)
    assert_harmless(printed.err)
