"""Levels of processors: targets of compiled code, levels with libraries in the package, the level of this processor."""

import os
import platform
import sys
from functools import cache

from pulse.errors import CompileError
from pulse.support.naming import unknown_name
from pulse.support.record import record

NATIVE = "native"
"""This processor, with all its features."""
_V2 = {
    "cx16": "cx16",
    "sahf": "lahf_lm",
    "popcnt": "popcnt",
    "sse3": "pni",
    "ssse3": "ssse3",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
}
_V3 = {
    **_V2,
    "avx": "avx",
    "avx2": "avx2",
    "bmi": "bmi1",
    "bmi2": "bmi2",
    "f16c": "f16c",
    "fma": "fma",
    "lzcnt": "abm",
    "movbe": "movbe",
    "xsave": "xsave",
}
_V4 = {**_V3, **{name: name for name in ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")}}
_VNNI = {**_V4, "avx512vbmi": "avx512vbmi", "avx512vnni": "avx512_vnni"}
_BF16 = {**_VNNI, "avx512bf16": "avx512_bf16"}
_AVX_VNNI = {**_BF16, "avxvnni": "avx_vnni"}
_X86, _ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
_ARM32, _WASM = "armv7-unknown-linux-gnueabihf", "wasm32-unknown-unknown"


@record
class Level:
    """The common features of many processors.

    name               the name of the level, as in PULSE_LEVEL
    triple, processor  LLVM's names
    features           LLVM's name -> Linux's name in /proc/cpuinfo
    """

    name: str
    triple: str
    processor: str
    features: dict[str, str]

    @property
    def machine(self) -> str:
        """The architecture, named as by ``platform.machine`` on Linux."""
        return self.triple.partition("-")[0]

    @property
    def missing_features(self) -> list[str]:
        """The features that this processor lacks, in Linux's names."""
        if self.machine != _machine():
            return [f"the architecture {self.machine}"]
        return [flag for flag in self.features.values() if flag not in processor_flags()]


LEVELS = {
    level.name: level
    for level in (
        Level("x86-64-v4-avxvnni", _X86, "x86-64-v4", _AVX_VNNI),
        Level("x86-64-v4-bf16", _X86, "x86-64-v4", _BF16),
        Level("x86-64-v4-vnni", _X86, "x86-64-v4", _VNNI),
        Level("x86-64-v4", _X86, "x86-64-v4", _V4),
        Level("x86-64-v3", _X86, "x86-64-v3", _V3),
        Level("x86-64-v2", _X86, "x86-64-v2", _V2),
        Level("aarch64", _ARM, "generic", {"neon": "asimd"}),
    )
}
"""The levels for which the package has machine code, the best first."""
TARGETS = {
    **LEVELS,
    "armv7": Level("armv7", _ARM32, "generic", {"neon": "neon", "vfp4": "vfpv4"}),
    "wasm32": Level(
        "wasm32",
        _WASM,
        "generic",
        {
            name: name
            for name in ("simd128", "bulk-memory", "bulk-memory-opt", "sign-ext", "nontrapping-fptoint")
        },
    ),
}
"""All targets of compiled code; Python runs on the levels only."""


@cache
def processor_flags() -> frozenset[str]:
    """Return the features that Linux lists for this processor; empty on other systems."""
    if sys.platform != "linux":
        return frozenset()
    with open("/proc/cpuinfo", "rb") as file:
        for line in file:
            name, _, values = line.partition(b":")
            if name.strip() in (b"flags", b"Features"):
                return frozenset(values.decode().split())
    return frozenset()


@cache
def named_level() -> Level | None:
    """Return the level that PULSE_LEVEL names; None if it is unset or ``native``.

    Raises CompileError: the level does not exist.
    """
    name = os.environ.get("PULSE_LEVEL", "")
    if name in ("", NATIVE):
        return None
    if name not in TARGETS:
        raise CompileError(f"PULSE_LEVEL: {unknown_name('level', name, [*LEVELS, NATIVE])}")
    return TARGETS[name]


def runnable_level() -> Level | None:
    """Return the level whose machine code runs: PULSE_LEVEL, else the best one of this processor.

    None for code of this processor. Raises CompileError: the processor does not have the named level.
    """
    level = named_level()
    if level is not None:
        if level.missing_features:
            raise CompileError(
                f"PULSE_LEVEL={level.name}: this processor lacks {', '.join(level.missing_features)}; "
                f"name another level, or {NATIVE}"
            )
        return level
    if os.environ.get("PULSE_LEVEL") == NATIVE:
        return None
    return next((level for level in LEVELS.values() if not level.missing_features), None)


def _machine() -> str:
    """Return the architecture of this process; empty if it is not 64-bit Linux."""
    return platform.machine() if sys.platform == "linux" and sys.maxsize > 1 << 32 else ""
