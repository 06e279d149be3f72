"""pulse bench: how long a step takes, and where the time goes."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.cli import options
from streaming.cli.console import duration, print_json, print_pairs, print_table, stdout
from streaming.cli.profile_report import as_dict, print_profile
from streaming.progress import progress

if TYPE_CHECKING:
    from pulse.facts import Array
    from pulse.program.profile import Profile
    from pulse.program.program import Program
    from pulse.pulsify.network import Port
    from streaming.latency import Latency

WARM_UP_STEPS = 50
PROFILE_STEPS = 200
BAR = 40


@options.takes_chunks
def bench(
    model: options.ModelPath = None,
    pulse: options.Pulse = None,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps in each round.")] = 1000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds; each starts a new stream.")] = 3,
    symbol: options.SymbolName = None,
    rate: options.Rate = None,
    inputs: options.Inputs = None,
    max_context: options.MaxContext = None,
    backend: options.Backend = "numba",
    weights: options.Weights = "f32",
    every: Annotated[
        bool, typer.Option("--profile", help="The cost of each node and instruction too.")
    ] = False,
    json: options.AsJson = False,
    chunks: options.ChunkOptions = options.NO_CHUNKS,
) -> None:
    """RealtimeSetting the latency of every step on noise: percentiles, a histogram, and what each kind of op costs.

    [bold]Examples[/bold]

      [cyan]pulse bench[/cyan]                                         the built-in model

      [cyan]pulse bench model.onnx --pulse 160 --rate 48000[/cyan]     with the deadline that this rate sets

      [cyan]pulse bench model.onnx --profile[/cyan]                    with every node and instruction
    """
    from streaming.cli.model import backend_text, compile_model, open_model
    from streaming.latency import Latency

    opened = open_model(model, symbol, inputs, rate, max_context, chunks, pulse)
    program = compile_model(opened.pulsed(pulse), backend, weights)
    deadline_s = None if opened.rate_hz is None else program.pulse / opened.rate_hz
    each = [Latency(deadline_s) for _ in range(rounds)]
    with progress(f"{rounds} rounds of {steps} steps") as advance:
        for number, latency in enumerate(each):
            _measure(program, steps, latency)
            advance(number + 1, rounds)
    latency = Latency(deadline_s)
    for part in each:
        latency.merge(part)
    profile = _profile(program)
    if json:
        report: dict[str, Any] = {
            "model": opened.title,
            "backend": program.backend,
            "weights": program.form,
            "pulse_frames": program.pulse,
            "pulse_ms": opened.milliseconds(program.pulse),
            "rate_hz": opened.rate_hz,
            "rate_from": opened.rate_from,
            "sizes": dict(program.model.sizes),
            "steps": steps,
            "rounds": [part.as_dict() for part in each],
            "latency": latency.as_dict(),
            "p999_over_p50": latency.percentile_s(99.9) / latency.percentile_s(50),
            "histogram": [
                {"from_s": low, "to_s": high, "count": count} for low, high, count in latency.histogram()
            ],
            **({"profile": None} if profile is None else as_dict(profile)),
        }
        print_json(report)
        return
    pairs = [("model", f"{opened.title}, {backend_text(program)}"), ("rate", opened.rate_text())]
    pairs.append(("pulse", opened.pulse_text(program.pulse)))
    pairs += opened.model.detected()
    if deadline_s is not None:
        missed = f"missed by {latency.missed} of {latency.count}"
        share = latency.percentile_s(99) / deadline_s
        pairs.append(("deadline", f"{duration(deadline_s)}, {missed}; p99 is {share:.1%} of it"))
    print_pairs(pairs)
    _print_rounds(each, latency)
    _print_histogram(latency)
    if profile is None:
        stdout().print(
            f"\nno profile: the {program.backend} backend has no instructions; use --backend numba",
            style="dim",
        )
        return
    print_profile(profile, every)


def _measure(program: "Program", steps: int, latency: "Latency") -> None:
    import time

    import numpy as np

    rng = np.random.default_rng(0)
    state = program.spawn({port.name: _noise(port, rng) for port in program.inputs if not port.streams})
    feeds = [{port.name: _noise(port, rng) for port in program.inputs if port.streams} for _ in range(8)]
    for number in range(WARM_UP_STEPS):
        state.step(feeds[number % len(feeds)])
    for number in range(steps):
        feed = feeds[number % len(feeds)]
        started = time.perf_counter_ns()
        state.step(feed)
        latency.record_ns(time.perf_counter_ns() - started)


def _noise(port: "Port", rng: Any) -> "Array":
    import numpy as np

    if np.issubdtype(port.dtype, np.floating):
        return (0.1 * rng.standard_normal(port.shape)).astype(port.dtype)
    return rng.integers(0, 2, port.shape).astype(port.dtype)


def _profile(program: "Program") -> "Profile | None":
    """Where the time goes; None where the backend has no instructions."""
    import numpy as np

    rng = np.random.default_rng(0)
    state: Any = program.spawn({port.name: _noise(port, rng) for port in program.inputs if not port.streams})
    return state.profile(PROFILE_STEPS) if hasattr(state, "profile") else None


def _print_rounds(each: "list[Latency]", total: "Latency") -> None:
    columns = ("", "p50", "p90", "p99", "p99.9", "max", "mean", "p99.9/p50")
    rows: list[list[str]] = []
    for name, latency in (
        *((f"round {number + 1}", part) for number, part in enumerate(each)),
        ("all", total),
    ):
        found = latency.summary()
        times = found.p50_us, found.p90_us, found.p99_us, found.p999_us, found.max_us, found.mean_us
        ratio = f"{found.p999_us / found.p50_us:.2f}"
        rows.append([name, *(duration(time_us / 1e6) for time_us in times), ratio])
    print_table("\nlatency of a step", columns, rows, right=range(1, 8))


def _print_histogram(latency: "Latency") -> None:
    rows = latency.histogram()
    most = max((count for _, _, count in rows), default=1)
    out = stdout()
    out.print("\nhistogram", style="bold")
    for low, high, count in rows:
        bar = "█" * -(-count * BAR // most)
        out.print(f"{duration(low):>10} .. {duration(high):>10}  {count:>8}  {bar}")
