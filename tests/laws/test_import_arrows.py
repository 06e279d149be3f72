"""Who may import whom: pulse knows no clock, no device, no thread, and all rooms stand in one order."""

import ast
from functools import cache
from pathlib import Path

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
ALLOWED = {
    "pulse/program/kernels/compiled.py": {
        "threading"
    },  # a lock: two threads may ask for one function at once
    "pulse/program/machine.py": {"time"},  # how long a tick of the cycle counter is
}
ROOMS = (
    "pulse.version",
    "pulse.printable",
    "pulse.wording",
    "pulse.errors",
    "pulse.uncopied",
    "pulse.collector",
    "pulse.budget",
    "pulse.plugins",
    "pulse.dim",
    "pulse.facts",
    "pulse.graph",
    "pulse.ops",  # and pulse.typed: the body of a scan or loop is a typed graph
    "pulse.tolerance",
    "pulse.dump",
    "pulse.patch",
    "pulse.substitution",
    "pulse.declutter",
    "pulse.infer",
    "pulse.model",
    "pulse.nhwc",
    "pulse.onnx",
    "pulse.onnx.rules",
    "pulse.onnx.operators",
    "pulse.onnx.read",
    "pulse.tflite",
    "pulse.tflite.operators",
    "pulse.tflite.model_ops",
    "pulse.tflite.reader",
    "pulse.pulsify",
    "pulse.program.kernels",
    "pulse.program",
    "pulse.costs.work",
    "pulse.costs.seconds",
    "pulse.proof",
    "pulse.accuracy",
    "pulse.chunks",
    "pulse.chain",
    "pulse.oracle",
    "pulse.onnx.write",
    "pulse.costs",
    "pulse.extend",
    "pulse.torch",
    "pulse.front",
    "pulse.recipes",
    "pulse.api",
    "pulse",
    "streaming.errors",
    "streaming.replacing",
    "streaming.part",
    "streaming.snapshot",
    "streaming.reblocking",
    "streaming.intake",
    "streaming.delivery",
    "streaming.session",
    "streaming",  # what the package gives: a session
    "streaming.events",
    "streaming.channels",
    "streaming.latency",
    "streaming.native",
    "streaming.terminal",
    "streaming.progress",
    "streaming.warming",
    "streaming.resampling",
    "streaming.rf64",
    "streaming.encodings",
    "streaming.sound_formats",
    "streaming.sound",
    "streaming.wav_stream",
    "streaming.audio",
    "streaming.frame_forms",
    "streaming.frames",
    "streaming.sound_streams",
    "streaming.source",
    "streaming.target",
    "streaming.files",
    "streaming.builtin",
    "streaming.realtime",
    "streaming.stats",
    "streaming.hosts",
    "streaming.hosts.portaudio",
    "streaming.hosts.usual",
    "streaming.live",
    "streaming.executor",
    "streaming.cli",
    "bench",
)
"""What a module imports stands above it, or beside it in its room."""
PACKAGES = {"pulse": True, "streaming": False, "bench": False}
"""Whether that holds only for what a module imports when it is imported itself: methods of pulse show the next step."""
OURS = {*PACKAGES, "tests", "demos"}


def imports(path: Path, at_once: bool) -> set[str]:
    """The modules that a file imports, and the names that it takes of them.

    at_once   only those that are imported with it: neither inside of functions nor for type checkers
    """
    names: set[str] = set()
    left: list[ast.AST] = [ast.parse(path.read_text())]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif not (at_once and is_later(node)):
            left.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))
    return names


def is_later(node: ast.AST) -> bool:
    """Whether the imports inside of a statement do not happen when its file is imported."""
    types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return types or isinstance(node, ast.FunctionDef)


@cache
def packages(name: str) -> set[str]:
    """A module and all packages that it is in."""
    return {name.rsplit(".", depth)[0] for depth in range(name.count(".") + 1)}


@cache
def room(name: str) -> int:
    """The place in ``ROOMS`` of a module, or of what is imported from one."""
    name = name.replace("pulse.typed", "pulse.ops")
    inside = [place for place, other in enumerate(ROOMS) if other in packages(name)]
    return max(inside, key=lambda place: len(ROOMS[place]), default=len(ROOMS))


def test_pulse_knows_no_time() -> None:
    files = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "pulse").rglob("*.py")}
    assert files
    for name, path in files.items():
        found = {package for module in imports(path, False) for package in packages(module)}
        assert found & TIME <= ALLOWED.get(name, set()), name


def test_no_arrow_points_back() -> None:
    wrong: list[str] = []
    for package, at_once in PACKAGES.items():
        for path in (ROOT / package).rglob("*.py"):
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            others = {name for name in imports(path, at_once) if name.split(".")[0] in OURS}
            wrong += [f"{module} imports {other}" for other in sorted(others) if room(other) > room(module)]
    assert not wrong


def test_every_module_has_a_room() -> None:
    for package in ("pulse", "streaming"):
        found = {f"{package}.{path.stem}" for path in (ROOT / package).iterdir() if path.name[0] not in "_."}
        assert found - {f"{package}.py"} <= {*ROOMS, "pulse.typed"}
