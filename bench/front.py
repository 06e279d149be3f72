"""``python -m bench.front``: front ends compared with other packages, from numpy to numpy, as a table.

Every result is compared with ours before it is timed. All times are per hop: of pulses of one hop and of four, each a
call from Python, and of the instructions alone (*inside*). *Roofline* is that of all instructions: the bytes of
weights and state at the speed at which the working set is read, or the multiply-adds at the speed of registers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import pulse
from bench.measurement.roofline import BandwidthProbe, measured_machine, roofline, working_set
from bench.measurement.timing import alternate, make_stepper
from pulse import front
from pulse.facts import Array
from pulse.front.windows import window_values
from pulse.models import TypedModel
from pulse.program.native.native_program import NativeProgram
from pulse.program.native.native_state import NativeState

ROUNDS, STEPS, HOPS = 20, 1000, 200
"""Rounds in which the contestants alternate, steps in each, and hops of noise that the steps cycle through."""
PULSES = (1, 4)
"""Hops in a pulse."""
MAX_DIFFERENCE = 1e-4
"""Maximum difference of outputs, relative to the largest value; beyond it, a result is wrong."""

Step = Callable[[Array], Sequence[Any]]
"""A hop of samples [hop] to what is ready: blocks of samples, or rows of features."""


@dataclass(frozen=True)
class FrontContest:
    """A front end, and another implementation of it.

    make   begins a new stream of the other one
    late   samples, or rows, that it returns before the first one
    """

    name: str
    other: str
    model: TypedModel
    hop: int
    make: Callable[[], Step]
    late: int


def block_loop() -> Step:
    """Return the usual transform: a window, numpy's transform and its inverse, the window again, overlap and add."""
    size, hop = 512, 256
    window = window_values("bench", "sqrt_hann", size).astype(np.float32)
    frame, total = np.zeros(size, np.float32), np.zeros(size, np.float32)

    def step(x: Array) -> Sequence[Array]:
        frame[:-hop] = frame[hop:]
        frame[-hop:] = x
        total[:] += np.fft.irfft(np.fft.rfft(frame * window)) * window
        ready = total[:hop].copy()
        total[:-hop] = total[hop:]
        total[-hop:] = 0
        return (ready,)

    return step


def kaldi_native() -> Step:
    """Return the online loop of kaldi-native-fbank. Raises ImportError: it is not installed."""
    knf = import_module("kaldi_native_fbank")
    options = knf.FbankOptions()
    options.frame_opts.dither, options.mel_opts.num_bins = 0, 80
    bank, frames_read = knf.OnlineFbank(options), [0]

    def step(x: Array) -> Sequence[Any]:
        bank.accept_waveform(16000, x)
        rows = [bank.get_frame(frame) for frame in range(frames_read[0], bank.num_frames_ready)]
        frames_read[0] += len(rows)
        return rows

    return step


def contests() -> list[FrontContest]:
    """Return all contests of front ends."""
    forward, back = (make(512, 256, window="sqrt_hann") for make in (front.stft, front.istft))
    both = pulse.chain(forward, back)
    contests_of_all = [
        FrontContest("STFT 512/256 and its inverse", "numpy, block by block", both, 256, block_loop, 256)
    ]
    try:
        kaldi_native()
    except ImportError:
        print("kaldi-native-fbank is not here: pip install kaldi-native-fbank\n")
        return contests_of_all
    bank = front.kaldi_fbank(scale=1.0)
    contests_of_all.append(FrontContest("Kaldi, 80 bins", "kaldi-native-fbank", bank, 160, kaldi_native, 0))
    return contests_of_all


def main() -> None:
    """Print the table of all contests."""
    machine = measured_machine(sizes=())
    print(
        "| front end | hops | us | inside | roofline | over roofline | against | us | times as fast | lowest..highest |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: | ---: | --- |")
    for contest in contests():
        rng = np.random.default_rng(0)
        hops = [(rng.standard_normal(contest.hop) * 3000).astype(np.float32) for _ in range(HOPS)]
        for times in PULSES:
            pulses = [np.concatenate(hops[first : first + times])[None] for first in range(0, HOPS, times)]
            program = contest.model.declutter().pulsify(pulse=contest.hop * times).compile()
            assert isinstance(program, NativeProgram)
            require_equal(contest, program, pulses, hops)
            ours, theirs = program.spawn(), contest.make()
            assert isinstance(ours, NativeState)
            steppers = {"pulse": make_stepper(ours.step, pulses), "other": make_stepper(theirs, hops)}
            times_by_name = alternate(steppers, ROUNDS, STEPS)
            inside_us = min(sum(row.seconds_per_step for row in ours.profile().rows) for _ in range(5)) * 1e6
            reading = BandwidthProbe(working_set(program))
            bytes_per_s = reading.bytes / reading.seconds()
            min_us = roofline(program, bytes_per_s, machine.multiply_adds_per_s).min_us
            ratio = times_by_name.ratio("other", "pulse")
            print(
                f"| {contest.name} | {times} | {times_by_name.median('pulse').p50_us / times:.2f} | "
                f"{inside_us / times:.2f} | {min_us / times:.2f} | {inside_us / min_us:.1f} | "
                f"{contest.other} | {times_by_name.median('other').p50_us:.2f} | "
                f"{ratio.median * times:.1f} | {ratio.lowest * times:.1f}..{ratio.highest * times:.1f} |"
            )


def require_equal(
    contest: FrontContest, program: NativeProgram, pulses: Sequence[Array], hops: Sequence[Array]
) -> None:
    """Raise AssertionError unless both outputs are equal."""
    state, step = program.spawn(), contest.make()
    (port,) = program.outputs
    axis = port.axis or 0
    ours = np.concatenate([state.step(pulse)[port.name] for pulse in pulses], axis)[0][port.delay :]
    rows = [row for hop in hops for row in step(hop)]
    theirs: Array = np.concatenate(rows) if ours.ndim == 1 else np.stack(rows)
    theirs = theirs[contest.late :]
    assert ours.shape == theirs.shape, (contest.name, ours.shape, theirs.shape)
    assert np.abs(ours - theirs).max() <= MAX_DIFFERENCE * np.abs(theirs).max(), contest.name


if __name__ == "__main__":
    main()
