"""Libraries for other processors, run by qemu's emulation of programs."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest


@dataclass(frozen=True)
class Processor:
    """The C compiler for a target, what runs its programs, and instructions on vectors of four floats."""

    prefix: str
    emulator: str
    vectors: str

    def require(self) -> None:
        """Skip the test where a tool is missing."""
        for tool in (f"{self.prefix}-gcc", self.emulator):
            if which(tool) is None:
                pytest.skip(f"{tool} is not installed")

    def run_vector(self, folder: Path, name: str) -> str:
        """Compile the test program of a library and run it; what it says."""
        runner = folder / "run"
        sources = (str(folder / "test" / f"run_{name}.c"), str(folder / f"lib{name}.a"))
        command = (f"{self.prefix}-gcc", "-O1", f"-I{folder}", *sources, "-lm", "-o", str(runner))
        subprocess.run(command, check=True)
        emulated = (
            self.emulator,
            "-L",
            f"/usr/{self.prefix}",
            str(runner),
            str(folder / "test" / "vector.bin"),
        )
        done = subprocess.run(emulated, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def count_vector_instructions(self, library: Path) -> int:
        """How many multiply-adds of whole vectors the machine code has."""
        command = (f"{self.prefix}-objdump", "-d", str(library))
        code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return sum(
            self.vectors in " ".join(line.split())
            for line in code.splitlines()
            if "fma" in line or "fml" in line
        )


PROCESSORS = {
    "aarch64": Processor("aarch64-linux-gnu", "qemu-aarch64", ".4s"),
    "armv7": Processor("arm-linux-gnueabihf", "qemu-arm", "vfma.f32 q"),
}
