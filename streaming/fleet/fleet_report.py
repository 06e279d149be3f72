"""The status of a fleet as a report."""

from collections.abc import Mapping, Sequence
from typing import Any

from pulse.support.record import record
from pulse.support.report import Pairs, Report, Section, Table, Text, byte_size, field_values
from pulse.support.wording import count_of
from streaming.fleet.fleet_control import FleetStatus

MAX_SHOWN_PROBLEMS = 5
"""Older problems are not shown."""


@record
class FleetReport(Report):
    """The report of ``pulse fleet``."""

    status: FleetStatus

    def sections(self) -> list[Section]:
        """Return versions, workers, holders and problems."""
        status = self.status
        sections: list[Section] = [
            Pairs([("machines", str(len(status.nodes))), ("workers lost so far", str(status.lost))]),
            self._versions(),
            self._workers(),
            self._holders(),
        ]
        sections += [
            Text(f"no machine has CPUs for {count_of(count, 'more worker')} of version {version}", "yellow")
            for version, count in status.shortage.items()
        ]
        if len(status.nodes) < 2:
            sections.append(
                Text("one machine: checkpoints survive the end of a worker, not of the machine", "yellow")
            )
        if status.problems:
            rows = [[problem] for problem in status.problems[-MAX_SHOWN_PROBLEMS:]]
            sections.append(Table("last problem", [""], rows))
        return sections

    def _versions(self) -> Table:
        table = self.status.table
        shares = table.shares
        rows = [
            [
                name,
                f"{len(table.live_workers(name))} of {self.status.wanted.get(name, 0)}",
                f"{deployment.min_workers} to {deployment.max_workers}",
                f"{shares.get(name, 0):.0%}",
                ", ".join(model.id for model in deployment.server.models),
            ]
            for name, deployment in table.deployments.items()
        ]
        titles = ["version", "live", "workers allowed", "of new streams", "models"]
        return Table("versions", titles, rows, right=[1, 2, 3])

    def _workers(self) -> Table:
        rows: list[list[str]] = []
        for entry in self.status.table.workers:
            worker = self.status.workers.get(entry.name)
            figures = ["", ""] if worker is None else [str(worker.streams), f"{worker.filled:.0%}"]
            leaves = " (leaves)" if {entry.name, entry.node} & set(self.status.table.leaving) else ""
            rows.append([entry.name, entry.phase + leaves, self._address(entry.node), entry.url, *figures])
        return Table("workers", ["worker", "", "machine", "address", "streams", "load"], rows, right=[4, 5])

    def _holders(self) -> Table:
        rows: list[list[str]] = []
        for entry in self.status.table.holders:
            holder = self.status.holders.get(entry.name)
            figures = ["", ""] if holder is None else [str(holder.checkpoints), byte_size(holder.held_bytes)]
            rows.append([entry.name, self._address(entry.node), *figures])
        return Table("holders of checkpoints", ["holder", "machine", "checkpoints", ""], rows, right=[2, 3])

    def _address(self, node: str) -> str:
        return next((known.address for known in self.status.nodes if known.id == node), "gone")

    def values(self) -> dict[str, Any]:
        """Return the status, with all settings but secrets."""
        status = self.status
        deployments = {
            name: {
                "weight": deployment.weight,
                "min_workers": deployment.min_workers,
                "max_workers": deployment.max_workers,
                "models": [model.id for model in deployment.server.models],
                "wanted": status.wanted.get(name, 0),
                "short": status.shortage.get(name, 0),
            }
            for name, deployment in status.table.deployments.items()
        }
        return {
            "number": status.table.number,
            "nodes": status.nodes,
            "versions": deployments,
            "workers": _members(status.table.workers, status.workers),
            "holders": _members(status.table.holders, status.holders),
            "leaving": status.table.leaving,
            "problems": status.problems,
            "lost": status.lost,
        }


def _members(entries: Sequence[Any], statuses: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**field_values(entry), "status": statuses.get(entry.name)} for entry in entries]
