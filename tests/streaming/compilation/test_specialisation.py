# pyright: reportUnknownMemberType=false
"""Specialised kernels compiled in a process while streams run: the same bits, no waiting, ended with the streams."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import numpy as np
import pytest
import soundfile

from pulse.errors import InputError
from pulse.facts import Array
from pulse.jit.storage.cache import cache_location
from pulse.models import TypedModel
from pulse.program.native.native_program import NativeProgram
from pulse.program.table.table import link
from streaming.compilation import specialisation
from streaming.compilation.specialisation import BackgroundSpecialisation
from streaming.executor.executor import Executor
from streaming.virtual.host import VirtualHost
from tests.noise import normal_noise
from tests.pulse.model_builder import ModelBuilder
from tests.pulse.program.programs import are_bit_identical, block
from tests.streaming import command
from tests.streaming.live.runs import RATE, late_by, played_by, runs

pytestmark = pytest.mark.usefixtures("working_folder")
EVERY_GAIN = """
import os, sys, time
from pulse.program.specialise import specialised_kernels
for name in ("MIN_GAIN", "MIN_KERNEL_GAIN", "MIN_SHARE"):
    setattr(specialised_kernels, name, 0.0)
"""
"""A busy machine measures anything: take specialised kernels however fast they are."""
WAIT = "while not os.path.exists('go'): time.sleep(0.01)\n"
SERVE = """
from streaming.compilation import specialisation
specialisation.COMPILER_NICENESS = 0
specialisation.serve_requests()
"""
"""The process of a test is not nice: other tests would make it wait."""
PULSES = 8

Stub = Callable[[str], None]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    """Replace the code that the compiling process runs."""

    def replace(code: str) -> None:
        def begin(module: str, *arguments: str) -> "subprocess.Popen[bytes]":
            assert module == "streaming.compilation.specialisation"
            whole = f"import sys; sys.path[:] = {sys.path!r}\n{code}"
            monkeypatch.setenv("PULSE_CACHE", str(cache_location().path))
            return subprocess.Popen(
                [sys.executable, "-c", whole, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )

        monkeypatch.setattr(specialisation, "python_process", begin)

    return replace


def model() -> TypedModel:
    """Elementwise functions of frames and of earlier ones; products would take longer to compile."""
    builder = ModelBuilder(x="1,12,T")
    x = builder["x"]
    earlier = builder.cut(x, 0, end=builder.length(x) - 2, name="earlier")
    return builder.model(builder.apply("mul", builder.apply("tanh", builder.cut(x, 2)), earlier, name="y"))


def fresh() -> NativeProgram:
    compiled = model().pulsify(None, 4).compile()
    assert isinstance(compiled, NativeProgram)
    return compiled


def outputs(count: int) -> list[dict[str, Array]]:
    """The output of a stream with generic kernels."""
    program = fresh()
    state = program.spawn()
    return [state.step(block(program, program.pulse, number)) for number in range(count)]


def test_streams_take_the_rows_with_the_same_bits(stub: Stub) -> None:
    stub(EVERY_GAIN + WAIT + SERVE)
    program, expected = fresh(), outputs(3 * PULSES)
    state, steps = program.spawn(), list[dict[str, Array]]()

    def step() -> None:
        steps.append(state.step(block(program, program.pulse, len(steps))))

    with BackgroundSpecialisation(program) as special:
        for _ in range(PULSES):
            step()
        Path("go").touch()
        while not special.wait(0) and len(steps) < 2 * PULSES:
            step()
        assert special.wait()
        assert not np.array_equal(program.table, link(program.unlinked))
        while len(steps) < 3 * PULSES:
            step()
    for left, right in zip(expected, steps, strict=True):
        assert are_bit_identical(left, right)


def test_streams_do_not_wait_for_the_rows(stub: Stub) -> None:
    stub(WAIT)
    program = fresh()
    with BackgroundSpecialisation(program) as special:
        assert program.spawn().step(block(program, program.pulse, 0))
        assert not special.wait(0)
        assert special.outcome is None
        assert str(special) == "specialised kernels: not ready yet"


def test_used_rows_are_reported(stub: Stub) -> None:
    stub(EVERY_GAIN + SERVE)
    program = fresh()
    with BackgroundSpecialisation(program) as special:
        assert special.wait()
    assert special.problem is None
    assert special.outcome is not None
    assert special.outcome.used
    assert str(special) == f"specialised kernels: {special.outcome}"
    assert program.specialised_kernels == special.outcome.kernels


def test_leaving_ends_the_process(stub: Stub) -> None:
    stub(WAIT)
    program = fresh()
    with BackgroundSpecialisation(program) as special:
        assert not special.wait(0)
    assert special.wait(0)
    assert special.outcome is None
    assert special.problem is None
    assert str(special) == "specialised kernels: not ready before the end"
    assert np.array_equal(program.table, link(program.unlinked))


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("sys.exit(7)", "the process that compiled them ended by itself, code 7"),
        ('sys.stdin.buffer.read(); print(\'{"error": "no kernel"}\')', "no kernel"),
    ],
)
def test_a_process_that_fails_leaves_the_streams_alone(stub: Stub, code: str, problem: str) -> None:
    stub(code)
    program = fresh()
    with BackgroundSpecialisation(program) as special:
        assert special.wait()
        assert program.spawn().step(block(program, program.pulse, 0))
    assert special.problem == problem
    assert str(special) == f"specialised kernels: {problem}"
    assert special.outcome is None
    assert program.specialised_kernels == ()


def test_too_little_gain_changes_nothing(stub: Stub) -> None:
    stub(
        "from pulse.program.specialise import specialised_kernels\nspecialised_kernels.MIN_GAIN = 100.0\n"
        + SERVE
    )
    program = fresh()
    with BackgroundSpecialisation(program, seconds=0.0) as special:
        assert special.wait()
    assert special.outcome is not None
    assert not special.outcome.used
    assert special.outcome.nbytes == 0
    assert np.array_equal(program.table, link(program.unlinked))


def test_programs_without_rows_are_refused() -> None:
    with pytest.raises(InputError, match="numpy backend has no kernels to specialise; use the numba backend"):
        BackgroundSpecialisation(model().pulsify(None, 4).compile("numpy"))
    with pytest.raises(
        InputError, match="kernels are specialised for streams on one thread, and this program uses 2"
    ):
        BackgroundSpecialisation(fresh().with_threads(2))


def test_a_reason_is_given_where_no_process_can_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialisation, "why_not_cached", lambda: "read-only")
    with BackgroundSpecialisation(fresh()) as special:
        assert special.wait()
    assert (
        str(special) == "specialised kernels: the folder of compiled kernels cannot store anything: read-only"
    )
    monkeypatch.setattr(specialisation, "is_python", lambda: False)
    with BackgroundSpecialisation(fresh()) as special:
        assert special.wait()
    assert special.problem is not None
    assert "part of another program" in special.problem


def test_statistics_report_unready_specialised_kernels(stub: Stub) -> None:
    stub(WAIT)
    program, frames = fresh(), np.ones((1, 12, 40), np.float32)

    async def stream_specialised() -> None:
        async with Executor(program, specialise=True) as executor:
            assert len([outputs async for outputs in executor.stream(frames)]) > 0
            assert list(executor.statistics().notes) == ["specialised kernels: not ready yet"]

    anyio.run(stream_specialised)


def test_the_command_reports_why_it_specialised_nothing(stub: Stub) -> None:
    stub('sys.stdin.buffer.read(); print(\'{"error": "no kernel"}\')')
    result = command.pulse("run", "--specialise")
    assert "note: specialised kernels: " in result.stderr
    assert "--specialise" in command.pulse("run", "--help").stdout
    assert "on one thread" in command.refusal("run", "--specialise", "--threads", "2")


def of_sound() -> NativeProgram:
    """A program of x [1, 1, T]: y [1, 1, T], filters and functions of the sound, in about thirty rows."""
    builder = ModelBuilder(x="1,1,T")
    wide = builder.conv(builder["x"], 16, (15, 0), out=12, name="wide")
    for number in range(8):
        deep = builder.conv(wide, 3, (2, 0), dilation=1, name=f"deep{number}")
        gate = builder.apply("sigmoid", deep, name=f"gate{number}")
        wide = builder.apply(
            "mul", builder.apply("tanh", deep, name=f"tanh{number}"), gate, name=f"wide{number}"
        )
    compiled = builder.model(builder.conv(wide, 3, (2, 0), out=1, name="y")).pulsify(None, 160).compile()
    assert isinstance(compiled, NativeProgram)
    return compiled


@pytest.mark.slow
def test_a_live_run_on_virtual_devices_lasts_until_the_swap(stub: Stub) -> None:
    """A run that swaps to specialised kernels plays the bits of a session with generic kernels."""
    stub(EVERY_GAIN + WAIT + SERVE)
    compiled = of_sound()
    played, inputs = list[Array](), list[Array]()

    def play_a_second(host: VirtualHost) -> None:
        inputs.append(normal_noise(RATE, 1) / 50)
        played.append(host.run(inputs[-1]))

    with runs(compiled) as (host, live), BackgroundSpecialisation(compiled) as special:
        play_a_second(host)
        Path("go").touch()
        while not special.wait(0.1):
            play_a_second(host)
        play_a_second(host)
        play_a_second(host)
        delay = live.delay.frames
    assert special.outcome is not None, str(special)
    assert special.outcome.used, str(special)
    assert not np.array_equal(compiled.table, link(compiled.unlinked))
    sound = np.concatenate(inputs)
    expected = late_by(played_by(of_sound(), sound, "y"), delay, len(sound))
    np.testing.assert_array_equal(np.concatenate(played), expected)


@pytest.mark.slow
def test_the_command_runs_live_until_the_swap(stub: Stub) -> None:
    """A file that plays in real time has the samples of generic kernels."""
    stub(EVERY_GAIN + SERVE)
    of_sound().save("model.pulse", sample_rate=str(RATE))
    sound = normal_noise(50 * RATE, 1) / 50
    soundfile.write("in.wav", sound, RATE, subtype="FLOAT")
    files = "model.pulse", "in.wav", "out.wav"
    result = command.pulse("run", *files, "--live", "--specialise", "--json")
    assert re.search(r"specialised kernels: \d+ of \d+ instructions, a step", result.stderr), result.stderr
    counters = json.loads(result.stdout)["statistics"]["counters"]
    played = soundfile.read("out.wav", dtype="float32", always_2d=True)[0]
    delay = len(played) - len(sound)
    expected = late_by(played_by(of_sound(), sound, "y"), delay, len(played))
    assert np.count_nonzero(played != expected) <= counters["frames_silent"]
