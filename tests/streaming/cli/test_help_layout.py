"""The help of the commands has aligned examples and filled paragraphs."""

import re
from importlib import import_module
from inspect import cleandoc

import pytest

from streaming.cli.commands import COMMANDS
from streaming.cli.commands import pulse as group
from tests.streaming.command import pulse

LISTS = re.compile(r"^(?:Examples|With your own model):\n((?:  .*\n?)+)", re.MULTILINE)
WITH_EXAMPLES = ["", *(name for name in COMMANDS if name != "warm")]


def examples_of(name: str) -> list[list[str]]:
    """The example commands in the docstring of a command, with their descriptions if they have any."""
    function = getattr(import_module(f"streaming.cli.commands.{name}"), name) if name else group
    (lines,) = LISTS.findall(cleandoc(function.__doc__))
    return [re.split(" {2,}", line.strip(), maxsplit=1) for line in lines.splitlines()]


@pytest.mark.parametrize("columns", [80, 100, 200])
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_each_example_is_a_line_followed_by_its_effect(
    monkeypatch: pytest.MonkeyPatch, name: str, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    help_text = pulse(*filter(None, [name]), "--help").stdout
    assert max(map(len, help_text.splitlines())) <= columns
    prose = help_text[: help_text.index("╭")].splitlines()
    examples = examples_of(name)
    assert examples
    for command, *description in examples:
        starts = [
            row
            for row, line in enumerate(prose)
            if line.strip() == command or line.startswith(f"   {command}   ")
        ]
        assert len(starts) == 1, command
        paragraph = " ".join(" ".join(prose[starts[0] :]).split())
        assert paragraph.startswith(" ".join([command, *description]))


@pytest.mark.parametrize("columns", [1, 20, 40, 52, 80])
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_narrow_terminals(monkeypatch: pytest.MonkeyPatch, name: str, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    help_text = pulse(*filter(None, [name]), "--help").stdout
    assert help_text
    assert max(map(len, help_text.splitlines())) <= columns
    if columns >= 20:
        assert "Options" in help_text


def test_narrow_descriptions_are_below_their_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """A description has 20 columns or more beside its command."""
    monkeypatch.setenv("COLUMNS", "40")
    help_text = re.sub(" +\n", "\n", pulse("run", "--help").stdout)
    assert "\n   pulse run   the built-in model on\n" in help_text
    assert "\n   pulse run noisy.mp3 quiet.wav\n     the built-in model on your audio\n" in help_text


def test_paragraphs_fill_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    help_text = re.sub(" +\n", "\n", pulse("run", "--help").stdout)
    assert (
        "\n Audio is resampled to the model's rate and back. The output is aligned with\n the input:"
        in help_text
    )
