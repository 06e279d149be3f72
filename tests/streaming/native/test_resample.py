"""Resampled sound is ideal up to the filter's attenuation, in any blocks and with any tuning."""

import re
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pytest
import samplerate
from hypothesis import given, settings
from hypothesis import strategies as st

from pulse.errors import InputError
from pulse.facts import Array
from pulse.jit.codegen.registration import register_with_numba
from pulse.jit.entries import Entry
from pulse.jit.language.address import floats_at
from pulse.jit.rows.pointer import Pointer
from streaming.native import resample
from streaming.native.resample import (
    NativeResampler,
    feed,
    missing_frames,
    produce,
    ready_after,
    ready_outputs,
    tune,
)
from tests.noise import normal_noise
from tests.pulse.jit.assembly import assert_only_known_calls, host, llvm_code, loops

register_with_numba()  # of what the functions below call

RATES = [(48000, 16000), (16000, 48000), (44100, 48000), (48000, 44100), (44100, 16000), (8000, 48000)]
ODD_RATES = [(44101, 16000), (16000, 44101)]
"""Without tuning, too, their filters have fewer rows than outputs have positions."""
MIN_SIGNAL_TO_ERROR_DB = {"low": 70, "medium": 90, "high": 120, "best": 140}
"""The lowest signal-to-error ratio of a tone in the pass band, in dB."""
PASSED = {"low": 0.71, "medium": 0.81, "high": 0.91, "best": 0.93}
FIXED_PASS_DB, FIXED_STOP_DB = 141, 143
"""The same for ``best`` with a row for each position, and its stop band, which rounding to f32 limits."""


def tone(part: float, rate_in: int, rate_out: int, times_s: Array) -> Array:
    """A sine at a part of the lower Nyquist frequency."""
    return np.sin(np.pi * part * min(rate_in, rate_out) * np.asarray(times_s) + 0.3)


def sound_of(part: float, rate_in: int, rate_out: int, seconds: float = 0.25) -> Array:
    """A tone sampled at the input rate, as f32."""
    return tone(part, rate_in, rate_out, np.arange(int(rate_in * seconds)) / rate_in).astype(np.float32)


def signal_to_error_db(output: Array, ideal: Array) -> float:
    """The signal-to-error ratio in dB, without the ends."""
    edge = len(output) // 5
    error = output[edge:-edge] - ideal[edge : len(output) - edge]
    return 10 * np.log10(np.mean(ideal**2) / np.mean(error**2))


def cut(resampler: NativeResampler, x: Array, at: list[int]) -> Array:
    return np.concatenate([resampler.process(piece) for piece in np.split(x, sorted(at))])


@numba.njit(nogil=True)
def line(address, source_address, frames, channels, target_address, pulses, pulse, part_address):
    """The parts of a live line: whole pulses from one channel of many, no frame more than needed."""
    state, source, target = (
        resample.resampler_at(address),
        floats_at(source_address),
        floats_at(target_address),
    )
    parts = floats_at(part_address)
    consumed = produced_before = 0
    for number in range(pulses):
        tune(state, parts[number])
        produced = 0
        while produced < pulse:
            expected = missing_frames(state, pulse - produced)
            if consumed + expected > frames:
                return consumed
            consumed += feed(state, source + consumed * channels, channels, min(expected, 100))
            produced += produce(
                state,
                target + 2 * (produced_before + produced),
                2,
                min(ready_outputs(state), pulse - produced),
            )
        produced_before += produced
    return consumed


@pytest.mark.parametrize(
    ("quality", "tunable", "min_db"),
    [*((name, True, db) for name, db in MIN_SIGNAL_TO_ERROR_DB.items()), ("best", False, FIXED_PASS_DB)],
)
@pytest.mark.parametrize(("rate_in", "rate_out"), [*RATES, *ODD_RATES])
def test_a_tone_is_the_ideal_one_and_stays_where_it_is(
    rate_in: int, rate_out: int, quality: str, tunable: bool, min_db: int
) -> None:
    resampler = NativeResampler(rate_in, rate_out, quality, tunable=tunable)
    limit_db = MIN_SIGNAL_TO_ERROR_DB[quality] if (rate_in, rate_out) in ODD_RATES else min_db
    for part in (0.01, 0.2, 0.5, PASSED[quality]):
        resampler.reset()
        output = resampler.process(sound_of(part, rate_in, rate_out))
        ideal = tone(part, rate_in, rate_out, np.arange(len(output)) / rate_out)
        assert signal_to_error_db(output, ideal) > limit_db


