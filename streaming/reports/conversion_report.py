"""A description of a model in pulses: ports, delays, buffers and nodes."""

from typing import Any

from pulse.interface import Port
from pulse.models import PulsedModel
from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, Table, byte_size
from streaming.opening.opened_model import OpenedModel
from streaming.reports.exporting import ExportedFile

PORT_COLUMNS = ("name", "pulse", "axis", "delay", "rate", "length")
NODE_COLUMNS = ("node", "op", "detail", "fact")


@record
class ConversionReport(Report):
    """A model in pulses, and the file written from it; None if there is none."""

    opened: OpenedModel
    pulsed: PulsedModel
    written: ExportedFile | None = None

    def sections(self) -> list[Section]:
        """Return all sections; if a file was written, its summary in place of the tables."""
        opened, pulsed = self.opened, self.pulsed
        pairs = [("model", opened.title), *opened.pairs(pulsed), *opened.delay_pairs(pulsed)]
        if self.written is not None:
            proof = self.written.proof
            return [Pairs([*pairs, *self.written.pairs()]), *([] if proof is None else proof.verdict())]
        buffers, nodes = pulsed.buffers(), self._nodes()
        sizes = [[name, op.name, op.detail(), byte_size(count)] for name, op, count in buffers]
        total = byte_size(sum(count for _, _, count in buffers))
        return [
            Pairs(pairs),
            Table("inputs", PORT_COLUMNS, [_port_row(port) for port in pulsed.inputs]),
            Table("outputs", PORT_COLUMNS, [_port_row(port) for port in pulsed.outputs]),
            Table(f"buffers, {total}", ("name", "op", "detail", "size"), sizes, right=(3,)),
            Table(f"nodes, {len(nodes)}", NODE_COLUMNS, nodes),
        ]

    def values(self) -> dict[str, Any]:
        buffers = self.pulsed.buffers()
        return {
            **self.opened.as_dict(self.pulsed),
            "symbol": self.pulsed.symbol.name,
            "inputs": self.pulsed.inputs,
            "outputs": self.pulsed.outputs,
            "buffers": [
                {"name": name, "op": op.name, "detail": op.detail(), "bytes": count}
                for name, op, count in buffers
            ],
            "buffer_bytes": sum(count for _, _, count in buffers),
            "nodes": [dict(zip(NODE_COLUMNS, node)) for node in self._nodes()],
            **({} if self.written is None else {"written": self.written}),
        }

    def _nodes(self) -> list[list[str]]:
        graph = self.pulsed.graph
        nodes = (graph.nodes[node_id] for node_id in graph.order(self.pulsed.targets))
        return [
            [
                node.name,
                node.op.name,
                node.op.detail(),
                "; ".join(str(outlet.fact) for outlet in node.outputs),
            ]
            for node in nodes
        ]


def _port_row(port: Port) -> list[str]:
    if port.axis is None:
        return [port.name, port.type_text, "no stream", "", "", ""]
    if not port.streams:
        return [port.name, port.type_text, str(port.axis), "at the end", "0", str(port.length)]
    return [port.name, port.type_text, str(port.axis), str(port.delay), str(port.rate), str(port.length)]
