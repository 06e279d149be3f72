"""The status of a fleet as a report."""

from typing import Any

from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, Table, Text, byte_size, field_values
from streaming.fleet.control import FleetStatus

SHOWN = 5
"""The number of problems that are shown."""


@record
class FleetReport(Report):
    """The report of ``pulse fleet``."""

    status: FleetStatus

    def sections(self) -> list[Section]:
        """Versions, workers, holders and problems."""
        status = self.status
        addresses = {each.id: each.address for each in status.nodes}
        shares = status.table.shares
        versions = [
            [
                name,
                f"{len(status.table.live(name))} of {status.wanted.get(name, 0)}",
                f"{each.least} to {each.most}",
                f"{shares.get(name, 0):.0%}",
                ", ".join(model.id for model in each.server.models),
            ]
            for name, each in status.table.deployments.items()
        ]
        workers: list[list[str]] = []
        for each in status.table.workers:
            worker = status.workers.get(each.name)
            figures = ["", ""] if worker is None else [str(worker.streams), f"{worker.filled:.0%}"]
            leaves = " (leaves)" if {each.name, each.node} & set(status.leaving) else ""
            workers.append(
                [each.name, each.phase + leaves, addresses.get(each.node, "gone"), each.url, *figures]
            )
        holders: list[list[str]] = []
        for each in status.table.holders:
            holder = status.holders.get(each.name)
            figures = ["", ""] if holder is None else [str(holder.checkpoints), byte_size(holder.held_bytes)]
            holders.append([each.name, addresses.get(each.node, "gone"), *figures])
        sections: list[Section] = [
            Pairs([("nodes", str(len(status.nodes))), ("workers lost so far", str(status.lost))]),
            Table(
                "versions",
                ["version", "live", "workers allowed", "of new streams", "models"],
                versions,
                right=[1, 2, 3],
            ),
            Table("workers", ["worker", "", "node", "address", "streams", "load"], workers, right=[4, 5]),
            Table("holders of checkpoints", ["holder", "node", "checkpoints", ""], holders, right=[2, 3]),
        ]
        sections += [
            Text(f"no node has CPUs for {count} more workers of version {version}", "yellow")
            for version, count in status.shortage.items()
        ]
        if len(status.nodes) < 2:
            sections.append(
                Text("one node: checkpoints survive the end of a worker, not that of the node", "yellow")
            )
        if status.problems:
            sections.append(
                Table("what went wrong last", [""], [[each] for each in status.problems[-SHOWN:]])
            )
        return sections

    def values(self) -> dict[str, Any]:
        """The status, with all settings but secrets."""
        status = self.status
        deployments = {
            name: {
                "weight": each.weight,
                "least": each.least,
                "most": each.most,
                "models": [model.id for model in each.server.models],
                "wanted": status.wanted.get(name, 0),
                "short": status.shortage.get(name, 0),
            }
            for name, each in status.table.deployments.items()
        }
        workers = [
            {**field_values(each), "status": status.workers.get(each.name)} for each in status.table.workers
        ]
        holders = [
            {**field_values(each), "status": status.holders.get(each.name)} for each in status.table.holders
        ]
        return {
            "number": status.table.number,
            "nodes": status.nodes,
            "versions": deployments,
            "workers": workers,
            "holders": holders,
            "leaving": status.leaving,
            "problems": status.problems,
            "lost": status.lost,
        }
