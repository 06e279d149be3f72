"""Signals in the middle of a command: it ends at once, in one line, and leaves nothing behind."""

import inspect
import io
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import Handlers, Signals
from typing import Any

import numpy as np
import pytest
import soundfile

from streaming.cli import signals

pytestmark = pytest.mark.usefixtures("usual_signals")


def end_by_signal(code: str, number: Signals) -> tuple[int, str]:
    """The output of a process that gets a signal once it is ready, and then the end of its input."""
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    return process.returncode, errors


COMPILES = """
import sys; sys.argv = ["pulse", "convert"]
import llvmlite.binding as llvm
import streaming.cli.model_opening as model
from streaming.cli import main

llvm.initialize_native_target(); llvm.initialize_native_asmprinter()

def compiles(*_):
    target = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)
    engine.set_object_cache(lambda *_: object, asked)
    engine.add_module(llvm.parse_assembly("define i32 @f() { ret i32 1 }"))
    engine.finalize_object()
    while True:
        pass

def asked(*_):
    print("ready", flush=True)
    sys.stdin.read()

model.open_model = compiles
main()
"""


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGINT, 130, "error: interrupted; only complete results are written\n"),
        (signal.SIGTERM, 143, ""),
    ],
)
def test_a_signal_inside_of_the_compiler_ends_the_command(number: Signals, code: int, message: str) -> None:
    """The compiler calls Python back where an exception would be lost, or end the process by a crash."""
    assert end_by_signal(COMPILES, number) == (code, message)


def test_a_closed_terminal_ends_the_command(tmp_path: Path) -> None:
    code = (
        "import time; from streaming.cli import signals; signals.end_on_signals()\n"
        "try: print('ready', flush=True); time.sleep(30)\n"
        f"finally: open({str(tmp_path / 'ended')!r}, 'w')"
    )
    assert end_by_signal(code, signal.SIGHUP) == (128 + signal.SIGHUP, "")
    assert (tmp_path / "ended").exists()


def test_processes_that_compile_end_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel may take many seconds to compile."""
    from pulse.program.machine import machine
    from streaming.compilation import warming

    monkeypatch.setenv("PULSE_CACHE", str(tmp_path))
    monkeypatch.setattr(warming, "is_cached", lambda _: False)

    compiling, begin = [], warming.begin_process

    def begin_process():
        compiling.append(begin())
        return compiling[-1]

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(warming, "begin_process", begin_process)
    monkeypatch.setattr(warming, "as_completed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        warming.warm([machine.RUN.name, "pipeline.callback"], jobs=2)
    assert [process.returncode for process in compiling] == [-signal.SIGKILL] * 2, "they are not waited for"


@pytest.fixture
def handlers() -> Iterator[dict[Signals, Callable[..., Any] | Handlers]]:
    """Restore the signal handlers of the tests."""
    before = {number: signal.getsignal(number) for number in signals.SIGNALS}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def test_gathered_signals_do_not_interrupt(handlers: dict[Signals, Callable[..., Any] | Handlers]) -> None:
    """None raises or counts as an interrupt, however many there are; afterwards all is as before."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals.watch_interrupts() as interrupts:
        with signals.gather_signals() as signals_seen:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.raise_signal(number)
        assert signals_seen == [signal.SIGINT, signal.SIGTERM, signal.SIGINT], "one is ignored"
        assert interrupts == []
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        assert interrupts == [signal.SIGINT]
    assert signal.getsignal(signal.SIGTERM) == handlers[signal.SIGTERM]
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_elsewhere_a_signal_is_not_postponed() -> None:
    assert not signals.postpone(signal.SIGINT, inspect.currentframe())


class InterruptedFile(io.BytesIO):
    """A file during whose first write a signal arrives."""

    is_interrupted = False

    def write(self, data: Any, /) -> int:
        if not self.is_interrupted:
            self.is_interrupted = True
            signal.raise_signal(signal.SIGINT)
        return super().write(data)


def test_a_signal_inside_libsndfile_is_sent_again() -> None:
    """An exception in a function that libsndfile calls would be lost, and the file cut short."""
    file = InterruptedFile()
    with signals.watch_interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        soundfile.write(file, np.zeros(1000, np.float32), 16_000, format="WAV", subtype="FLOAT")
        assert interrupts == [], "the file is written to its end"
        time.sleep(5)
    assert interrupts == [signal.SIGINT]
    file.seek(0)
    assert len(soundfile.read(file)[0]) == 1000
