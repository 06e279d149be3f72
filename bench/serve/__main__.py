"""``python -m bench.serve``: streams that a server holds in real time, and the same with onnxruntime as its engine.

A server in a separate process, or one on each core; clients in another process, on the same cores. Streams are
*held* if 99 of 100 blocks are answered within the limit, from sending a block to the last output frame that needs it,
as the client sees it. CPU is the time of the server's process for each pulse that it has answered, and of the clients'
for each block; it depends less on the other load of the machine.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.measurement.host import Host
from bench.serve.clients import ClientRun, hold
from bench.serve.hosting import serve

MAX_DELAY_MS = 20.0
"""A server whose answers exceed this at the 99th percentile does not hold its streams."""
ENGINES = ("pulse", "onnxruntime")
"""The engines that run the model of a server."""


@dataclass(frozen=True)
class ServeRow:
    """The result of a run.

    servers  processes, each on its own core; 0: one on all cores
    pulses   answered pulses
    cpu_us   CPU time of the servers per pulse
    answer_p99_ms  p99 of the answers of the slowest server
    """

    model: str
    engine: str
    servers: int
    block_ms: float
    clients: ClientRun
    pulses: int
    cpu_us: float
    answer_p99_ms: float


@contextlib.contextmanager
def server(
    name: str, source: str | None, engine: str, streams: int, core: int | None
) -> Iterator[tuple[tuple[str, int], Connection]]:
    """Run a server in a separate process; yields its address and the pipe to it."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(name, source, engine, streams, core, theirs)
    )
    process.start()
    try:
        yield ours.recv(), ours
    finally:
        ours.send("end")
        process.join(10)
        process.kill()


def run(name: str, source: str | None, engine: str, streams: int, options: argparse.Namespace) -> ServeRow:
    """Return the result of one number of streams with one engine."""
    cores = list(islice(cycle(sorted(os.sched_getaffinity(0))), options.servers)) or [None]
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(server(name, source, engine, streams + 8, core)) for core in cores]
        time.sleep(0.5)
        statistics: list[list[dict[str, Any]]] = []

        def ask() -> None:
            for _, port in servers:
                port.send("figures")
            statistics.append([port.recv() for _, port in servers])

        addresses = [address for address, _ in servers]
        result = hold(
            addresses=addresses,
            model=name,
            streams=streams,
            seconds=options.seconds,
            block=options.block,
            rate_hz=16000,
            sample_format=options.format,
            begin=ask,
        )
        ask()
    before, after = statistics
    answers = [figures["times"]["answer_us"] for figures in after]
    pulses = sum(answer["count"] for answer in answers) - sum(
        figures["times"]["answer_us"]["count"] for figures in before
    )
    cpu_s = sum(figures["cpu_s"] for figures in after) - sum(figures["cpu_s"] for figures in before)
    p99_ms = max(answer["p99"] for answer in answers) / 1e3
    cpu_us = 1e6 * cpu_s / max(1, pulses)
    return ServeRow(
        model=name,
        engine=engine,
        servers=options.servers,
        block_ms=options.block / 16,
        clients=result,
        pulses=pulses,
        cpu_us=cpu_us,
        answer_p99_ms=p99_ms,
    )


def text(row: ServeRow, streams: int) -> str:
    """Return a result in one line."""
    clients = row.clients
    good = clients.p99_ms < MAX_DELAY_MS and not clients.late and clients.streams == streams
    return (
        f"{row.model:9} {row.engine:12} {streams:4} streams at {row.servers or 'one'} servers, {row.block_ms:5.1f} ms "
        f"blocks: p50 {clients.p50_ms:7.1f} p99 {clients.p99_ms:7.1f} max {clients.max_ms:7.1f} ms; "
        f"in the server p99 {row.answer_p99_ms:7.1f} ms; {clients.late} late, {clients.lost} lost; "
        f"{row.pulses} pulses, {row.cpu_us:6.1f} us CPU each, clients {clients.cpu_us:6.1f} us per block; "
        f"{'held' if good else 'not held'} {' '.join(clients.refused)}"
    )


def main() -> None:
    """Run the bench; print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gtcrn", type=Path, help="a recipe of GTCRN")
    parser.add_argument("--model", choices=("denoiser", "gtcrn"), default="denoiser")
    parser.add_argument("--behind", dest="engines", choices=ENGINES, action="append")
    parser.add_argument("--streams", type=int, nargs="+", default=[20])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--block", type=int, default=160, help="samples in each message")
    parser.add_argument("--format", choices=("f32", "pcm16"), default="pcm16")
    parser.add_argument(
        "--servers", type=int, default=0, help="processes, each on a core; 0: one on all cores"
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[ServeRow] = []
    for streams in options.streams:
        for engine in options.engines or ENGINES:
            source = str(options.gtcrn) if options.model == "gtcrn" else None
            row = run(options.model, source, engine, streams, options)
            rows.append(row)
            print(text(row, streams), flush=True)
    if options.json:
        results = {"host": asdict(Host.here()), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    sys.exit(main())
