"""The command line as a process: it starts without the heavy libraries and shows no traceback."""

import subprocess
import sys

HEAVY = {"numba", "numpy", "onnx", "samplerate", "soundfile", "sounddevice", "pulse.model"}


def python(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


def test_help_imports_nothing_heavy():
    code = (
        "import sys; sys.argv = ['pulse', '--help']; from streaming.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print('loaded:', sorted({HEAVY!r} & set(sys.modules)))"
    )
    result = python(code)
    assert result.stdout.splitlines()[-1] == "loaded: []"
    assert "pulse check model.onnx" in result.stdout


def test_an_error_is_one_line_and_code_2():
    result = python(
        "import sys; sys.argv = ['pulse', 'convert', 'none.onnx']; from streaming.cli import main; main()"
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == "error: none.onnx: no such file; check the path\n"
