"""Builds a wheel with the libraries that are built, and tries it in a new environment: its size, its first run."""

import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
LARGEST_MB = 25
SLOWEST = 1.2
"""A first run beside later ones."""
LATER = 5


def main() -> None:
    """Fail where the wheel is too large, compiles anything, or its first run is slower than later ones."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip"]
        subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", name, str(ROOT)], check=True)
        (wheel,) = folder.glob("*.whl")
        size_mb = wheel.stat().st_size / 1e6
        venv.create(folder / "env", with_pip=True)
        # As a user's pip: it compiles all modules, to where the user's Python looks for them.
        usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        install = [folder / "env" / "bin" / "pip", "install", "-q", str(wheel)]
        subprocess.run(install, check=True, env=usual)
        runs = [seconds_of_a_run(folder) for _ in range(1 + LATER)]
        first, later = runs[0], [statistics.median(times) for times in zip(*runs[1:])]
        compiled = sorted(path.name for path in (folder / "kernels").rglob("*.kernel"))
    print(
        f"{wheel.name}: {size_mb:.1f} MB; pulse run: first {first[0]:.2f} s ({first[1]:.2f} s of CPU), "
        f"later {later[0]:.2f} s ({later[1]:.2f} s)"
    )
    assert size_mb < LARGEST_MB
    assert not compiled, f"compiled: {compiled}; build the libraries first: python -m streaming.libraries"
    # Of wall time and CPU time, the one that others on the machine disturb less.
    assert min(one / of_later for one, of_later in zip(first, later)) <= SLOWEST


def seconds_of_a_run(folder: Path) -> tuple[float, float]:
    """Of the clock and of the CPU, for the built-in sound through the built-in model."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PULSE_CACHE": str(folder / "kernels"),
    }
    before, started = os.times(), time.perf_counter()
    command = [folder / "env" / "bin" / "pulse", "run"]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    elapsed, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return elapsed, cpu


if __name__ == "__main__":
    main()
