"""Sessions are copied and pickled with their frames; processes of every kind take them and programs."""

import copy
import multiprocessing
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import CopyError
from pulse.program.program import Program
from streaming import Session
from streaming.audio.files import AudioReader, AudioWriter
from streaming.audio.frame_files import FramesFile
from streaming.executor import Executor
from streaming.live import Live
from streaming.native.resample import AudioResampler, NativeResampler
from tests.pulse.program.programs import (
    FORMS,
    MODELS,
    are_bit_identical,
    block,
    constants,
    program,
    pulsed_model,
)
from tests.streaming.processes import attributes, continue_stream, stream_in_this_process

KINDS = [("windows", *form) for form in FORMS] + [(name, "numba", "f32") for name in MODELS[1:]]
WAYS = {
    "pickle": lambda item: pickle.loads(pickle.dumps(item)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))


def begin_session(program: Program, frames: int = 11) -> Session:
    """A session with waiting frames."""
    session = Session(program, constants(program))
    session.push(block(program, frames))
    assert session.pending_frames
    return session


@ways
@pytest.mark.parametrize(("name", "backend", "form"), KINDS)
def test_a_copied_session_continues_independently(
    name: str, backend: str, form: str, way: Callable[..., Any]
) -> None:
    compiled = program(name, backend, form)
    session, straight = begin_session(compiled), begin_session(compiled)
    other = way(session)
    assert other.statistics() == session.statistics()
    other.push(block(compiled, 9, 4))
    x = block(compiled, 10, 5)
    expected = straight.push(x), straight.flush()
    assert all(map(are_bit_identical, (session.push(x), session.flush()), expected))
    other = way(begin_session(compiled))
    assert all(map(are_bit_identical, (other.push(x), other.flush()), expected))
    assert (other.program is compiled) == (way is not WAYS["pickle"])


def test_sessions_of_one_program_stay_so() -> None:
    compiled = program("windows")
    first, second = copy.deepcopy([begin_session(compiled), begin_session(compiled)])
    assert first.program is second.program is compiled
    assert first is not second
    first, second, third = pickle.loads(
        pickle.dumps([begin_session(compiled), begin_session(compiled), compiled])
    )
    assert first.program is second.program is third
    assert third is not compiled


def test_a_copy_checks_and_counts_as_the_session_does() -> None:
    compiled = program("windows")
    session = Session(compiled, check_finite=False)
    session.push(np.full_like(block(compiled, 3), np.nan))
    copy.deepcopy(session).push(np.full_like(block(compiled, 3), np.nan))
    session = begin_session(compiled)
    session.flush()
    with pytest.raises(pulse.InputError, match="after flush"):
        copy.copy(session).push(block(compiled, 1))


class NamedSession(Session):
    """A subclass of Session with a field of its own."""

    def __init__(self, program: Program, name: list[str]) -> None:
        super().__init__(program)
        self.name = name


@ways
def test_fields_of_a_subclass_are_copied(way: Callable[..., Any]) -> None:
    session = NamedSession(program("windows"), ["voice"])
    other = way(session)
    assert type(other) is NamedSession
    assert other.name == ["voice"]
    assert (other.name is session.name) == (way is copy.copy)


@pytest.fixture(scope="module", params=["fork", "spawn", "forkserver"])
def workers(request: pytest.FixtureRequest) -> Iterator[ProcessPoolExecutor]:
    """A pool of one process for each start method, shared by the tests."""
    if request.param not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {request.param} on this system")
    context = multiprocessing.get_context(request.param)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and later: fork with other threads
        with ProcessPoolExecutor(1, context) as pool:
            pool.submit(os.getpid).result(timeout=120)
            yield pool


def test_a_program_runs_in_another_process(workers: ProcessPoolExecutor) -> None:
    for name, backend, form in KINDS:
        compiled = program(name, backend, form)
        x = block(compiled, 21)
        process, outputs = workers.submit(stream_in_this_process, compiled, constants(compiled), x).result(
            timeout=120
        )
        assert process != os.getpid()
        assert are_bit_identical(outputs, stream_in_this_process(compiled, constants(compiled), x)[1]), (
            name,
            backend,
            form,
        )


def test_a_session_continues_in_another_process_and_comes_back(workers: ProcessPoolExecutor) -> None:
    for name, backend, form in KINDS:
        session = begin_session(program(name, backend, form))
        straight = copy.deepcopy(session)
        x, more = block(session.program, 9, 1), block(session.program, 6, 2)
        outputs, back = workers.submit(continue_stream, session, x).result(timeout=120)
        assert are_bit_identical(outputs, straight.push(x)), (name, backend, form)
        assert are_bit_identical(back.push(more), straight.push(more))
        assert are_bit_identical(back.flush(), straight.flush())


@pytest.mark.parametrize(
    "stage",
    [
        lambda pulsed: pulse.load(pulsed.to_onnx()),
        lambda pulsed: pulse.load(pulsed.to_onnx()).analyse(),
        lambda pulsed: pulsed.typed,
        lambda pulsed: pulsed,
    ],
    ids=["loaded", "analysed", "typed", "pulsed"],
)
def test_models_of_every_stage_go_to_another_process(
    workers: ProcessPoolExecutor, stage: Callable[..., Any]
) -> None:
    item = stage(pulsed_model("windows"))
    answer = workers.submit(attributes, item).result(timeout=120)
    assert answer["name"] == type(item).__name__
    assert answer["process"] != os.getpid()


def assert_refused(item: Any, words: str) -> None:
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(CopyError, match=words) as refusal:
            way(item)
        assert "\n" not in str(refusal.value)


def test_objects_of_this_process_refuse_copies(tmp_path: Path) -> None:
    assert_refused(
        AudioResampler(48000, 16000),
        "AudioResampler cannot be copied or pickled: .* this process; make another",
    )
    assert_refused(
        NativeResampler(48000, 16000), "NativeResampler .* addresses of this process; make another"
    )
    with AudioWriter(tmp_path / "x.wav", 16000, 1) as writer:
        assert_refused(writer, "AudioWriter .* another path")
        writer.write(np.zeros((10, 1), np.float32))
    with AudioReader(tmp_path / "x.wav") as reader:
        assert_refused(reader, "AudioReader .* read once; open it again")
    with FramesFile(tmp_path / "x.npy", 0, None) as file:
        assert_refused(file, "FramesFile .* another path")
        file.write(np.zeros((1, 2), np.float32))


@pytest.mark.parametrize("kind", [Live, Executor])
def test_a_live_run_and_an_executor_refuse(kind: type) -> None:
    assert_refused(
        object.__new__(kind), f"{kind.__name__} cannot be copied or pickled: it has (a thread|threads)"
    )
