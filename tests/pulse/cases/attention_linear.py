"""Attention by a state that each frame updates."""

from collections.abc import Iterator

import numpy as np

from tests.pulse.cases.build import Case, cases, floats, node

OPTIONAL = {"linear": "", "gated": "_ g", "delta": "_ _ b", "gated_delta": "_ g b"}
"""Update rule -> its optional inputs."""


def linear_attention() -> Iterator[Case]:
    """Each update rule, shared heads, decay for each channel and each head, a past."""
    q, k, v = floats("q", 2, 6, 12), floats("k", 2, 6, 6) * 0.3, floats("v", 2, 6, 10)
    decay, beta = -np.abs(floats("g", 2, 6, 2)), np.abs(floats("beta", 2, 6, 2)) * 0.3
    streams = dict.fromkeys(("q", "k", "v", "g", "b"), 1)
    for rule, optional in OPTIONAL.items():
        operator = node(
            "LinearAttention", f"q k v {optional}", "y s", update_rule=rule, q_num_heads=4, kv_num_heads=2
        )
        feeds = {"q": q, "k": k, "v": v}
        feeds |= {name: value for name, value in (("g", decay), ("b", beta)) if name in optional.split()}
        stream = {name: streams[name] for name in feeds}
        yield from cases(f"LinearAttention_{rule}", [operator], feeds, None, (27,), stream, "y s")
    operator = node("LinearAttention", "q k v p g b", "y s", q_num_heads=4, kv_num_heads=2, scale=0.7)
    feeds = {"q": q, "k": k, "v": v, "g": -np.abs(floats("g", 2, 6, 6)), "b": beta[:, :, :1].copy()}
    past = {"p": floats("p", 2, 2, 3, 5)}
    yield from cases("LinearAttention_past", [operator], feeds, past, (27,), streams, "y s")


def attention_of_microsoft() -> Iterator[Case]:
    """Each update rule, with heads that share keys, a decay for each channel, and a past."""
    feeds = {"q": floats("q", 2, 6, 12), "k": floats("k", 2, 6, 6) * 0.3, "v": floats("v", 2, 6, 10)}
    feeds |= {"g": -np.abs(floats("g", 2, 6, 6)), "b": np.abs(floats("beta", 2, 6, 2)) * 0.3}
    past = {"p": floats("p", 2, 2, 3, 5)}
    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    for rule, optional in OPTIONAL.items():
        used = {name: value for name, value in feeds.items() if name in f"q k v {optional}".split()}
        names = f"q k v p {optional.removeprefix('_ ')}"
        operator = node(
            "LinearAttention", names, "y s", domain="com.microsoft", update_rule=rule, scale=0.7, **heads
        )
        stream = dict.fromkeys(used, 1)
        name = f"com.microsoft::LinearAttention_{rule}"
        yield from cases(name, [operator], used, past, (17,), stream, "y s")


ALL = (linear_attention, attention_of_microsoft)
