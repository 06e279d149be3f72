"""A session gives the offline frames whatever the sizes of the blocks, and loses nothing to an error."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.errors import InputError, PulseError
from pulse.facts import Array
from pulse.interface import Port
from pulse.program.whole_stream import run_whole
from streaming import Session
from tests.agreement import assert_outputs_close
from tests.noise import normal_noise
from tests.streaming.models import (
    both_backends,
    cached_program,
    decimating_model,
    ending_model,
    filter_model,
    limited_model,
    program,
    two_input_model,
    two_rate_model,
)


def join_pieces(pieces: list[dict[str, Array]], port: Port) -> Array:
    return np.concatenate([piece[port.name] for piece in pieces], port.axis)


def push_and_flush(session: Session, x: Array, cuts: list[int]) -> dict[str, Array]:
    """All outputs of ``x``, whose axis 1 is the stream, pushed in blocks that end at ``cuts``."""
    blocks = np.split(x, sorted(cuts), 1)
    pieces = [*(session.push(block) for block in blocks), session.flush(np.nan)]
    outputs = {port.name: join_pieces(pieces, port) for port in session.program.outputs if port.streams}
    return outputs | {
        port.name: pieces[-1][port.name] for port in session.program.outputs if not port.streams
    }


@both_backends
@pytest.mark.parametrize(
    ("make", "frame"), [(filter_model, ()), (decimating_model, (2,)), (ending_model, ())]
)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_session_outputs_agree_with_offline_for_any_split(
    make: Any, frame: Any, backend: str, data: st.DataObject
) -> None:
    pulse = data.draw(st.sampled_from([3, 6, 12]), "pulse")
    length = data.draw(st.integers(3, 70), "length")
    cuts = data.draw(st.lists(st.integers(0, length), max_size=12), "cuts")
    x = normal_noise(1, length, *frame, seed=length)
    ready_program = cached_program(make, pulse, backend)
    session = Session(ready_program)
    outputs = push_and_flush(session, x, cuts)
    assert_outputs_close(outputs, ready_program.model.typed.run(x))
    whole, _ = run_whole(ready_program.spawn(), {"x": x}, np.nan)
    assert_outputs_close(outputs, whole)
    assert session.frames_in == length
    assert session.statistics().frames_out == {
        port.name: outputs[port.name].shape[port.axis] for port in ready_program.outputs if port.streams
    }


@both_backends
@settings(max_examples=25, deadline=None)
@given(
    frames=st.integers(1, 20),
    fast_cuts=st.lists(st.integers(0, 80), max_size=6),
    slow_cuts=st.lists(st.integers(0, 20), max_size=6),
)
def test_inputs_of_two_rates_may_come_in_any_order(
    backend: str, frames: int, fast_cuts: list[int], slow_cuts: list[int]
) -> None:
    compiled = cached_program(two_rate_model, 2, backend)
    gain = np.full((1, 1, 1), 0.5, np.float32)
    session = Session(compiled, {"gain": gain})
    fast, slow = normal_noise(1, 1, 4 * frames), normal_noise(1, 1, frames, seed=1)
    pieces = [
        session.push({"fast": block})
        for block in np.split(fast, sorted(min(c, 4 * frames) for c in fast_cuts), 2)
    ]
    pieces += [
        session.push({"slow": block})
        for block in np.split(slow, sorted(min(c, frames) for c in slow_cuts), 2)
    ]
    pieces.append(session.flush(np.nan))
    expected = compiled.model.typed.run({"fast": fast, "slow": slow, "gain": gain})
    assert_outputs_close({"y": join_pieces(pieces, compiled.outputs[0])}, expected)


def test_an_input_far_ahead_waits_for_the_other() -> None:
    session = Session(cached_program(two_rate_model, 2, "numpy"), {"gain": np.ones((1, 1, 1), np.float32)})
    fast, slow = normal_noise(1, 1, 4000), normal_noise(1, 1, 1000, seed=1)
    pieces = [session.push({"fast": fast[..., :3600]})]
    assert session.pending_frames == 900
    pieces += [session.push({"slow": slow[..., at : at + 7]}) for at in range(0, 1000, 7)]
    assert session.frames_in == 900
    pieces += [session.push({"fast": fast[..., at : at + 5]}) for at in range(3600, 4000, 5)]
    pieces.append(session.flush())
    np.testing.assert_allclose(
        join_pieces(pieces, session.program.outputs[0])[0, 0],
        fast.reshape(-1, 4).sum(1) + slow[0, 0],
        rtol=1e-4,
        atol=1e-5,
    )


@both_backends
def test_frames_come_as_soon_as_they_are_sure(backend: str) -> None:
    session = Session(cached_program(filter_model, 3, backend))
    x = normal_noise(1, 30)
    counts = [session.push(x[:, at : at + 3])["y"].shape[1] for at in range(0, 30, 3)]
    delay = session.program.model.port("y").delay
    assert delay >= 2
    assert sum(counts) == 30 - delay
    assert session.flush()["y"].shape == (1, delay)


def test_an_empty_push_gives_empty_outputs_of_the_right_shape() -> None:
    session = Session(cached_program(decimating_model, 6, "numpy"))
    outputs = session.push(np.zeros((1, 0, 2), np.float32))
    assert outputs["same"].shape == (1, 0, 2)
    assert outputs["third"].shape == (1, 1, 0)
    assert outputs["third"].dtype == np.float32


def test_an_empty_stream_can_be_flushed() -> None:
    session = Session(cached_program(filter_model, 3, "numpy"))
    assert session.flush()["y"].shape == (1, 0)


def test_the_block_belongs_to_the_caller() -> None:
    compiled = cached_program(filter_model, 6, "numpy")
    session, x = Session(compiled), normal_noise(1, 40)
    pieces, block = [], np.empty((1, 5), np.float32)
    for at in range(0, 40, 5):
        block[...] = x[:, at : at + 5]
        pieces.append(session.push(block))
        block[...] = np.nan
    pieces.append(session.flush())
    np.testing.assert_allclose(
        join_pieces(pieces, compiled.outputs[0]), compiled.model.typed.run(x)["y"], rtol=1e-5, atol=1e-6
    )


@both_backends
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_snapshot_continues_in_another_session(backend: str, data: st.DataObject) -> None:
    length = data.draw(st.integers(3, 40), "length")
    at = data.draw(st.integers(0, length), "at")
    compiled = cached_program(ending_model, 4, backend)
    x = normal_noise(1, length)
    first = Session(compiled)
    pieces = [first.push(x[:, :at])]
    saved = first.snapshot()
    first.push(x[:, :at])
    second = Session(compiled)
    second.push(normal_noise(1, 7, seed=3))
    second.restore(saved)
    assert second.snapshot() == saved
    assert (second.frames_in, second.pending_frames) == (at, at % 4)
    pieces += [second.push(x[:, at:]), second.flush(np.nan)]
    expected = compiled.model.typed.run(x)
    np.testing.assert_allclose(join_pieces(pieces, compiled.outputs[0]), expected["y"], rtol=1e-6)
    np.testing.assert_allclose(pieces[-1]["last"], expected["last"], rtol=1e-6)


def test_a_snapshot_of_an_ended_stream_has_ended() -> None:
    session, other = (
        Session(cached_program(ending_model, 4, "numpy")),
        Session(cached_program(ending_model, 4, "numpy")),
    )
    session.push(normal_noise(1, 9))
    session.flush()
    other.restore(session.snapshot())
    with pytest.raises(InputError, match=r"reset\(\)"):
        other.push(normal_noise(1, 1))
    other.reset()
    assert other.statistics() == Session(cached_program(ending_model, 4, "numpy")).statistics()


@both_backends
def test_reset_begins_again(backend: str) -> None:
    compiled = cached_program(filter_model, 6, backend)
    session = Session(compiled)
    session.push(normal_noise(1, 23, seed=5))
    session.reset()
    assert (session.frames_in, session.pending_frames) == (0, 0)
    x = normal_noise(1, 20)
    assert_outputs_close(push_and_flush(session, x, [3, 9]), compiled.model.typed.run(x))
    session.reset()
    assert_outputs_close(push_and_flush(session, x, [11]), compiled.model.typed.run(x))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        pytest.param(
            np.zeros((1, 4)),
            r"x: expected \[1, any\] f32, got f64; convert it with \.astype\(np\.float32\)",
            id="f64",
        ),
        pytest.param(
            np.zeros((2, 4), np.float32), r"x: expected \[1, any\] f32, got shape \[2, 4\]", id="two rows"
        ),
        pytest.param(np.zeros(4, np.float32), r"got shape \[4\]", id="no batch"),
        pytest.param(
            np.array([[0, 0, np.nan, 0]], np.float32),
            r"x: NaN at frame 7; replace it, or let it .* check_finite=False$",
            id="nan",
        ),
        pytest.param(
            {"z": np.zeros((1, 4), np.float32)},
            r"z is not a streaming input; push x: \[1, any\] f32",
            id="unknown input",
        ),
    ],
)
def test_a_refused_block_leaves_the_stream_as_it_was(block: Array | dict[str, Array], message: str) -> None:
    session = Session(cached_program(filter_model, 6, "numpy"))
    session.push(normal_noise(1, 5))
    before = session.snapshot()
    with pytest.raises(InputError, match=message):
        session.push(block)
    assert session.snapshot() == before


def test_one_refused_input_of_two_keeps_both_out() -> None:
    session = Session(cached_program(two_rate_model, 2, "numpy"), {"gain": np.ones((1, 1, 1), np.float32)})
    before = session.snapshot()
    with pytest.raises(InputError, match="slow: NaN at frame 1"):
        session.push({"fast": normal_noise(1, 1, 12), "slow": np.array([[[0, np.nan]]], np.float32)})
    assert session.snapshot() == before
    with pytest.raises(InputError, match="2 inputs stream: push them by name, fast"):
        session.push(normal_noise(1, 1, 4))


def test_infinities_pass_and_nan_where_it_is_allowed() -> None:
    session = Session(cached_program(filter_model, 3, "numpy"))
    assert session.push(np.full((1, 3), np.inf, np.float32))["loud"].shape == (1, 3)
    session = Session(cached_program(filter_model, 3, "numpy"), check_finite=False)
    assert np.isnan(session.push(np.full((1, 3), np.nan, np.float32))["loud"]).all()


@pytest.mark.parametrize(
    "call",
    [lambda session: session.push(normal_noise(1, 1)), lambda session: session.flush()],
    ids=["push", "flush"],
)
def test_a_stream_that_has_ended_refuses(call: Callable[..., Any]) -> None:
    session = Session(cached_program(filter_model, 3, "numpy"))
    session.flush()
    with pytest.raises(InputError, match=r"the stream has ended; begin a new one with reset\(\)"):
        call(session)


def test_inputs_that_end_at_different_moments_can_be_completed() -> None:
    session = Session(cached_program(two_rate_model, 2, "numpy"), {"gain": np.ones((1, 1, 1), np.float32)})
    session.push({"fast": normal_noise(1, 1, 12), "slow": normal_noise(1, 1, 2)})
    with pytest.raises(
        InputError, match=r"fast with 12 of 4\*T, slow with 2 of T frames; feed the rest of the shorter one"
    ):
        session.flush()
    session.push({"slow": normal_noise(1, 1, 1)})
    assert session.flush()["y"].shape[2] == 1


@pytest.mark.parametrize(
    ("length", "half"),
    [
        pytest.param("T/2", lambda n: n // 2, id="half"),
        pytest.param("(T+1)/2", lambda n: (n + 1) // 2, id="half rounded up"),
        pytest.param("T+3", lambda n: n + 3, id="three more"),
    ],
)
@settings(max_examples=20, deadline=None)
@given(frames=st.integers(1, 30), cut=st.integers(0, 30))
def test_lengths_of_inputs_need_not_be_multiples_of_each_other(
    length: str, half: Callable[..., Any], frames: int, cut: int
) -> None:
    compiled = program(two_input_model(length), 4)
    x, other = normal_noise(1, frames), normal_noise(1, half(frames), seed=1)
    session = Session(compiled)
    pieces = [
        session.push({"x": x[:, :cut], "half": other}),
        session.push({"x": x[:, cut:]}),
        session.flush(np.nan),
    ]
    outputs = {port.name: join_pieces(pieces, port) for port in compiled.outputs}
    assert_outputs_close(outputs, compiled.model.typed.run({"x": x, "half": other}))


def test_push_refuses_frames_beyond_the_longest_stream() -> None:
    session = Session(cached_program(partial(limited_model, 10), 2, "numpy"))
    session.push(normal_noise(1, 7))
    before = session.snapshot()
    with pytest.raises(InputError, match="at most 10 frames of T and has received 7"):
        session.push(normal_noise(1, 5))
    assert session.snapshot() == before
    session.push(normal_noise(1, 3))
    with pytest.raises(InputError, match="at most 10 frames of T and has received 10"):
        session.push(normal_noise(1, 1))
    assert session.flush()["y"].shape == (1, 0)


def test_a_length_that_the_model_refuses_can_be_completed() -> None:
    session = Session(cached_program(ending_model, 4, "numpy"))
    session.push(normal_noise(1, 2))
    with pytest.raises(InputError, match="2 frames of T"):
        session.flush()
    session.push(normal_noise(1, 1))
    assert session.flush()["last"].shape == (1, 3)


def test_constants_and_programs_are_checked() -> None:
    with pytest.raises(InputError, match="gain: 1,1,1,f32"):
        Session(cached_program(two_rate_model, 2, "numpy"))
    with pytest.raises(PulseError, match="expected a Program, got str"):
        Session("model.onnx")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda s: b"", id="empty"),
        pytest.param(lambda s: b"x" * 99, id="no snapshot"),
        pytest.param(lambda s: s[:-1], id="last byte lost"),
        pytest.param(lambda s: s + b"0", id="byte more"),
        pytest.param(lambda s: s[:20], id="cut short"),
    ],
)
def test_a_damaged_snapshot_changes_nothing(damage: Callable[..., Any]) -> None:
    session = Session(cached_program(ending_model, 4, "numpy"))
    session.push(normal_noise(1, 9))
    saved = session.snapshot()
    with pytest.raises(InputError, match="snapshot"):
        session.restore(damage(saved))
    assert session.snapshot() == saved


def test_a_snapshot_of_another_pulse_or_model_is_refused() -> None:
    session, other = (
        Session(cached_program(ending_model, 4, "numpy")),
        Session(cached_program(ending_model, 8, "numpy")),
    )
    with pytest.raises(InputError, match="another model or pulse"):
        session.restore(other.snapshot())
    with pytest.raises(InputError, match="another model or pulse"):
        session.restore(Session(cached_program(filter_model, 6, "numpy")).snapshot())


def test_statistics_are_frozen_and_count() -> None:
    session = Session(cached_program(filter_model, 6, "numpy"))
    session.push(normal_noise(1, 15))
    statistics = session.statistics()
    assert (statistics.frames_in, statistics.pending_frames, statistics.pulses) == (15, 3, 2)
    assert statistics.frames_out["loud"] == 12
    with pytest.raises(AttributeError):
        statistics.pulses = 3


def test_one_bit_that_flipped_in_a_snapshot_is_found() -> None:
    session = Session(cached_program(filter_model, 4, "numpy"))
    session.push(normal_noise(1, 6))
    saved = session.snapshot()
    for place in range(len(saved)):
        damaged = bytearray(saved)
        damaged[place] ^= 0x40
        with pytest.raises(InputError, match="snapshot"):
            session.restore(bytes(damaged))
    assert session.snapshot() == saved
