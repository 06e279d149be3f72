"""The proof that a stream equals its offline model, or the first wire at which it does not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pulse.errors import DivergenceError, InputError, PulsifyError
from pulse.facts import Array, PulsedFact
from pulse.ops.stateful import frames_at
from pulse.program.compiler import Prepare, compile_model
from pulse.program.program import Program
from pulse.program.whole import begun, run_whole, streamed
from pulse.pulsify.driver import pulsify
from pulse.pulsify.lengths import reaching
from pulse.pulsify.model import Placed, PulsedModel
from pulse.typed import TypedModel

RTOL, ATOL = 1e-4, 1e-5


@dataclass(frozen=True)
class Divergence:
    """The first wire, in the order of the graph, whose stream differs from offline."""

    wire: str
    op: str
    length: int
    backend: str
    frame: int
    offline: float
    streamed: float

    def __str__(self) -> str:
        return (
            f"{self.wire} ({self.op}) diverges at frame {self.frame} of a stream of {self.length}: "
            f"offline {self.offline:.6g}, streamed {self.streamed:.6g} ({self.backend})"
        )


@dataclass(frozen=True)
class Report:
    """What was compared, and how it ended.

    lengths  frames of the symbol of each stream that was run; those that the offline model refuses are in ``skipped``
    error    the largest absolute difference over all outputs
    """

    model: PulsedModel
    backends: tuple[str, ...]
    lengths: tuple[int, ...]
    skipped: tuple[int, ...]
    error: float
    divergence: Divergence | None

    @property
    def equal(self) -> bool:
        """Whether every output frame of every stream agreed."""
        return self.divergence is None

    def require(self) -> "Report":
        """The report, if all agreed. Raises DivergenceError."""
        if self.divergence is not None:
            raise DivergenceError(str(self.divergence))
        return self


def verify(
    typed: TypedModel,
    pulse: int | None = None,
    symbol: str | None = None,
    lengths: Sequence[int] | None = None,
    backend: str = "numba",
    seed: int = 0,
    max_context: int | None = None,
    prepare: Prepare | None = None,
) -> Report:
    """Run random streams of several lengths, the padding of the last pulse NaN, and compare every frame.

    Raises  PulsifyError, CompileError; PulsifyError if no length can be run offline
    """
    model = pulsify(typed, symbol, pulse, max_context=max_context)

    def offline(feeds: dict[str, Array]) -> dict[str, Array]:
        model.typed.bind(feeds)
        return typed.run(feeds)

    return prove(model, offline, lengths, backend, seed, prepare)


def prove(
    model: PulsedModel,
    oracle: Callable[[dict[str, Array]], dict[str, Array]],
    lengths: Sequence[int] | None = None,
    backend: str = "numba",
    seed: int = 0,
    prepare: Prepare | None = None,
) -> Report:
    """The same for any model in pulses.

    oracle   what whole inputs should give; raises InputError for lengths that it does not take
    prepare  as of ``compile_model``
    Raises   CompileError; PulsifyError where no length can be run
    """
    backends = tuple(dict.fromkeys(("numpy", backend)))
    programs = [compile_model(model, name, prepare=prepare) for name in backends]
    rng = np.random.default_rng(seed)
    ran: list[int] = []
    skipped: list[int] = []
    worst = 0.0
    for length in lengths if lengths is not None else default_lengths(model):
        feeds = random_feeds(model, length, rng)
        try:
            offline = oracle(feeds)
        except InputError:
            skipped.append(length)
            continue
        ran.append(length)
        for program in programs:
            error, agrees = _compare_outputs(program, feeds, offline)
            worst = max(worst, error)
            if not agrees:
                found = _first_divergence(program, feeds, offline, length)
                return Report(model, backends, tuple(ran), tuple(skipped), worst, found)
    if not ran:
        raise PulsifyError(
            f"the offline model runs at none of the lengths {skipped}; give lengths that it takes"
        )
    return Report(model, backends, tuple(ran), tuple(skipped), worst, None)


def default_lengths(model: PulsedModel) -> list[int]:
    """Shorter than a pulse, whole pulses, not a multiple, and long."""
    pulse = model.pulse
    shortest = _shortest(model)
    steps = {1, pulse // 2, pulse - 1, pulse, pulse + 1, 2 * pulse, 3 * pulse + pulse // 2, 8 * pulse + 1}
    found = sorted(
        {shortest, *(shortest + step for step in steps), *(step for step in steps if step >= shortest)}
    )
    if model.typed.scope.assumptions:
        return sorted({length + more for length in found for more in (0, 1)})
    return found


def _shortest(model: PulsedModel) -> int:
    """The first length at which every output has a frame."""
    ports = [port for port in model.outputs if port.streams]
    reached = [port for port in ports if port.length.eval({model.symbol: 1 << 40}) > 0]
    return max((reaching(port.length, 1, model.symbol) for port in reached), default=1)


def random_feeds(model: PulsedModel, length: int, rng: np.random.Generator) -> dict[str, Array]:
    """Random inputs for a stream of ``length`` frames: normal floats, integers 0 and 1."""
    feeds: dict[str, Array] = {}
    for port in model.inputs:
        shape = list(port.shape)
        if port.axis is not None:
            shape[port.axis] = max(0, port.length.eval({model.symbol: length}))
        if np.issubdtype(port.dtype, np.floating):
            feeds[port.name] = rng.standard_normal(shape).astype(port.dtype)
        else:
            feeds[port.name] = rng.integers(0, 2, shape).astype(port.dtype)
    return feeds


def _compare_outputs(
    program: Program, feeds: dict[str, Array], offline: dict[str, Array]
) -> tuple[float, bool]:
    results = streamed(program, feeds)
    worst, agrees = 0.0, True
    for name, expected in offline.items():
        got = results[name]
        agrees &= got.shape == expected.shape and close(got, expected)
        if got.shape == expected.shape and got.size:
            worst = max(worst, float(_difference(got, expected).max()))
    return worst, bool(agrees)


def close(got: Array, expected: Array) -> bool:
    """Equal within the law's tolerance; equal infinities and NaN of the model's own are equal."""
    if np.issubdtype(expected.dtype, np.inexact):
        return bool((_difference(got, expected) <= allowed(expected)).all())
    return bool(np.array_equal(got, expected))


def allowed(expected: Array, rtol: float = RTOL) -> Array:
    """How far each floating value may be off: ``rtol`` of it, and ``ATOL``."""
    size = np.abs(expected.astype(np.float64))
    return rtol * np.where(np.isfinite(size), size, 0.0) + ATOL


def _difference(got: Array, expected: Array) -> Array:
    with np.errstate(invalid="ignore"):
        difference = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    same = (got == expected) | (np.isnan(difference) & np.isnan(got) & np.isnan(expected))
    return np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference))


def _first_divergence(
    program: Program, feeds: dict[str, Array], offline: dict[str, Array], length: int
) -> Divergence:
    model = program.model
    placed = [(outlet, where) for outlet, where in model.wires.items()]
    traced = compile_model(model, program.backend, [where.outlet for _, where in placed])
    _, pulses = run_whole(begun(traced, feeds), feeds, np.nan)
    expected = model.typed.run(feeds, [outlet for outlet, _ in placed])
    for slot, (outlet, where) in enumerate(placed):
        name = model.typed.graph.label(outlet)
        got, wanted, first = _aligned(where, [pulse[slot] for pulse in pulses], expected[name])
        if not close(got, wanted):
            op = model.typed.graph.node(outlet).op.name
            return _divergence(name, op, length, program.backend, where.fact, got, wanted, first)
    results = streamed(program, feeds)
    for name, wanted in offline.items():
        got = results[name]
        if got.shape != wanted.shape:
            return Divergence(
                f"{name} (shape {got.shape}, offline {wanted.shape})",
                "output",
                length,
                program.backend,
                0,
                float(wanted.size),
                float(got.size),
            )
        if not close(got, wanted):
            port = model.port(name)
            return _divergence(name, "output", length, program.backend, port.axis, got, wanted, 0)
    raise AssertionError("the outputs differ, yet every wire and output agrees")


def _aligned(where: Placed, pulses: list[Array], offline: Array) -> tuple[Array, Array, int]:
    """The frames of a wire that were sent, the same frames offline, and the number of the first one."""
    stream = where.fact.stream
    if stream is None:
        return pulses[-1], offline, 0
    axis = stream.axis
    length = offline.shape[axis]
    if stream.rate == 0:
        return (
            frames_at(pulses[-1], axis, pulses[-1].shape[axis] - length, pulses[-1].shape[axis]),
            offline,
            0,
        )
    sent = np.concatenate(pulses, axis)
    first = stream.lead
    last = min(length, sent.shape[axis] - stream.offset)
    return (
        frames_at(sent, axis, first + stream.offset, max(first, last) + stream.offset),
        frames_at(offline, axis, first, max(first, last)),
        first,
    )


def _divergence(
    name: str,
    op: str,
    length: int,
    backend: str,
    where: "PulsedFact | int | None",
    got: Array,
    wanted: Array,
    first: int,
) -> Divergence:
    axis = where if where is None or isinstance(where, int) else where.stream.axis if where.stream else None
    if got.shape != wanted.shape:
        return Divergence(
            f"{name} (shape {got.shape}, offline {wanted.shape})", op, length, backend, first, 0, 0
        )
    difference: Any = _difference(got, wanted) - allowed(wanted)
    at = np.unravel_index(_first_along(difference > 0, axis), wanted.shape)
    frame = first + (int(at[axis]) if axis is not None else 0)
    return Divergence(name, op, length, backend, frame, float(wanted[at]), float(got[at]))


def _first_along(wrong: Array, axis: int | None) -> int:
    """The flat index of the first wrong element, earliest in time first."""
    if axis is None or not wrong.any():
        return int(np.argmax(wrong))
    moved = np.moveaxis(np.arange(wrong.size).reshape(wrong.shape), axis, 0)
    return int(moved[np.moveaxis(wrong, axis, 0)][0])
