"""Builds a wheel with the libraries and the program that are built, and tries it in a new environment.

Its size is printed, and how long its first run ever takes beside the next one. Each round installs the wheel again,
and begins without the files that a run leaves behind.
"""

import os
import shutil
import statistics
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
CARRIED = ("pulse/jit/libraries/index.json", "streaming/builtin/denoise.json")
LARGEST_MB = 25
SLOWEST = 1.2
"""A first run beside the next one."""
ROUNDS = 7


def main() -> None:
    """Fail where the wheel is too large, lacks something or compiles, or its first run is slower than the next one."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        pip = [sys.executable, "-m", "pip"]
        subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", name, str(ROOT)], check=True)
        (wheel,) = folder.glob("*.whl")
        size_mb = wheel.stat().st_size / 1e6
        missing = set(CARRIED) - set(zipfile.ZipFile(wheel).namelist())
        assert not missing, f"missing in the wheel: {missing}; .ci/wheel builds them first"
        venv.create(folder / "env", with_pip=True)
        install(folder, [str(wheel)])
        first, second = list[tuple[float, float]](), list[tuple[float, float]]()
        for number in range(ROUNDS):
            if number:
                install(folder, ["--force-reinstall", "--no-deps", str(wheel)])
            shutil.rmtree(folder / "home", ignore_errors=True)
            (folder / "home").mkdir()
            first.append(seconds_of_a_run(folder / "env", folder / "home"))
            second.append(seconds_of_a_run(folder / "env", folder / "home"))
        compiled = sorted(path.name for path in (folder / "home").rglob("*.kernel"))
    ratios = [
        statistics.median(one / other for one, other in zip(ones, others))
        for ones, others in zip(zip(*first), zip(*second))
    ]
    print(f"{wheel.name}: {size_mb:.1f} MB; {ROUNDS} times installed and run twice, medians:")
    for title, runs in (("first", first), ("second", second)):
        wall, cpu = (statistics.median(times) for times in zip(*runs))
        print(f"pulse run, {title}: {wall * 1e3:.0f} ms, {cpu * 1e3:.0f} ms of CPU")
    print(f"first beside second: {ratios[0]:.2f} of the time, {ratios[1]:.2f} of the CPU time")
    assert size_mb < LARGEST_MB
    assert not compiled, f"compiled: {compiled}"
    assert (
        min(ratios) <= SLOWEST
    )  # of wall time and CPU time, the one that others on the machine disturb less


def install(folder: Path, arguments: list[str]) -> None:
    """As a user's pip: it compiles all modules, to where the user's Python looks for them."""
    usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([folder / "env" / "bin" / "pip", "install", "-q", *arguments], check=True, env=usual)


def seconds_of_a_run(environment: Path, home: Path) -> tuple[float, float]:
    """Of the clock and of the CPU, for the built-in recording through the built-in model."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(home), "PULSE_CACHE": str(home / "kernels")}
    before, started = os.times(), time.perf_counter()
    command = [environment / "bin" / "pulse", "run"]
    subprocess.run(command, cwd=home, env=variables, check=True, stdout=subprocess.DEVNULL)
    elapsed, after = time.perf_counter() - started, os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return elapsed, cpu


if __name__ == "__main__":
    main()