@pytest.mark.parametrize(
    ("quality", "tunable", "min_db"),
    [*((name, True, db) for name, db in MIN_SIGNAL_TO_ERROR_DB.items()), ("best", False, FIXED_STOP_DB)],
)
@pytest.mark.parametrize(
    ("rate_in", "rate_out"), [(48000, 16000), (48000, 44100), (44100, 16000), (48000, 8000), (44101, 16000)]
)
def test_nothing_above_the_cutoff_is_folded_back(
    rate_in: int, rate_out: int, quality: str, tunable: bool, min_db: int
) -> None:
    resampler = NativeResampler(rate_in, rate_out, quality, tunable=tunable)
    for part in np.linspace(1.001, 0.99 * rate_in / rate_out, 12):
        resampler.reset()
        output = resampler.process(sound_of(part, rate_in, rate_out))
        middle = output[len(output) // 5 : -len(output) // 5].astype(np.float64)
        assert 10 * np.log10(2 * np.mean(middle**2)) < -min_db


@pytest.mark.parametrize(
    ("quality", "tunable"), [("high", True), ("best", False)], ids=["high, tunable", "best, fixed"]
)
@pytest.mark.parametrize(("rate_in", "rate_out"), [*RATES, *ODD_RATES])
def test_outputs_agree_with_those_of_samplerate(
    rate_in: int, rate_out: int, quality: str, tunable: bool
) -> None:
    x = sum(sound_of(part, rate_in, rate_out) for part in (0.013, 0.11, 0.37, 0.61, 0.88)) / 5
    output = NativeResampler(rate_in, rate_out, quality, tunable=tunable).process(x)
    reference = samplerate.resample(x, rate_out / rate_in, "sinc_best")
    assert signal_to_error_db(output, reference.astype(np.float64)) > 110


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([*RATES, (11025, 48000), (25600, 100), (100, 25600), (48000, 48000)]),
    st.sampled_from(sorted(MIN_SIGNAL_TO_ERROR_DB)),
    st.integers(1, 700),
    st.integers(0, 3000),
    st.lists(st.integers(0, 3000), max_size=8),
    st.none() | st.integers(-5000, 5000),
)
def test_any_split_gives_the_same_bits(
    rates: tuple[int, int], quality: str, largest: int, length: int, at: list[int], ppm: int | None
) -> None:
    x, tunable = normal_noise(length, seed=length), ppm is not None
    whole, pieces = (
        NativeResampler(*rates, quality, largest_block=size, tunable=tunable) for size in (4096, largest)
    )
    if ppm is not None:
        whole.tuning_ppm = pieces.tuning_ppm = ppm
    expected = whole.process(x)
    np.testing.assert_array_equal(cut(pieces, x, [min(place, length) for place in at]), expected)
    pieces.reset()
    np.testing.assert_array_equal(pieces.process(x), expected)


@pytest.mark.parametrize(("rate_in", "rate_out"), [(48000, 16000), (16000, 48000), (44100, 48000)])
def test_pulses_of_one_channel_give_the_same_bits(rate_in: int, rate_out: int) -> None:
    """Channels are strided, come in pieces, and are never read ahead."""
    frames = normal_noise(9000, 3)
    expected = NativeResampler(rate_in, rate_out).process(frames[:, 1].copy())
    resampler = NativeResampler(rate_in, rate_out, largest_block=100)
    pulse, pulses = 160, len(expected) // 160
    target, parts = np.full((pulses * pulse, 2), 9, np.float32), np.zeros(pulses, np.float32)
    consumed = line(
        resampler.address,
        frames.ctypes.data + 4,
        len(frames),
        3,
        target.ctypes.data,
        pulses,
        pulse,
        parts.ctypes.data,
    )
    np.testing.assert_array_equal(target[:, 0], expected[: len(target)])
    assert (target[:, 1] == 9).all()
    last = (pulses * pulse - 1) * rate_in // rate_out
    assert consumed == last + resampler.delay_frames + 1


