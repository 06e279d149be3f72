"""Who may import whom: pulse knows no clock, no device, no thread; ops know no stage after them."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TIME = {
    "streaming",
    "sounddevice",
    "anyio",
    "trio",
    "asyncio",
    "threading",
    "multiprocessing",
    "queue",
    "time",
    "sched",
}
LATER = {"pulse.proof", "pulse.pulsify", "pulse.program", "pulse.onnx", "pulse.declutter", "pulse.api", "pulse.model"}
ALLOWED = {
    "pulse/program/kernels/registry.py": {"threading"},  # a lock: two threads may ask for one kernel at once
    "pulse/program/machine.py": {"time"},  # how long a tick of the cycle counter is
}
ARROWS = {"pulse": TIME, "pulse/ops": LATER, "pulse/dim": LATER | {"pulse.ops", "pulse.graph", "pulse.facts"}}


def imported(path: Path) -> set[str]:
    """The modules that a file imports anywhere in it, with all packages they are in."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {".".join(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 2)}


@pytest.mark.parametrize(("room", "forbidden"), ARROWS.items())
def test_no_arrow_points_back(room: str, forbidden: set[str]) -> None:
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    named = {path.relative_to(ROOT).as_posix(): imported(path) & forbidden for path in files}
    wrong = {name: sorted(found - ALLOWED.get(name, set())) for name, found in named.items()}
    assert not {path: names for path, names in wrong.items() if names}
