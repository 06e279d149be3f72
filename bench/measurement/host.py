"""The machine and the versions that a run belongs to."""

import datetime
import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pulse.jit.processor import processor

PACKAGES = ("pulse-stream", "numpy", "numba", "onnx", "onnxruntime", "tract")
"""Packages whose versions are in the results."""
FEATURES = ("avx512f", "avx2", "neon")
"""Vector instructions of processors, the widest first."""


@dataclass(frozen=True)
class Host:
    """The machine and the date of a measurement.

    vectors  the widest vector instructions
    load     processes that were ready to run in the minute before, on average
    """

    date: str
    processor: str
    cores: int
    vectors: str
    system: str
    load: float
    python: str
    versions: dict[str, str]

    @classmethod
    def here(cls) -> "Host":
        """Return this machine, now."""
        features = processor().features.split(",")
        return cls(
            date=datetime.datetime.now(datetime.UTC).date().isoformat(),
            processor=_processor(),
            cores=os.cpu_count() or 1,
            vectors=next((name for name in FEATURES if f"+{name}" in features), "unknown"),
            system=f"{platform.system()} {platform.machine()}",
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0,
            python=platform.python_version(),
            versions={name: installed for name in PACKAGES if (installed := _version(name))},
        )

    def __str__(self) -> str:
        versions = ", ".join(f"{name} {installed}" for name, installed in self.versions.items())
        return (
            f"{self.date}, {self.processor} ({processor().name}), {self.cores} cores, {self.vectors}, {self.system}, "
            f"load {self.load:.1f} when it began, Python {self.python}, {versions}"
        )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
