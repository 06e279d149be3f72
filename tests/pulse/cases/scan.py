"""Scans: bodies that run once for each frame."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, helper, numpy_helper

from tests.pulse.cases.build import Case, cases, floats, node


def body(
    nodes: Sequence[NodeProto], inputs: str, outputs: str, constants: dict[str, np.ndarray] | None = None
) -> GraphProto:
    """A body whose inputs and outputs are f32 of a shape that the file leaves open."""

    def value_infos(names: str) -> list[Any]:
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names.split()]

    stored = [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()]
    return helper.make_graph(list(nodes), "body", value_infos(inputs), value_infos(outputs), stored)


def smoothing_body() -> GraphProto:
    """An average that forgets, ``s = 0.7*s + x @ w``, w captured from around; and its hyperbolic tangent."""
    nodes = [
        node("MatMul", "x_in w", "seen"),
        node("Mul", "s_in keep", "kept"),
        node("Add", "kept seen", "s_out"),
        node("Tanh", "s_out", "y_out"),
    ]
    return body(nodes, "s_in x_in", "s_out y_out", {"keep": np.array(0.7, np.float32)})


def scan() -> Iterator[Case]:
    """Axes, directions, captured constants and inputs, several states, several tensors."""
    x, s = floats("x", 7, 2, 3), floats("s", 2, 4)
    w = {"w": floats("w", 3, 4)}
    opsets = (9, 16, 21)
    operator = node("Scan", "s x", "last y", body=smoothing_body(), num_scan_inputs=1)
    yield from cases("Scan", [operator], {"x": x}, {"s": s, **w}, opsets, {"x": 0}, "last y")
    yield from cases("Scan_side_state", [operator], {"x": x, "s": s}, w, (16,), {"x": 0}, "y last")
    yield from cases("Scan_side_weights", [operator], {"x": x, **w}, {"s": s}, (16,), {"x": 0}, "y last")
    batch = node("Scan", "_ s x", "last y", body=smoothing_body(), num_scan_inputs=1, directions=[1])
    many = {"x": floats("batch", 3, 7, 2, 3)}
    states = {"s": floats("held", 3, 2, 4), **w}
    yield from cases("Scan_batch", [batch], many, states, (8,), {"x": 2}, "last y")
    moved = node(
        "Scan",
        "s x",
        "last y",
        body=smoothing_body(),
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_output_axes=[-1],
    )
    yield from cases(
        "Scan_axes", [moved], {"x": x.transpose(1, 0, 2).copy()}, {"s": s, **w}, (16,), {"x": 1}, "y last"
    )
    for back_in, back_out in ((1, 0), (0, 1), (1, 1)):
        turned = node(
            "Scan",
            "s x",
            "last y",
            body=smoothing_body(),
            num_scan_inputs=1,
            scan_input_directions=[back_in],
            scan_output_directions=[back_out],
        )
        yield from cases(
            f"Scan_backward_{back_in}{back_out}", [turned], {"x": x}, {"s": s, **w}, (16,), {"x": 0}, "y last"
        )
    two = body(
        [
            node("Mul", "a_in x_in", "a_out"),
            node("Add", "a_out z_in", "sum"),
            node("Add", "sum b_in", "b_out"),
            node("Neg", "x_in", "u_out"),
            node("Sub", "a_in b_in", "v_out"),
        ],
        "a_in b_in x_in z_in",
        "a_out b_out u_out v_out",
    )
    many = node("Scan", "a b x z", "al bl u v", body=two, num_scan_inputs=2)
    feeds = {"x": floats("p", 5, 3), "z": floats("q", 5, 3)}
    starts = {"a": floats("a", 3), "b": floats("b", 3)}
    yield from cases("Scan_two", [many], feeds, starts, (16,), {"x": 0, "z": 0}, "u v al bl")

    yield from crossed_states()
    yield from nested_scans()


def crossed_states() -> Iterator[Case]:
    """A state may become another one, stay, turn around or be constant; frames may be states or inputs."""
    inside = body(
        [
            node("Identity", "b_in", "a_out"),
            node("Add", "a_in x_in", "b_out"),
            node("Identity", "c_in", "c_out"),
            node("Identity", "three", "d_out"),
            node("Transpose", "e_in", "e_out"),
            node("Identity", "a_in", "u_out"),
            node("Identity", "x_in", "v_out"),
        ],
        "a_in b_in c_in d_in e_in x_in",
        "a_out b_out c_out d_out e_out u_out v_out",
        {"three": np.full(3, 3, np.float32)},
    )
    operator = node("Scan", "a b c d e x", "al bl cl dl el u v", body=inside, num_scan_inputs=1)
    starts = {name: floats(name, 3) for name in "abcd"} | {"e": floats("e", 2, 2)}
    feeds = {"x": floats("x", 7, 3)}
    yield from cases("Scan_crossed", [operator], feeds, starts, (16,), {"x": 0}, "u v al bl cl dl el")


def nested_scans() -> Iterator[Case]:
    """A state runs over frames, an inner one over the features of each; the inner body reads what is around both."""
    inside = body(
        [node("Mul", "t_in w", "tw"), node("Add", "tw p_in", "seen"), node("Add", "seen s_in", "t_out")],
        "t_in p_in",
        "t_out",
    )
    outside = body(
        [
            node("Scan", "zero x_in", "sum", body=inside, num_scan_inputs=1),
            node("Tanh", "sum", "s_out"),
            node("Neg", "s_out", "y_out"),
        ],
        "s_in x_in",
        "s_out y_out",
    )
    operator = node("Scan", "s x", "last y", body=outside, num_scan_inputs=1)
    constants = {
        "s": np.array(0.3, np.float32),
        "zero": np.array(0, np.float32),
        "w": np.array(0.5, np.float32),
    }
    yield from cases(
        "Scan_nested", [operator], {"x": floats("x", 6, 3)}, constants, (16,), {"x": 0}, "y last"
    )


ALL = (scan,)
