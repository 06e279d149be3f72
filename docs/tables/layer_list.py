"""The layers of the modules, which ARCHITECTURE.md draws and ``tests/invariants/test_import_arrows.py`` proves."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("pulse", "streaming", "bench")
LAYERS: Mapping[str, str] = {
    "base": "pulse: version errors support",
    "jit": "pulse: jit",
    "dims": "pulse: dim",
    "graphs": "pulse: facts interface metadata graph text",
    "operators": "pulse: ops rounding typed wiring patch substitution",
    "passes": "pulse: declutter pulsify chunks",
    "readers": "pulse: infer onnx tflite nnef",
    "kernels": "pulse.program: table kernels step_builder",
    "lowering": "pulse.program: spectral_basis weights lowering lower step",
    "machine": "pulse.program: machine streams",
    "programs": "pulse: program",
    "proofs": "pulse: proof accuracy runtimes",
    "models": "pulse: models",
    "sources": "pulse: build front chains loading recipes tensorflow",
    "api": "pulse: costs extend torch c_library formats api __init__",
    "tools": "streaming: errors files terminal latency",
    "sessions": "streaming: snapshot blocks session __init__",
    "native": "streaming: native compilation libraries",
    "audio": "streaming: audio events routing",
    "devices": "streaming: realtime hosts",
    "live": "streaming: stats policies live virtual executor",
    "reports": "streaming: builtin opening reports",
    "deploy": "streaming: deploy",
    "serving": "streaming: protocol client serve",
    "fleets": "streaming: fleet",
    "client": "pulse: client",
    "commands": "streaming: cli",
    "bench": "bench: __init__",
}
"""From the bottom to the top: a package, and its modules in the layer; ``__init__`` is the package itself."""


def modules(root: Path = ROOT, packages: tuple[str, ...] = PACKAGES) -> dict[str, Path]:
    """Return the name and file of each module."""
    paths = [path for package in packages for path in (root / package).rglob("*.py")]
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }


@cache
def packages_of(name: str) -> tuple[str, ...]:
    """Return a module or name, and all packages that contain it, from the inside out."""
    return tuple(name.rsplit(".", depth)[0] for depth in range(name.count(".") + 1))


def members(layer: str) -> list[str]:
    """Return the modules and packages of a layer."""
    package, _, names = LAYERS[layer].partition(": ")
    return [package if name == "__init__" else f"{package}.{name}" for name in names.split()]


@cache
def layer_of(module: str) -> str:
    """Return the layer that names the module, or else the nearest package that contains it."""
    named = {member: layer for layer in LAYERS for member in members(layer)}
    return next(named[package] for package in packages_of(module) if package in named)
