# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The target processor, and LLVM's compiler for it."""

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from pulse.jit.levels import named_level
from pulse.support.record import record


@record
class Processor:
    """A processor in LLVM's terms: triple, name and features; ``is_packaged``: the package has a library for it."""

    triple: str
    name: str
    features: str
    is_packaged: bool = False


@cache
def processor() -> Processor:
    """Return the processor of this machine, or the level that PULSE_LEVEL names."""
    if level := named_level():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        features = ",".join(f"+{feature}" for feature in level.features)
        return Processor(level.triple, level.processor, features, is_packaged=True)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return Processor(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    )


def has_features(*names: str) -> bool:
    """Return whether the target processor has all of these features, in LLVM's names."""
    return {f"+{name}" for name in names} <= {*processor().features.split(",")}


def has_f16() -> bool:
    """Return whether it has an instruction that converts float16 to float32; only old x86 has none."""
    return not processor().triple.startswith(("x86", "i")) or has_features("f16c")


def has_masks() -> bool:
    """Return whether a store of some lanes is one fast operation: elsewhere it is a branch per lane, or microcode."""
    return has_features("avx512f")


def has_fma() -> bool:
    """Return whether it has fused multiply-add.

    Without it, as on WebAssembly and old x86, LLVM would call libm for each lane.
    """
    if processor().triple.startswith(("x86", "i")):
        return has_features("fma")
    return not processor().triple.startswith("wasm")


def has_rounding() -> bool:
    """Return whether it can round vectors to integers; 32-bit ARM cannot and would call libm for each lane."""
    return not processor().triple.startswith("arm")


def target_machine() -> Any:
    """Return LLVM's compiler for the processor, for code that is linked into this process or a library."""
    here = processor()
    target = llvm.Target.from_triple(here.triple)
    if here.is_packaged:
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
