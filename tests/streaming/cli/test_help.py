"""The help of the commands shows the meaning of a value, not its type in Python."""

import errno
import io
import os
import re
import sys
from typing import Any

import pytest
import typer

from streaming.cli.commands import COMMANDS, app
from tests.streaming.command import pulse

TYPE = re.compile(r"<[a-z]\w*(\[\w+\])?>|\b(TEXT|INTEGER|FLOAT|PATH|BOOLEAN)\b")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_no_type_of_python_is_shown(command: str) -> None:
    help_text = pulse(*command.split(), "--help").stdout
    assert "--help" in help_text
    assert not TYPE.findall(help_text)


@pytest.mark.parametrize("text", ["<bool>", "<list[str]>", "PATH"])
def test_types_are_found(text: str) -> None:
    assert TYPE.search(f"--option {text}  Its help.")


def test_every_option_with_a_value_has_a_metavar() -> None:
    import typer

    group = typer.main.get_command(app)
    params = [param for name in COMMANDS for param in group.commands[name].params]  # pyright: ignore
    options = [param for param in params if param.param_type_name == "option"]
    assert len(options) > 100
    assert not {option.opts[0] for option in options if not option.is_flag and not option.metavar}


class FullOutput(io.StringIO):
    """A file on a disk that is full."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_commands_may_be_called_any_number_of_times_in_a_process() -> None:
    group: Any = typer.main.get_command(app)
    for command in (group, group.get_command(typer.Context(group), "run")):
        context = typer.Context(command)
        for _ in range(sys.getrecursionlimit()):
            option = command.get_help_option(context)
        assert option.process_value(context, None) is None
    pulse("run", "--help")


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], []])
def test_a_full_standard_output_is_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", FullOutput())
    with pytest.raises(SystemExit) as ended:
        app(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: standard output: No space left on device\n"
