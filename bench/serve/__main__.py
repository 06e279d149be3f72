"""``python -m bench.serve``: streams that a server holds in real time, and the same with onnxruntime behind it.

A server in a process of its own, clients in another one, on the same cores. Streams are *held* if 99 of 100 blocks are
answered within the limit, from sending a block to the last output frame that needs it, as the client sees it. CPU is
the time of the server's process for each pulse that it has answered; it depends less on what else the machine runs.
"""

import argparse
import contextlib
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from bench.host import Host
from bench.serve.clients import Held, hold
from bench.serve.hosting import serve

LIMIT_MS = 20.0
BEHIND = ("pulse", "onnxruntime")


@dataclass(frozen=True)
class Row:
    """A run.

    pulses  answered
    cpu_us  what the server's process took for each of them
    """

    model: str
    behind: str
    block_ms: float
    held: Held
    pulses: int
    cpu_us: float
    answer_p99_ms: float


@contextlib.contextmanager
def server(
    name: str, source: str | None, behind: str, streams: int
) -> Iterator[tuple[tuple[str, int], Connection]]:
    """A server process, and the end of the pipe that asks it."""
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(name, source, behind, streams, theirs)
    )
    process.start()
    try:
        yield ours.recv(), ours
    finally:
        ours.send("end")
        process.join(10)
        process.kill()


def run(
    name: str, source: str | None, behind: str, streams: int, seconds: float, block: int, form: str
) -> Row:
    """One run."""
    with server(name, source, behind, streams + 8) as (address, port):
        time.sleep(0.5)
        result = hold(address, name, streams, seconds, block, 16000, form)
        port.send("figures")
        figures = port.recv()
    answer = figures["times"]["answer_us"]
    pulses = answer["count"]
    return Row(
        name, behind, block / 16, result, pulses, 1e6 * figures["cpu_s"] / max(1, pulses), answer["p99"] / 1e3
    )


def text(row: Row, streams: int) -> str:
    """A run in one line."""
    clients = row.held
    good = clients.p99_ms < LIMIT_MS and not clients.late and clients.streams == streams
    return (
        f"{row.model:9} {row.behind:12} {streams:4} streams, {row.block_ms:5.1f} ms blocks: p50 {clients.p50_ms:7.1f} "
        f"p99 {clients.p99_ms:7.1f} max {clients.max_ms:7.1f} ms; in the server p99 {row.answer_p99_ms:7.1f} ms; "
        f"{clients.late} late, {clients.lost} lost; {row.pulses} pulses, {row.cpu_us:6.1f} us CPU each; "
        f"{'held' if good else 'not held'} {' '.join(clients.refused)}"
    )


def main() -> None:
    """Runs, as a table and as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gtcrn", type=Path, help="a recipe of GTCRN")
    parser.add_argument("--model", choices=("denoiser", "gtcrn"), default="denoiser")
    parser.add_argument("--behind", choices=BEHIND, action="append")
    parser.add_argument("--streams", type=int, nargs="+", default=[20])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--block", type=int, default=160, help="samples in each message")
    parser.add_argument("--format", choices=("f32", "pcm16"), default="pcm16")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[Row] = []
    for streams in given.streams:
        for behind in given.behind or BEHIND:
            source = str(given.gtcrn) if given.model == "gtcrn" else None
            row = run(given.model, source, behind, streams, given.seconds, given.block, given.format)
            rows.append(row)
            print(text(row, streams), flush=True)
    if given.json:
        results = {"host": asdict(Host.here()), "rows": [asdict(row) for row in rows]}
        given.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    sys.exit(main())
