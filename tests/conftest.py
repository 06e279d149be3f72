"""Fixtures for all folders, and the settings of Hypothesis."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

# Before anything imports numpy: the threads of OpenBLAS wait busily, and several processes share the processors.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.case_ids import id_of
from tests.frozen_heap import heap

# Before anything imports onnxruntime: its telemetry thread opens sockets, and tests count descriptors.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

# Tests start hundreds of processes, each of which would compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

SHORT_PROOFS = {"SIGNAL_FRAMES": 128, "MIN_LONG_FRAMES": 1024, "MIN_DRIFT_FRAMES": 4096}
"""Frames of streams in proofs of the default suite: a quarter of the usual ones.

They still fill all that a model remembers. Modules with the mark ``full_proofs`` run the usual ones: tests of proofs
themselves, and of documents with their results."""


def pytest_configure(config: pytest.Config) -> None:
    """The default suite tries the same examples each time, slow runs try others. No deadline: the machine is shared."""
    heap.install()
    seeded = is_default(config)
    settings.register_profile(
        "shared machine", deadline=None, derandomize=seeded, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("shared machine")
    if seeded and distributes_all(config):
        from pulse.support.cores import core_count
        from tests.pulse.jit.compiled_functions import compile_all

        compile_all(core_count())  # else each process compiles what it meets, most kernels twice


def is_default(config: pytest.Config) -> bool:
    """Whether this is the default suite, or a part of it."""
    return config.option.markexpr == "not slow"


def pytest_report_header(config: pytest.Config) -> str:
    """Say how long the streams of proofs are."""
    if is_default(config):
        return "proofs: a quarter of the usual frames, except in modules marked full_proofs"
    return "proofs: the usual frames"


def distributes_all(config: pytest.Config) -> bool:
    """Whether this process runs the whole suite, in others."""
    whole = config.args_source is config.ArgsSource.TESTPATHS and not config.option.collectonly
    return whole and bool(config.getoption("numprocesses", None)) and not hasattr(config, "workerinput")


def pytest_make_parametrize_id(val: object, argname: str) -> str:
    """Each case says what it is: a value without a short text is refused, where pytest would give it a number."""
    return id_of(val, argname)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Return the processors plus one for ``-n auto``: waiting tests leave 14 percent of two processors unused."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep all that is collected until the end: Python does not look for garbage in it, nor while it is made."""
    gc.disable()
    try:
        return (yield)
    finally:
        heap.freeze()
        gc.enable()


def pytest_runtest_setup() -> None:
    heap.freeze()


@pytest.fixture(autouse=True, scope="module")
def frozen_heap() -> None:
    heap.freeze_all()


@pytest.fixture(autouse=True, scope="module")
def short_proofs(request: pytest.FixtureRequest) -> Generator[None]:
    """Shorten the streams of proofs in the default suite; in slow runs they are as long as for users."""
    from pulse.proof import trials

    is_short = is_default(request.config) and request.node.get_closest_marker("full_proofs") is None
    with pytest.MonkeyPatch.context() as patch:
        if is_short:
            for name, frames in SHORT_PROOFS.items():
                patch.setattr(trials, name, frames)
        yield


@pytest.fixture(scope="session")
def default_suite(pytestconfig: pytest.Config) -> bool:
    """Whether this is the default suite, or a part of it."""
    return is_default(pytestconfig)


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers of a test: the same ones, whichever tests ran before."""
    return np.random.default_rng(0)


@pytest.fixture
def usual_signals() -> Generator[None]:
    """Signals as in a terminal, also for what a test starts.

    A process in the background of a script, or under nohup, ignores some signals, and so do its children.
    """
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    if hasattr(signal, "SIGHUP"):
        usual[signal.SIGHUP] = signal.SIG_DFL
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs in an empty folder, and what it prints is not wrapped."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with 64 KiB of space."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a small disk needs Linux and root")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
