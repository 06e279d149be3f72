"""Recipes from audio to audio, and the authors' loops around onnxruntime: checked, then timed.

The recipes are from the documents. Before a chain is timed, its output for real speech has to equal the output of its
author's chain. A step is one hop, from numpy to numpy; the steps continue with the same speech.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import pulse
from bench.measurement.timing import Comparison, alternate, make_stepper
from bench.models.explicit import Explicit
from bench.models.recipe_pages import lay_out_recipe
from bench.peers.onnxruntime_peer import OnnxRuntimePeer
from bench.peers.outputs import WrongResultError
from bench.sound import author_loops
from pulse.program.native.native_program import NativeProgram
from pulse.program.native.native_state import NativeState
from pulse.program.program import Program

ROUNDS, STEPS = 12, 500
"""Rounds in which the contestants alternate, and hops in each."""
MAX_ERROR = 1e-4
"""How far a result may be off, as a part of the largest value."""
OURS, EXPORTED = "pulse", "onnxruntime, all of it exported"
"""The names of two contestants: this project, and its whole recipe as one ONNX file in onnxruntime."""


@dataclass(frozen=True)
class SoundContest:
    """A recipe, and other implementations of it.

    recipe    name in ``bench.models.recipe_pages``
    recorded  the author's own result
    hop       samples of a step
    late      samples, or rows, that the loops return before the first valid one
    loops     description -> function that begins a new stream
    """

    recipe: str
    recorded: str
    hop: int
    late: int
    loops: Mapping[str, Callable[[Path], author_loops.Step]]


CONTESTS = (
    SoundContest(
        "gtcrn.toml", "gtcrn_center", 256, 256, {"onnxruntime, numpy's STFT around it": author_loops.gtcrn}
    ),
    SoundContest("dtln.toml", "dtln_blocks", 128, 0, {"onnxruntime twice, numpy between": author_loops.dtln}),
    SoundContest(
        "fireredvad.toml",
        "fireredvad_en",
        160,
        0,
        {
            "onnxruntime after numpy's filter bank": author_loops.fireredvad,
            "onnxruntime after kaldi-native-fbank": author_loops.fireredvad_kaldi,
        },
    ),
)
"""The recipes, each with the loops that it is compared with."""


@dataclass(frozen=True)
class SoundTimes:
    """The times of one chain; ``inside_us`` is that of the instructions, without the call from Python."""

    contest: SoundContest
    comparison: Comparison
    inside_us: float

    def lines(self) -> list[str]:
        """Return rows of the table."""
        rows: list[str] = []
        for name in self.comparison.rounds:
            median = self.comparison.median(name)
            cells = [f"{median.p50_us:.1f}", f"{median.p90_us:.1f}", f"{median.p99_us:.1f}"]
            if name == OURS:
                cells += ["", ""]
            else:
                cells += [
                    str(self.comparison.ratio(name, OURS, percentile)) for percentile in ("p50_us", "p99_us")
                ]
            title = self.contest.recipe if name == OURS else ""
            label = f"**{OURS}**, {self.inside_us:.1f} inside" if name == OURS else name
            rows.append(f"| {title} | {label} | {' | '.join(cells)} |")
        return rows


def measure(contest: SoundContest, shared: Path, rounds: int, steps: int) -> SoundTimes:
    """Check every chain, then time them alternately.

    Raises WrongResultError: an output is wrong; FileNotFoundError: a recording is missing
    """
    with np.load(shared / "sound" / f"{contest.recorded}.npz") as stored:
        x, expected = stored["in"].ravel().astype(np.float32), stored["out"].ravel()
    hops = list(x[: len(x) // contest.hop * contest.hop].reshape(-1, contest.hop))
    with TemporaryDirectory() as folder:
        program = pulse.stream(lay_out_recipe(contest.recipe, Path(folder), shared), pulse=contest.hop)
    assert isinstance(program, NativeProgram), "the bench runs the numba backend"
    (port,) = program.outputs
    delay = {OURS: port.delay, EXPORTED: port.delay}
    chains: dict[str, Callable[[], author_loops.Step]] = {
        OURS: lambda: ours(program),
        EXPORTED: lambda: exported_step(program, hops[0]),
    }
    for name, make in contest.loops.items():
        try:
            make(shared / "models")
        except ImportError:
            print(f"{name}: not here", flush=True)
            continue
        chains[name] = lambda make=make: make(shared / "models")
    for name, make in chains.items():
        require_right(name, make(), hops, expected, delay.get(name, contest.late))
    comparison = alternate({name: make_stepper(make(), hops) for name, make in chains.items()}, rounds, steps)
    state = program.spawn()
    assert isinstance(state, NativeState)
    inside = min(sum(row.seconds_per_step for row in state.profile().rows) for _ in range(5))
    return SoundTimes(contest, comparison, inside * 1e6)


def ours(program: Program) -> author_loops.Step:
    """Return the steps of this project's stream."""
    state, name = program.spawn(), program.outputs[0].name
    return lambda x: state.step(x[None])[name].ravel()


def exported_step(program: Program, sample: NDArray[np.float32]) -> author_loops.Step:
    """Return the whole chain as this project writes it, in onnxruntime alone."""
    (source,), (target,) = program.inputs, program.outputs
    peer = OnnxRuntimePeer(Explicit.of(program.model), {source.name: sample[None]})
    return lambda x: np.asarray(peer.step({source.name: x[None]})[target.name], np.float32).ravel()


def require_right(
    name: str,
    step: author_loops.Step,
    hops: Sequence[NDArray[np.float32]],
    expected: NDArray[np.float32],
    late: int,
) -> None:
    """Raise WrongResultError unless a chain's output equals the output of its author's chain."""
    ready = [y for hop in hops if (y := step(hop)) is not None]
    result = np.concatenate([np.zeros(0, np.float32), *ready])[late:][: len(expected)]
    off = np.abs(result - expected[: len(result)]).max() / np.abs(expected).max() if len(result) else np.inf
    if not off <= MAX_ERROR:
        raise WrongResultError(f"{name}: off by {off:.1e} of the largest value")
