# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The processor that code is compiled for, and what makes LLVM code into its machine code."""

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from pulse.jit.levels import named_level
from pulse.support.record import record


@record
class Processor:
    """A processor in LLVM's words: its triple, its name and its features; ``carried``: code for it is in libraries."""

    triple: str
    name: str
    features: str
    carried: bool = False


@cache
def processor() -> Processor:
    """The processor of this machine, unless PULSE_LEVEL names what many have in common."""
    if level := named_level():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        features = ",".join(f"+{feature}" for feature in level.features)
        return Processor(level.triple, level.processor, features, carried=True)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return Processor(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    )


def has_features(*names: str) -> bool:
    """Whether it has all of these features, in LLVM's words."""
    return {f"+{name}" for name in names} <= {*processor().features.split(",")}


def has_f16() -> bool:
    """Whether it has an instruction that makes float32 of float16, which every processor but old x86 has."""
    return not processor().triple.startswith(("x86", "i")) or has_features("f16c")


def has_fma() -> bool:
    """Whether it can multiply and add with one rounding; WebAssembly and old x86 would call libm for each lane."""
    if processor().triple.startswith(("x86", "i")):
        return has_features("fma")
    return not processor().triple.startswith("wasm")


def has_rounding() -> bool:
    """Whether it rounds vectors to whole numbers; ARM of 32 bits cannot, and would call libm for each lane."""
    return not processor().triple.startswith("arm")


def target_machine() -> Any:
    """LLVM's compiler for the processor: of code that is linked into this process, or into a library."""
    here = processor()
    target = llvm.Target.from_triple(here.triple)
    if here.carried:
        return target.create_target_machine(
            cpu=here.name, features=here.features, opt=3, reloc="pic", codemodel="default"
        )
    return target.create_target_machine(
        cpu=here.name,
        features=here.features,
        opt=3,
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )
