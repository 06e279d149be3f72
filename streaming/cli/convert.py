"""pulse convert: what a model becomes."""

from typing import TYPE_CHECKING, Any

from streaming.cli import options
from streaming.cli.console import print_json, print_pairs, print_table, size

if TYPE_CHECKING:
    from pulse.pulsify.model import PulsedModel

PORT_COLUMNS = ("name", "pulse", "axis", "delay", "rate", "length")


def convert(
    model: options.ModelPath = None,
    pulse: options.Pulse = None,
    symbol: options.SymbolName = None,
    rate: options.Rate = None,
    inputs: options.Inputs = None,
    max_context: options.MaxContext = None,
    json: options.AsJson = False,
) -> None:
    """Show the pulsed form of a model: ports, delays, buffers and nodes.

    [bold]Examples[/bold]

      [cyan]pulse convert[/cyan]                                     the built-in model

      [cyan]pulse convert model.onnx --pulse 160[/cyan]

      [cyan]pulse convert model.onnx --input "x=1,80,T,f32"[/cyan]   name the time axis
    """
    from streaming.cli.model import open_model, port_row

    opened = open_model(model, symbol, inputs, rate, max_context)
    pulsed = opened.pulsed(pulse)
    buffers = pulsed.buffers()
    total = sum(count for _, _, count in buffers)
    nodes = _nodes(pulsed)
    delays = [opened.delay(port, pulsed.pulse) for port in pulsed.outputs if port.streams]
    if json:
        report = {
            "model": opened.title,
            "symbol": pulsed.symbol.name,
            "rate_hz": opened.rate_hz,
            "rate_from": opened.rate_from,
            "pulse_frames": pulsed.pulse,
            "pulse_ms": opened.milliseconds(pulsed.pulse),
            "inputs": [port.as_dict() for port in pulsed.inputs],
            "outputs": [port.as_dict() for port in pulsed.outputs],
            "delays": delays,
            "buffers": [
                {"name": name, "op": op.name, "detail": op.detail(), "bytes": count}
                for name, op, count in buffers
            ],
            "buffer_bytes": total,
            "nodes": [dict(zip(("node", "op", "detail", "fact"), node)) for node in nodes],
        }
        print_json(report)
        return
    pairs = [
        ("model", opened.title),
        ("rate", opened.rate_text()),
        ("pulse", opened.pulse_text(pulsed.pulse)),
    ]
    pairs += [
        (f"delay of {port.name}", opened.delay_text(port, pulsed.pulse))
        for port in pulsed.outputs
        if port.streams
    ]
    print_pairs(pairs)
    print_table("\ninputs", PORT_COLUMNS, [port_row(port) for port in pulsed.inputs])
    print_table("\noutputs", PORT_COLUMNS, [port_row(port) for port in pulsed.outputs])
    rows = [[name, op.name, op.detail(), size(count)] for name, op, count in buffers]
    print_table(f"\nbuffers, {size(total)}", ("name", "op", "detail", "size"), rows, right=(3,))
    print_table(f"\nnodes, {len(nodes)}", ("node", "op", "detail", "fact"), nodes)


def _nodes(pulsed: "PulsedModel") -> list[list[str]]:
    rows: list[list[Any]] = []
    for node_id in pulsed.graph.order():
        node = pulsed.graph.nodes[node_id]
        facts = "; ".join(str(outlet.fact) for outlet in node.outputs)
        rows.append([node.name, node.op.name, node.op.detail(), facts])
    return rows
