"""The command line as a process: it starts without the heavy libraries and shows no traceback."""

import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from streaming.builtin import noisy_path

pytestmark = pytest.mark.usefixtures("usual_signals")

HEAVY = {"numba", "numpy", "onnx", "soundfile", "sounddevice", "pulse.models"}


def python(code: str) -> CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['pulse', '--help']; from streaming.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print('loaded:', sorted({HEAVY!r} & set(sys.modules)))"
    )
    result = python(code)
    assert result.stdout.splitlines()[-1] == "loaded: []"
    assert "pulse check model.onnx" in result.stdout


def test_an_error_is_one_line_and_code_2() -> None:
    result = python(
        "import sys; sys.argv = ['pulse', 'convert', 'none.onnx']; from streaming.cli import main; main()"
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == "error: none.onnx: no such file; check the path\n"


@pytest.mark.parametrize("module", ["pulse", "typer", "streaming.cli.standard_output"])
def test_an_interrupt_while_it_starts_ends_the_command(module: str) -> None:
    result = python(
        "import os, signal, sys; sys.argv = ['pulse', 'convert']\n"
        "class Interrupting:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting)\n"
        "from streaming.cli import main; main()"
    )
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    """A script ignores it for what runs in the background."""
    result = python(
        "import signal, sys; sys.argv = ['pulse', '--version']\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from streaming.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_an_interrupt_that_a_compiler_lost_ends_the_command() -> None:
    """Numba may turn KeyboardInterrupt into another error."""
    result = python(
        "import os, signal, sys; sys.argv = ['pulse', 'convert']\n"
        "import streaming.cli.model_opening as model\n"
        "def broken(*_):\n"
        "    try: os.kill(os.getpid(), signal.SIGINT)\n"
        "    except KeyboardInterrupt: pass\n"
        "    raise RuntimeError('no compiled object yet')\n"
        "model.open_model = broken\n"
        "from streaming.cli import main; main()"
    )
    assert result.returncode == 130
    assert result.stderr == "error: interrupted; only complete results are written\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">&-", 0, ""),
        ("2>&-", 0, ""),
        ("> /dev/full", 2, "error: standard output: cannot be written (No space left on device)\n"),
    ],
    ids=["stdout closed", "stderr closed", "stdout full"],
)
def test_an_output_that_cannot_be_written_shows_no_traceback(
    redirection: str, code: int, message: str
) -> None:
    command = "import sys; sys.argv = ['pulse', 'dump']; from streaming.cli import main; main()"
    result = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (code, message)


def test_data_for_a_closed_output_is_refused() -> None:
    """The file that is opened next does not get the number of standard output."""
    command = (
        f"import sys; sys.argv = ['pulse', 'run', '--backend', 'numpy', {str(noisy_path())!r}, '-']\n"
        "from streaming.cli import main; main()"
    )
    result = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr == "error: standard output: cannot be written (Bad file descriptor)\n"


def test_a_terminated_run_leaves_no_file(tmp_path: Path) -> None:
    result = python(
        f"import os, signal, sys; os.chdir({str(tmp_path)!r}); sys.argv = ['pulse', 'run']\n"
        "import streaming.session as session\n"
        "sys.argv += ['--backend', 'numpy']\n"
        "session.Session.flush = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)\n"
        "from streaming.cli import main; main()"
    )
    assert result.returncode == 143
    assert not list(tmp_path.iterdir())
