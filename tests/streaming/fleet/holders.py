"""Holders of checkpoints that can be lost."""

from typing import Any

from streaming.fleet.fleet_table import HolderEntry
from streaming.fleet.holder import CheckpointHolder


class LocalHolders:
    """Holders in this process, ``holder-a`` of the node a; those in ``lost`` do not answer."""

    def __init__(self, nodes: str, limit_bytes: int = 1 << 24) -> None:
        self.holders = {f"holder-{node}": CheckpointHolder(limit_bytes) for node in nodes}
        self.entries = tuple(HolderEntry(f"holder-{node}", node) for node in nodes)
        self.lost = set()

    def ask(self, names: list[str], method: str, *arguments: bytes | float | str) -> dict[str, Any]:
        return {
            name: getattr(self.holders[name], method)(*arguments) for name in names if name not in self.lost
        }

    def holders_with(self, name: str) -> set[str]:
        """The names of holders that have this checkpoint."""
        return {holder_name for holder_name, holder in self.holders.items() if holder.load(name) is not None}
