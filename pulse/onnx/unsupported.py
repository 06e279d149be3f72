"""Operators of onnxruntime that are not supported: what to do instead of adding them."""

from pulse.support.wording import spell

PROCESSOR_DOMAINS = ("com.microsoft.nchwc",)
"""Domains of operators whose memory order suits one kind of processor."""
DYNAMIC_OPERATORS = ("QAttention",)
"""Operators that quantise their input by its range."""


def unsupported_advice(domain: str, op_type: str) -> str:
    """Return what to do about an operator of onnxruntime; empty if it could be added."""
    if domain in PROCESSOR_DOMAINS:
        return (
            "onnxruntime's optimiser wrote them for one kind of processor: load the model as it was before, or "
            "optimise it at ORT_ENABLE_EXTENDED"
        )
    if domain == "com.microsoft" and op_type in DYNAMIC_OPERATORS:
        return constant_scales_advice()
    return ""


def constant_scales_advice() -> str:
    """Return what to do about quantisation by the range of all frames."""
    return (
        "its scale depends on all frames: quantise the model with constant scales (quantize_static), or load the "
        f"model of floats and round its weights with {spell('weights', 'int8')}"
    )