@pytest.mark.parametrize("quality", MIN_SIGNAL_TO_ERROR_DB)
@pytest.mark.parametrize(("rate_in", "rate_out"), [(48000, 16000), (44100, 48000), (48000, 48000)])
def test_a_ratio_that_wanders_does_not_click(rate_in: int, rate_out: int, quality: str) -> None:
    """The ratio wanders by up to 200 ppm; every sample is where the sum of all steps puts it."""
    resampler = NativeResampler(rate_in, rate_out, quality, largest_block=100)
    pulse, pulses = rate_out // 100, 200
    parts = (200e-6 * np.sin(np.arange(pulses) / 7)).astype(np.float32)
    x = sound_of(PASSED[quality], rate_in, rate_out, 2.1)
    target = np.empty((pulses * pulse, 2), np.float32)
    line(resampler.address, x.ctypes.data, len(x), 1, target.ctypes.data, pulses, pulse, parts.ctypes.data)
    nominal = resampler.state.nominal
    tuned = nominal + (parts.astype(np.float64) * nominal).astype(np.int64)
    steps = np.repeat(tuned / nominal, pulse) / rate_out
    ideal = tone(PASSED[quality], rate_in, rate_out, np.cumsum(steps) - steps)
    error = target[:, 0] - ideal
    assert signal_to_error_db(target[:, 0], ideal) > MIN_SIGNAL_TO_ERROR_DB[quality]
    assert np.abs(error[pulse * 5 :]).max() < 3 * 10 ** (-MIN_SIGNAL_TO_ERROR_DB[quality] / 20)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(RATES),
    st.integers(-5000, 5000),
    st.integers(0, 20000),
    st.integers(1, 20000),
    st.integers(0, 999_999),
)
def test_shortage_is_the_number_of_missing_frames(
    rates: tuple[int, int], ppm: int, frames_held: int, outputs: int, fraction: int
) -> None:
    resampler = NativeResampler(*rates, "low")
    resampler.tuning_ppm = ppm
    state = resampler.state
    state.end += frames_held
    state.fraction = fraction * state.unit // 1_000_000
    more = missing_frames(state, outputs)
    assert ready_after(state, more) >= outputs
    if more:
        assert ready_after(state, more - 1) < outputs
    else:
        assert ready_outputs(state) >= outputs


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(RATES), st.integers(0, 4000), st.integers(-5000, 5000))
def test_output_k_waits_for_the_delay_and_no_longer(rates: tuple[int, int], frames: int, ppm: int) -> None:
    """The expected number of outputs is counted with fractions."""
    resampler = NativeResampler(*rates, "low")
    resampler.tuning_ppm = ppm
    step = Fraction(resampler.state.step, resampler.state.unit)
    frames_out = len(resampler.process(np.zeros(frames, np.float32)))
    if frames_out:
        assert int((frames_out - 1) * step) + resampler.delay_frames + 1 <= frames
    assert int(frames_out * step) + resampler.delay_frames + 1 > frames


@numba.njit(nogil=True)
def endless(address, source_address, blocks, block, target_address):
    """Push a block again and again and return the number of outputs."""
    state, source, target = (
        resample.resampler_at(address),
        floats_at(source_address),
        floats_at(target_address),
    )
    produced = 0
    for _ in range(blocks):
        feed(state, source, 1, block)
        produced += produce(state, target, 1, 2 * block)
    return produced


@pytest.mark.parametrize("outputs", [1_000_000, pytest.param(1_000_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ppm", [0, 137])
def test_positions_do_not_drift(outputs: int, ppm: int) -> None:
    """After this many outputs the next one is exactly where it belongs."""
    resampler, block = NativeResampler(44100, 48000, "low"), 4096
    resampler.tuning_ppm = ppm
    source, target = np.zeros(block, np.float32), np.empty(2 * block, np.float32)
    blocks = outputs // block
    produced = endless(resampler.address, source.ctypes.data, blocks, block, target.ctypes.data)
    state = resampler.state
    frame = blocks * block - (state.end - state.first) + state.taps - 1 - resampler.delay_frames
    assert produced > outputs
    assert frame * state.unit + state.fraction == produced * state.step


@pytest.mark.parametrize("tunable", [True, False])
def test_the_resampler_as_python_stays_in_its_memory(tunable: bool) -> None:
    """The functions run as plain Python, where an access out of bounds is an IndexError."""
    x = normal_noise(150)
    expected = NativeResampler(44100, 48000, "medium", tunable=tunable).process(x)
    resampler, output = (
        NativeResampler(44100, 48000, "medium", largest_block=20, tunable=tunable),
        np.empty(len(expected), np.float32),
    )
    state = resampler.state
    history, table, source, target = (
        Pointer(memory.reshape(-1), 0) for memory in (resampler.history, resampler.filter.table, x, output)
    )
    assert state.phases == (256 if tunable else 160)  # of 160 positions
    fed = produced = 0
    while fed < len(x):
        fed += resample.append_samples(state, history, source + fed, 1, min(13, len(x) - fed))
        produced += resample.write_outputs(state, history, table, target + produced, 1, 40, tunable)
    assert produced == len(expected)
    np.testing.assert_allclose(output, expected, atol=1e-6)


def test_frames_without_space_are_not_taken() -> None:
    """The resampler takes none until it has produced something."""
    resampler = NativeResampler(16000, 16000, "low", largest_block=50)
    x, target = np.ones(1000, np.float32), Pointer(np.empty(1000, np.float32), 0)
    state = resampler.state
    history, table = (
        Pointer(memory.reshape(-1), 0) for memory in (resampler.history, resampler.filter.table)
    )
    first = resample.append_samples(state, history, Pointer(x, 0), 1, 1000)
    assert first == 50 + resampler.delay_frames + 1
    assert resample.append_samples(state, history, Pointer(x, 0), 1, 1) == 0
    assert resample.write_outputs(state, history, table, target, 1, 1000, True) == 51
    assert resample.append_samples(state, history, Pointer(x, 0), 1, 1000) == 51


def test_tuning_outlasts_a_reset() -> None:
    """The tuning stays after a reset and changes the number of frames."""
    resampler = NativeResampler(48000, 16000)
    assert resampler.tuning_ppm == 0
    for part, ppm in ((0.001, 1000), (-0.5, -5000), (1.0, 5000)):
        tune(resampler.state, part)
        resampler.reset()
        assert resampler.tuning_ppm == pytest.approx(ppm, abs=1e-4)
    assert len(resampler.process(np.zeros(48000, np.float32))) == pytest.approx(16000 / 1.005, abs=40)


@pytest.mark.parametrize("ppm", [5001, -5001, float("nan")])
def test_tuning_has_a_limit(ppm: float) -> None:
    resampler = NativeResampler(48000, 16000)
    with pytest.raises(InputError, match=r"by at most 5000 ppm, got (-?5001|nan)"):
        resampler.tuning_ppm = ppm


def test_a_fixed_ratio_is_not_tuned() -> None:
    """Neither directly nor by a snapshot, not even of a resampler that is no longer tuned."""
    resampler, tunable = NativeResampler(48000, 16000, tunable=False), NativeResampler(48000, 16000)
    with pytest.raises(InputError, match="fixed ratio: make one with tunable=True"):
        resampler.tuning_ppm = 100
    resampler.restore(tunable.snapshot())
    tunable.tuning_ppm = 100
    with pytest.raises(InputError, match="that was tuned: restore it in one with tunable=True"):
        resampler.restore(tunable.snapshot())
    tunable.process(np.zeros(9000, np.float32))
    tunable.tuning_ppm = 0
    with pytest.raises(InputError, match="that was tuned: restore it in one with tunable=True"):
        resampler.restore(tunable.snapshot())
    assert resampler.tuning_ppm == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((48000, 0), "must be positive, got 48000 Hz and 0 Hz"),
        ((48000, 16000, "sinc_best"), "choose one of low, medium, high, best"),
        ((48000, 16000, "low", 0), "blocks of 0 frames for 16000 Hz: use 1 to "),
        ((48000, 16000, "low", 1 << 40), "blocks of 1099511627776 frames"),
    ],
)
def test_invalid_resampler_arguments_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        NativeResampler(*arguments)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(np.zeros((4, 2), np.float32), id="two columns"),
        pytest.param(np.zeros(4, np.int16), id="integers"),
    ],
)
def test_blocks_other_than_a_row_of_floats_are_refused(block: Array) -> None:
    with pytest.raises(InputError, match=r"takes one row of floats, got an array \(4,"):
        NativeResampler(48000, 16000).process(block)


@pytest.mark.parametrize("entry", [resample.convert, resample.convert_by_rows], ids=lambda entry: entry.name)
def test_the_code_calls_nothing_and_computes_in_whole_registers(entry: Entry) -> None:
    """Memory is moved by an instruction of LLVM; nothing is allocated, nothing raises."""
    code = llvm_code(entry)
    assert_only_known_calls(code)
    sums = [body for body in loops(host().assembly(code)) if sum("fm" in line for line in body) >= 2]
    assert any(re.search(host().arithmetic, line) for body in sums for line in body)


@pytest.mark.parametrize("tunable", [True, False])
@pytest.mark.parametrize(("rate_in", "rate_out"), RATES[:4])
def test_sound_continues_from_a_snapshot_with_the_same_bits(
    rate_in: int, rate_out: int, tunable: bool
) -> None:
    x = normal_noise(rate_in // 4, seed=2)
    whole, first, then = (NativeResampler(rate_in, rate_out, tunable=tunable) for _ in range(3))
    if tunable:
        whole.tuning_ppm = first.tuning_ppm = 300.0
    expected = whole.process(x)
    cut = len(x) // 3
    parts = [first.process(x[:cut])]
    then.process(x[:777])
    then.restore(first.snapshot())
    parts.append(then.process(x[cut:]))
    np.testing.assert_array_equal(np.concatenate(parts), expected)
    assert then.tuning_ppm == first.tuning_ppm


@pytest.mark.parametrize(
    ("snapshot", "message"),
    [
        (NativeResampler(44100, 16000).snapshot(), "other rates or another quality"),
        (NativeResampler(48000, 16000, "high").snapshot(), "other rates or another quality"),
        (b"something else", "not a session snapshot"),
    ],
    ids=["rate", "quality", "other bytes"],
)
def test_a_resampler_refuses_misfitting_snapshots(snapshot: bytes, message: str) -> None:
    resampler = NativeResampler(48000, 16000)
    before = resampler.snapshot()
    with pytest.raises(InputError, match=message):
        resampler.restore(snapshot)
    assert resampler.snapshot() == before
