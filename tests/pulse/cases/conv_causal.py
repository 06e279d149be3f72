"""Convolutions with state."""

from collections.abc import Iterator

from tests.pulse.cases.build import Case, cases, floats, node


def causal_conv() -> Iterator[Case]:
    """CausalConvWithState with and without state, bias and activation; inputs shorter than the state."""
    w, b = {"w": floats("w", 4, 1, 3)}, {"b": floats("b", 4)}
    for length in (1, 7):
        x = floats("x", 1, 4, length)
        for activation in ("none", "silu"):
            operator = node("CausalConvWithState", "x w b", "y p", activation=activation)
            name = f"CausalConvWithState_{length}_{activation}"
            yield from cases(name, [operator], {"x": x}, w | b, (27,), {"x": 2}, "y p")
        operator = node("CausalConvWithState", "x w _ s", "y p")
        both = {"x": x, "s": floats("s", 1, 4, 2)}
        yield from cases(f"CausalConvWithState_{length}_state", [operator], both, w, (27,), None, "y p")
    operator = node("CausalConvWithState", "x w _ s", "y")
    past = {"s": floats("s", 1, 4, 2)}
    yield from cases(
        "CausalConvWithState_past", [operator], {"x": floats("x", 1, 4, 7)}, w | past, (27,), {"x": 2}
    )


def causal_conv_of_onnxruntime() -> Iterator[Case]:
    """Dilated too; with the state as an input and an output."""
    w = {"w": floats("w", 4, 1, 3)}
    for dilation in (1, 2):
        name = f"com.microsoft::CausalConvWithState_{dilation}"
        how = {"domain": "com.microsoft", "activation": "silu", "dilation": dilation}
        x, past = {"x": floats("x", 1, 4, 7)}, {"s": floats("s", 1, 4, 2 * dilation)}
        operator = node("CausalConvWithState", "x w _ s", "y p", **how)
        yield from cases(name, [operator], x, w | past, (17,), {"x": 2}, "y p")
        yield from cases(f"{name}_state", [operator], x | past, w, (17,), None, "y p")


ALL = (causal_conv, causal_conv_of_onnxruntime)
