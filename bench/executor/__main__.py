"""``python -m bench.executor``: the cost of the executor in addition to the model, and the memory of a long file."""

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import anyio
from rich.console import Console
from rich.table import Table

from bench.executor.long_file import MINUTES, peak_memory, stream_long_file
from bench.executor.overhead import LOADS, LOOPS, MODELS, PERIOD_S, SOURCES, overhead
from bench.executor.thread_hop import bare_hop_us
from bench.measurement.host import Host
from streaming.realtime.rights import status_field


def main() -> None:
    """Measure each setting, one after the other, and print tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.executor", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each row")
    parser.add_argument("--json", type=Path, help="write all figures")
    parser.add_argument("--long-file", type=int, metavar="MINUTES", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.long_file is not None:
        with tempfile.TemporaryDirectory() as folder:
            anyio.run(stream_long_file, options.long_file, Path(folder))
        print(
            int(status_field("VmHWM").removesuffix(" kB")) / 1024
        )  # ``ru_maxrss`` is never below that of the parent
        return
    host, console = Host.here(), Console(width=None if sys.stdout.isatty() else 120)
    table = Table(title="Executor: microseconds per pulse")
    for column in (
        "model",
        "source",
        "loop",
        "load",
        "model",
        "overhead",
        "waiting",
        "total",
        "p99",
        "loop",
    ):
        table.add_column(column, justify="left" if len(table.columns) < 4 else "right")
    rows = [
        overhead(model, source, loop, load, options.seconds)
        for model in MODELS
        for source in SOURCES
        for loop in LOOPS
        for load in LOADS
    ]
    for row in rows:
        names, times = list(asdict(row).values())[:4], list(asdict(row).values())[4:]
        table.add_row(*names, *(f"{value:.0f}" for value in times))
    console.print(str(host), style="dim", highlight=False)
    console.print(table)
    hops = {loop: anyio.run(bare_hop_us, 200, PERIOD_S, backend=loop) for loop in LOOPS}
    for loop, us in hops.items():
        console.print(f"a bare hop from {loop} to a thread and back, every 10 ms: {us:.0f} us")
    memories = {minutes: peak_memory(minutes) for minutes in MINUTES}
    for minutes, (mib, seconds) in memories.items():
        console.print(f"a file of {minutes} min: {mib:.0f} MiB at most, {seconds:.1f} s")
    if options.json is not None:
        figures = {
            "host": asdict(host),
            "rows": [asdict(row) for row in rows],
            "hop_us": hops,
            "memory_mib": memories,
        }
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
