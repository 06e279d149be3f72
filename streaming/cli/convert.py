"""pulse convert: what a model becomes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.cli import options
from streaming.cli.console import print_json, print_pairs, print_table, size
from streaming.cli.proof import USUAL, ProofOptions, end_with

if TYPE_CHECKING:
    from pulse.models import PulsedModel
    from streaming.cli.exporting import Exported

PORT_COLUMNS = ("name", "pulse", "axis", "delay", "rate", "length")


@options.takes(proof=ProofOptions, chunks=options.ChunkOptions)
def convert(
    model: options.ModelPath = None,
    pulse: options.Pulse = None,
    symbol: options.SymbolName = None,
    rate: options.Rate = None,
    inputs: options.Inputs = None,
    max_context: options.MaxContext = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write it as standard ONNX, everything it remembers as inputs and outputs.",
            show_default=False,
        ),
    ] = None,
    opset: Annotated[int, typer.Option("--opset", help="The version of ONNX that is written.")] = 17,
    check: Annotated[
        bool,
        typer.Option(
            "--check/--no-check",
            help="Run the written file pulse by pulse and compare it with the offline model, as pulse check does.",
        ),
    ] = True,
    json: options.AsJson = False,
    proof: ProofOptions = USUAL,
    chunks: options.ChunkOptions = options.NO_CHUNKS,
) -> None:
    """Show the pulsed form of a model: ports, delays, buffers and nodes; or write it as ONNX for any runtime.

    Exit code 1, and no file, if the written one does not give what the offline model gives; 3 if nothing was proved of
    some output.

    [bold]Examples[/bold]

      [cyan]pulse convert[/cyan]                                     the built-in model

      [cyan]pulse convert model.onnx --pulse 160[/cyan]

      [cyan]pulse convert model.onnx --input "x=1,80,T,f32"[/cyan]   name the time axis

      [cyan]pulse convert model.onnx --pulse 160 -o out.onnx[/cyan]  write it for onnxruntime and others
    """
    from streaming.cli.exporting import export
    from streaming.cli.model import open_model, port_row

    opened = open_model(model, symbol, inputs, rate, max_context, chunks, pulse)
    pulsed = opened.pulsed(pulse)
    written = None if output is None else export(opened, pulsed, output, opset, proof if check else None)
    buffers = pulsed.buffers()
    total = sum(count for _, _, count in buffers)
    nodes = _nodes(pulsed)
    delays = [opened.delay(port, pulsed.pulse) for port in pulsed.outputs if port.streams]
    if json:
        report: dict[str, Any] = {
            "model": opened.title,
            "symbol": pulsed.symbol.name,
            "rate_hz": opened.rate_hz,
            "rate_from": opened.rate_from,
            "pulse_frames": pulsed.pulse,
            "pulse_ms": opened.milliseconds(pulsed.pulse),
            "inputs": [port.as_dict() for port in pulsed.inputs],
            "outputs": [port.as_dict() for port in pulsed.outputs],
            "delays": delays,
            "chunks": None if pulsed.chunks is None else pulsed.chunks.as_dict(),
            "sizes": dict(pulsed.sizes),
            "buffers": [
                {"name": name, "op": op.name, "detail": op.detail(), "bytes": count}
                for name, op, count in buffers
            ],
            "buffer_bytes": total,
            "nodes": [dict(zip(("node", "op", "detail", "fact"), node)) for node in nodes],
        }
        if written is not None:
            report["written"] = written.as_dict()
        print_json(report)
        _end(written, output, json)
        return
    pairs = [
        ("model", opened.title),
        ("rate", opened.rate_text()),
        ("pulse", opened.pulse_text(pulsed.pulse)),
        *opened.model.detected(),
    ]
    pairs += [
        (f"delay of {port.name}", opened.delay_text(port, pulsed.pulse))
        for port in pulsed.outputs
        if port.streams
    ]
    if written is not None:
        print_pairs([*pairs, *written.pairs()])
        _end(written, output, json)
        return
    print_pairs(pairs)
    print_table("\ninputs", PORT_COLUMNS, [port_row(port) for port in pulsed.inputs])
    print_table("\noutputs", PORT_COLUMNS, [port_row(port) for port in pulsed.outputs])
    rows = [[name, op.name, op.detail(), size(count)] for name, op, count in buffers]
    print_table(f"\nbuffers, {size(total)}", ("name", "op", "detail", "size"), rows, right=(3,))
    print_table(f"\nnodes, {len(nodes)}", ("node", "op", "detail", "fact"), nodes)


def _end(written: "Exported | None", output: Path | None, json: bool) -> None:
    if written is not None and written.report is not None:
        end_with(written.report, json, f"; {output} is not written")


def _nodes(pulsed: "PulsedModel") -> list[list[str]]:
    rows: list[list[Any]] = []
    for node_id in pulsed.graph.order(pulsed.targets):
        node = pulsed.graph.nodes[node_id]
        facts = "; ".join(str(outlet.fact) for outlet in node.outputs)
        rows.append([node.name, node.op.name, node.op.detail(), facts])
    return rows
