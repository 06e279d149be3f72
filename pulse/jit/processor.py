# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The processor that code is compiled for, and what makes LLVM code into its machine code."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from numba.core import config
from numba.core.codegen import get_host_cpu_features


@dataclass(frozen=True)
class Processor:
    """A processor in LLVM's words: its triple, its name and its features."""

    triple: str
    name: str
    features: str


@cache
def processor() -> Processor:
    """That of this machine, unless NUMBA_CPU_NAME and NUMBA_CPU_FEATURES say otherwise."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    settings: Any = config
    features = settings.CPU_FEATURES
    return Processor(
        llvm.get_process_triple(),
        settings.CPU_NAME or llvm.get_host_cpu_name(),
        get_host_cpu_features() if features is None else features,
    )


def has_f16() -> bool:
    """Whether it has an instruction that makes float32 of float16, which every processor but old x86 has."""
    here = processor()
    return not here.triple.startswith(("x86", "i")) or "+f16c" in here.features.split(",")


def target_machine() -> Any:
    """LLVM's compiler for the processor, with numba's options for code that is linked into this process."""
    here = processor()
    target = llvm.Target.from_triple(here.triple)
    return target.create_target_machine(
        cpu=here.name,
        features=here.features,
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )
