"""Libraries for other processors, run by qemu's emulation of programs."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pytest


@dataclass(frozen=True)
class Processor:
    """The C compiler for a target, what runs its programs, instructions on vectors of four floats, zig's name of it."""

    prefix: str
    emulator: str
    vectors: str
    musl: str

    def require(self) -> None:
        """Skip the test where a tool is missing."""
        for tool in (f"{self.prefix}-gcc", self.emulator):
            if which(tool) is None:
                pytest.skip(f"{tool} is not installed")

    def run_vector(self, folder: Path, name: str) -> str:
        """Compile the test program of a library and run it. Returns its output."""
        return self._run(folder, name, f"{self.prefix}-gcc")

    def run_vector_of_zig(self, folder: Path, name: str) -> str:
        """The same with the compiler of the wheel ziglang, and its C library: no files of another system are needed."""
        return self._run(folder, name, sys.executable, "-m", "ziglang", "cc", "-target", self.musl, "-static")

    def _run(self, folder: Path, name: str, *compiler: str) -> str:
        runner = folder / "run"
        sources = (str(folder / "test" / f"run_{name}.c"), str(folder / f"lib{name}.a"))
        subprocess.run((*compiler, "-O1", f"-I{folder}", *sources, "-lm", "-o", str(runner)), check=True)
        files = (folder / "test" / "vector.bin", *folder.glob("*.weights"))
        emulated = (self.emulator, "-L", f"/usr/{self.prefix}", str(runner), *map(str, files))
        process = subprocess.run(emulated, capture_output=True, text=True)
        assert process.returncode == 0, process.stderr
        return process.stdout

    def count_vector_instructions(self, library: Path) -> int:
        """The number of vector multiply-adds in the machine code."""
        command = (f"{self.prefix}-objdump", "-d", str(library))
        code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return sum(
            self.vectors in " ".join(line.split())
            for line in code.splitlines()
            if "fma" in line or "fml" in line
        )


PROCESSORS = {
    "aarch64": Processor("aarch64-linux-gnu", "qemu-aarch64", ".4s", "aarch64-linux-musl"),
    "armv7": Processor("arm-linux-gnueabihf", "qemu-arm", "vfma.f32 q", "arm-linux-musleabihf"),
}
