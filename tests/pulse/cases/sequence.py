"""Operators of newer opsets for sequences: convolutions with state, rotations, linear attention, caches, columns."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node


def causal_conv() -> Iterator[Case]:
    """With and without a state, a bias, an activation; shorter than the state."""
    w, b = {"w": floats("w", 4, 1, 3)}, {"b": floats("b", 4)}
    for length in (1, 7):
        x = floats("x", 1, 4, length)
        for activation in ("none", "silu"):
            made = node("CausalConvWithState", "x w b", "y p", activation=activation)
            name = f"CausalConvWithState_{length}_{activation}"
            yield from cases(name, [made], {"x": x}, w | b, (27,), {"x": 2}, "y p")
        made = node("CausalConvWithState", "x w _ s", "y p")
        both = {"x": x, "s": floats("s", 1, 4, 2)}
        yield from cases(f"CausalConvWithState_{length}_state", [made], both, w, (27,), None, "y p")
    made = node("CausalConvWithState", "x w _ s", "y")
    past = {"s": floats("s", 1, 4, 2)}
    yield from cases(
        "CausalConvWithState_past", [made], {"x": floats("x", 1, 4, 7)}, w | past, (27,), {"x": 2}
    )


def rotary() -> Iterator[Case]:
    """Halves and neighbours, all and some channels, positions given and not, both layouts."""
    cos, sin = floats("cos", 9, 4), floats("sin", 9, 4)
    x = floats("x", 2, 3, 7, 8)
    positions = np.arange(14).reshape(2, 7) % 9
    for interleaved in (0, 1):
        made = node("RotaryEmbedding", "x c s", interleaved=interleaved)
        table = {"c": cos[positions], "s": sin[positions]}
        yield from cases(f"RotaryEmbedding_{interleaved}", [made], {"x": x}, table, (23,), {"x": 1})
        yield from cases(
            f"RotaryEmbedding_{interleaved}_side",
            [made],
            {"x": x, **table},
            None,
            (23,),
            {"x": 2, "c": 1, "s": 1},
        )
        made = node("RotaryEmbedding", "x c s p", interleaved=interleaved, num_heads=3)
        flat = {"x": x.transpose(0, 2, 1, 3).reshape(2, 7, 24).copy(), "p": positions}
        yield from cases(
            f"RotaryEmbedding_{interleaved}_flat", [made], flat, {"c": cos, "s": sin}, (23,), {"x": 1, "p": 1}
        )
        made = node("RotaryEmbedding", "x c s p", interleaved=interleaved, rotary_embedding_dim=4)
        part = {"c": cos[:, :2].copy(), "s": sin[:, :2].copy(), "p": positions}
        yield from cases(f"RotaryEmbedding_{interleaved}_part", [made], {"x": x}, part, (23,))


def linear_attention() -> Iterator[Case]:
    """Each update rule, shared heads, decay for each channel and each head, a past."""
    q, k, v = floats("q", 2, 6, 12), floats("k", 2, 6, 6) * 0.3, floats("v", 2, 6, 10)
    decay, beta = -np.abs(floats("g", 2, 6, 2)), np.abs(floats("beta", 2, 6, 2)) * 0.3
    streams = dict.fromkeys(("q", "k", "v", "g", "b"), 1)
    for rule, optional in {
        "linear": "",
        "gated": "_ g",
        "delta": "_ _ b",
        "gated_delta": "_ g b",
    }.items():
        made = node(
            "LinearAttention", f"q k v {optional}", "y s", update_rule=rule, q_num_heads=4, kv_num_heads=2
        )
        feeds = {"q": q, "k": k, "v": v}
        feeds |= {name: value for name, value in (("g", decay), ("b", beta)) if name in optional.split()}
        stream = {name: streams[name] for name in feeds}
        yield from cases(f"LinearAttention_{rule}", [made], feeds, None, (27,), stream, "y s")
    made = node("LinearAttention", "q k v p g b", "y s", q_num_heads=4, kv_num_heads=2, scale=0.7)
    feeds = {"q": q, "k": k, "v": v, "g": -np.abs(floats("g", 2, 6, 6)), "b": beta[:, :, :1].copy()}
    past = {"p": floats("p", 2, 2, 3, 5)}
    yield from cases("LinearAttention_past", [made], feeds, past, (27,), streams, "y s")


def tensor_scatter() -> Iterator[Case]:
    """From the front, from an index, from an index for each batch, round the end."""
    cache, update = floats("cache", 2, 3, 6, 4), floats("update", 2, 3, 2, 4)
    feeds = {"x": cache, "u": update}
    yield from cases("TensorScatter", [node("TensorScatter", "x u")], feeds, None, (24,), {"x": 3, "u": 3})
    for mode in ("linear", "circular"):
        made = node("TensorScatter", "x u i", mode=mode)
        for name, index in (("same", [3, 3]), ("own", [1, 4]), ("round", [5, 2])):
            if mode == "linear" and name == "round":
                continue
            places = {"i": np.array(index)}
            yield from cases(f"TensorScatter_{mode}_{name}", [made], feeds, places, (24,), {"x": 3, "u": 3})
            yield from cases(
                f"TensorScatter_{mode}_{name}_data", [made], feeds | places, None, (24,), {"x": 3, "u": 3}
            )


def col2im() -> Iterator[Case]:
    """One and two axes, strides, dilations, padding."""
    made = node("Col2Im", "x i b", strides=[2])
    sizes = {"i": np.array([15]), "b": np.array([3])}
    yield from cases("Col2Im_1d", [made], {"x": floats("x", 2, 6, 7)}, sizes, (18,))
    made = node("Col2Im", "x i b", strides=[1, 2], dilations=[2, 1], pads=[1, 0, 1, 1])
    sizes = {"i": np.array([5, 6]), "b": np.array([2, 3])}
    yield from cases("Col2Im_2d", [made], {"x": floats("x", 1, 12, 15)}, sizes, (18,))


ALL = (causal_conv, rotary, linear_attention, tensor_scatter, col2im)
