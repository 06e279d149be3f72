"""``python -m bench.live``: the latency of designs, and the blocks that they drop, while Python does other work.

Real PortAudio on a JACK server with a dummy driver, 10 ms blocks at 48 kHz, a model of about 1 ms per block.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table

import pulse
from bench.live.design import Design, Outcome, Setup
from bench.live.event_loop import run_loop, run_threads, run_tuned_loop
from bench.live.load import compute_and_collect, hold_the_lock
from bench.live.native import run_callback, run_plain_worker, run_worker
from bench.live.server import jack_server, portaudio
from bench.live.steal_monitor import StolenTime, monitor_steal_time
from bench.measurement.host import Host
from bench.measurement.timing import Percentiles, time_steps
from bench.models.amplifier import RATE_HZ, amplifier
from pulse.errors import InputError, PulseError
from pulse.program.program import Program

BLOCK_FRAMES = 480
"""Frames of a device block, and of a pulse."""

DESIGNS: Mapping[str, Design] = {
    "pulse": run_worker,
    "pulse-plain": run_plain_worker,
    "pulse-callback": run_callback,
    "asyncio": run_loop,
    "asyncio-threads": run_threads,
    "asyncio-tuned": run_tuned_loop,
}
"""The rows of the table."""
Load: TypeAlias = Callable[[], AbstractContextManager[None]]
Chosen = TypeVar("Chosen")

LOADS: Mapping[str, Load] = {
    "idle": nullcontext,
    "computes and collects": compute_and_collect,
    "sorts": hold_the_lock,
}
"""The other work of the Python process."""
COLUMNS = (
    *("p50 ms", "p99 ms", "p99.9 ms", "max ms", "late", "blocks", "dropped", "flagged"),
    *("taken ms", "p99.9 own", "max own", "late own"),
)
"""The heads of the columns with numbers."""
EXPLAINED = (
    "taken: the longest time that a thread of priority 98 which only sleeps was kept from a processor, so the machine "
    "or its host had it; own: without such time"
)
"""The legend below the table."""


def main() -> None:
    """Run every design under every load, one after the other, from sound coming in to sound going out."""
    parser = argparse.ArgumentParser(prog="python -m bench.live", description=main.__doc__)
    parser.add_argument("designs", nargs="*", help=f"of {', '.join(DESIGNS)}; all by default")
    parser.add_argument("--loads", help=f"of {', '.join(LOADS)}, with commas between them; all by default")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each design and load")
    parser.add_argument("--json", type=Path, help="write all figures")
    options = parser.parse_args()
    try:
        designs = _choose(DESIGNS, options.designs, "design")
        loads = _choose(LOADS, (options.loads or "").split(","), "load")
        run(designs, loads, options.seconds, options.json)
    except PulseError as error:
        parser.exit(1, f"{error}\n")


def _choose(all_of_them: Mapping[str, Chosen], names: Sequence[str], noun: str) -> dict[str, Chosen]:
    chosen_names = [name.strip() for name in names if name.strip()]
    unknown = [name for name in chosen_names if name not in all_of_them]
    if unknown:
        raise InputError(f"no {noun} is called {', '.join(unknown)}; choose from {', '.join(all_of_them)}")
    return {name: choice for name, choice in all_of_them.items() if name in (chosen_names or all_of_them)}


def run(
    designs: Mapping[str, Design], loads: Mapping[str, Load], seconds: float, target: Path | None = None
) -> None:
    """Run the designs under the loads, print the table, and write the figures."""
    host, console = Host.here(), Console(width=None if sys.stdout.isatty() else 170)
    program = pulse.stream(amplifier(), pulse=BLOCK_FRAMES)
    model = model_time(program)
    table = new_table(
        f"10 ms blocks, a model of {model.p50_us / 1e3:.2f} ms (p50): from callback entry to the result"
    )
    rows: list[dict[str, object]] = []
    with jack_server(RATE_HZ, BLOCK_FRAMES) as server, portaudio(server) as device:
        setup = Setup(program, device, RATE_HZ, BLOCK_FRAMES, seconds)
        for name, load, outcome, stolen in outcomes(designs, loads, setup):
            table.add_row(name, load, *cells(outcome, stolen))
            rows.append({"design": name, "load": load, **figures(outcome, stolen)})
    console.print(str(host), style="dim", highlight=False)
    console.print(table)
    console.print(EXPLAINED, highlight=False)
    if target is not None:
        results = {"host": str(host), "seconds": seconds, "model_p50_us": model.p50_us, "rows": rows}
        target.write_text(json.dumps(results, indent=1) + "\n")


def outcomes(
    designs: Mapping[str, Design], loads: Mapping[str, Load], setup: Setup
) -> Iterator[tuple[str, str, Outcome, StolenTime]]:
    """Yield load, design, outcome and stolen time of each design under each load, run in a separate thread."""
    for load, loaded in loads.items():
        for name, design in designs.items():
            with loaded(), ThreadPoolExecutor(1) as thread:
                with monitor_steal_time() as stolen:
                    outcome = thread.submit(design, setup).result()
                yield name, load, outcome, stolen


def model_time(program: Program) -> Percentiles:
    """Return the time of the model's steps alone."""
    (port,) = program.inputs
    state, x = program.spawn(), np.random.default_rng(0).standard_normal(port.shape).astype(np.float32)
    return Percentiles.of(time_steps(lambda: state.step(x), 300))


def new_table(title: str) -> Table:
    """Return an empty table with its columns."""
    table = Table(title=title)
    table.add_column("design")
    table.add_column("Python meanwhile")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    return table


def cells(outcome: Outcome, stolen: StolenTime) -> list[str]:
    """Return a row of the table."""
    summary = outcome.latency(StolenTime()).summary()
    compute_summary = None if stolen.spans is None else outcome.latency(stolen).summary()
    times = [summary.p50_us, summary.p99_us, summary.p999_us, summary.max_us]
    counts = [summary.missed, outcome.blocks, outcome.dropped, outcome.flagged]
    steal = (
        ["-"] * 4
        if compute_summary is None
        else [
            f"{stolen.longest_ns / 1e6:.1f}",
            f"{compute_summary.p999_us / 1e3:.2f}",
            f"{compute_summary.max_us / 1e3:.2f}",
            str(compute_summary.missed),
        ]
    )
    return [*(f"{us / 1e3:.2f}" for us in times), *map(str, counts), *steal]


def figures(outcome: Outcome, stolen: StolenTime) -> dict[str, object]:
    """Return the cells of a row as plain data, for JSON."""
    return {
        "blocks": outcome.blocks,
        "dropped": outcome.dropped,
        "flagged": outcome.flagged,
        "latency": outcome.latency(StolenTime()).as_dict(),
        "machine": None
        if stolen.spans is None
        else {"longest_us": stolen.longest_ns / 1e3, "latency_without": outcome.latency(stolen).as_dict()},
    }


if __name__ == "__main__":
    main()
