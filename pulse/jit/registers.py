"""The vector registers of the target processor, as constants for kernels."""

import sys

from pulse.jit.levels import named_level, processor_flags


def _has(name: str, flag: str) -> bool:
    """Return whether the target processor has a feature: its name in LLVM, and its flag in Linux."""
    if level := named_level():
        return name in level.features
    if sys.platform == "linux":
        return flag in processor_flags()
    from pulse.jit.processor import has_features

    return has_features(name)


HAS_AVX512 = _has("avx512f", "avx512f")
"""Whether there are 32 registers of 16 f32 lanes. Otherwise there are 16 of 8 (AVX2), or 32 of 4 (SSE, NEON)."""
HAS_FULL_WIDTH_AVX512 = HAS_AVX512 and (_has("avxvnni", "avx_vnni") or not _has("avx512bf16", "avx512_bf16"))
"""Whether 16 lanes are multiplied in one operation; Zen 4 multiplies halves of a register.

Zen 4 has AVX512-BF16 but not AVX-VNNI. Other processors have both or neither, except Cooper Lake.
"""
