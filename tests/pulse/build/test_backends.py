"""Views on backends: which implementation computes a node, what goes from one to another, errors."""

import pickle

import numpy as np
import pytest

import pulse
from pulse.build import (
    GELU,
    GRU,
    Add,
    Connector,
    Conv1D,
    Conv2D,
    Function,
    GraphView,
    MaxPool1D,
    Parallel,
    ReLU,
    Sequential,
    Sigmoid,
    Tanh,
    Transpose,
)
from pulse.errors import CompileError, InputError, PulsifyError
from pulse.extend import Conv, Pointwise, implements
from pulse.program.backends import implementations
from pulse.program.backends.mixed_program import MixedProgram
from streaming import Session
from tests.noise import normal_noise


def model() -> tuple[GraphView, GraphView, GraphView]:
    """The whole, its convolutions, its recurrent layer."""
    front = Sequential(
        [Conv1D(1, 4, 5, "wide", padding_dims=[4, 0]), ReLU("relu"), Conv1D(4, 4, 3, "next")], name="front"
    )
    back = Sequential([Transpose([2, 0, 1], "turn"), GRU(4, 3, "gru")], name="back")
    middle = [MaxPool1D(2, "pool"), Parallel([ReLU("left"), Tanh("right")]), Add("add")]
    return Sequential([front, middle, back]), front, back


def compile_view(view: GraphView, backend: str = "numba") -> pulse.Program:
    return pulse.stream(view.graph("1,1,T"), pulse=4, backend=backend)


@pytest.mark.parametrize("default", ["numba", "numpy", "onnxruntime"])
@pytest.mark.parametrize("other", ["numba", "numpy", "onnxruntime"])
def test_a_view_runs_on_its_backend(default: str, other: str) -> None:
    whole, _, back = model()
    back.set_backend(other)
    pulse.verify(whole.graph("1,1,T"), pulse=4, backend=default).require()
    program = compile_view(whole, default)
    assert program.node("gru").implementation.implementation.backend == other
    assert program.node("wide").implementation.implementation.backend == default
    if default != other:
        assert isinstance(program, MixedProgram)
        assert [(transfer.wire, transfer.source, transfer.target) for transfer in program.transfers] == [
            ("add", default, other)
        ]


@pytest.mark.parametrize("kernel", ["reference", "direct", "im2col", "fft"])
def test_kernels_of_a_convolution_give_the_same(kernel: str) -> None:
    shape = "1,4,T,9"
    view = Sequential(
        [
            Conv2D(
                4,
                6,
                [3, 3],
                "a",
                groups=2,
                stride_dims=[1, 2],
                dilation_dims=[2, 1],
                padding_dims=[4, 1, 0, 1],
            )
        ]
    )
    x = normal_noise(1, 4, 12, 9)
    plain = pulse.stream(view.graph(shape), pulse=2, backend="numpy")
    view.set_backend("numpy", kernel)
    program = pulse.stream(view.graph(shape), pulse=2, backend="numpy")
    node = program.node("a").implementation
    assert node.key == f"Conv/numpy/f32/NCHW/{kernel}"
    assert kernel in node.reason
    output, expected = (stream_through(each_program, x, 2) for each_program in (program, plain))
    np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-5)
    pulse.verify(view.graph(shape), pulse=2, backend="numpy").require()


def stream_through(program: pulse.Program, x: np.ndarray, axis: int) -> np.ndarray:
    session = Session(program)
    parts = [session.push(x), session.flush()]
    return np.concatenate([next(iter(part.values())) for part in parts], axis)


def test_wires_to_a_backend_are_counted_once_for_each_backend() -> None:
    relu, left, right, last = ReLU("relu"), Tanh("left"), Sigmoid("right"), GELU(name="last")
    x = relu(Connector("x", "1,T"))
    view = Add("sum")(Add("both")(left(x), right(x)), last(x)).graph()
    GraphView([left, right]).set_backend("numpy")
    GraphView([last]).set_backend("onnxruntime")
    program = pulse.stream(view.graph(), pulse=2)
    assert isinstance(program, MixedProgram)
    assert {(transfer.wire, transfer.source, transfer.target) for transfer in program.transfers} == {
        ("relu", "numba", "numpy"),
        ("relu", "numba", "onnxruntime"),
        ("left", "numpy", "numba"),
        ("right", "numpy", "numba"),
        ("last", "onnxruntime", "numba"),
    }
    pulse.verify(view.graph(), pulse=2).require()


def test_streams_of_several_backends_are_kept_and_continue() -> None:
    whole, _, back = model()
    back.set_backend("numpy")
    program = compile_view(whole)
    state, x = program.spawn(), normal_noise(6, 1, 1, 4)
    state.step(x[0])
    snapshot, copy = state.snapshot(), pickle.loads(pickle.dumps(state))
    first = [state.step(frames) for frames in x[1:3]]
    state.restore(snapshot)
    for again, frames, expected in zip((state, copy), (x[1], x[1]), (first[0], first[0])):
        (output,), (value,) = again.step(frames).values(), expected.values()
        assert np.array_equal(output, value)
    with pytest.raises(InputError, match="not the size of this stream's"):
        state.restore(snapshot[:-1])
    (still,) = state.step(x[2]).values()
    assert np.array_equal(still, next(iter(first[1].values())))
    state.reset()
    fresh = program.spawn()
    assert np.array_equal(*(next(iter(stream_state.step(x[0]).values())) for stream_state in (state, fresh)))


def test_an_implementation_of_a_user_is_chosen_and_taken_away() -> None:
    calls: list[str] = []

    @implements(Conv, kernel="mine", priority=1, dtypes=["f32"])
    def mine(op: Conv, inputs: list[np.ndarray]) -> list[np.ndarray]:
        calls.append("mine")
        return op.eval(inputs, {})

    try:
        whole, *_ = model()
        program = compile_view(whole, "numpy")
        choice = program.node("wide").implementation
        assert choice.key == "Conv/numpy/f32/NCHW/mine"
        assert "priority 1 before" in choice.reason
        pulse.verify(whole.graph("1,1,T"), pulse=4, backend="numpy").require()
        assert calls
    finally:
        implementations.REGISTRY[:] = [
            instruction for instruction in implementations.REGISTRY if instruction.kernel != "mine"
        ]


def test_a_function_without_a_kernel_runs_together_with_kernels() -> None:
    def pointwise(inputs: object, axes: list[int]) -> Pointwise:
        return Pointwise((axes[0],))

    halve = Function(lambda x: x / np.float32(2), relation=pointwise, name="halve")
    view = Sequential([Conv1D(1, 2, 3), halve, Tanh()])
    with pytest.raises(CompileError, match="no kernel for halve"):
        pulse.stream(view.graph("1,1,T"), pulse=2)
    GraphView([halve]).set_backend("numpy")
    pulse.verify(view.graph("1,1,T"), pulse=2).require()


@pytest.mark.parametrize(
    ("backend", "kernel", "message"),
    [
        (
            "numba",
            "fft",
            r"wide \(Conv\): no implementation for numba fft; .*numpy fft: its backend is",
        ),
        ("numpy", "winograd", "numpy winograd.*numpy direct: its kernel is direct"),
        ("abacus", "", "no implementation for abacus"),
    ],
)
def test_refusal_of_an_unimplemented_node_lists_candidates(backend: str, kernel: str, message: str) -> None:
    whole, front, _ = model()
    front.set_backend(backend, kernel)
    with pytest.raises(CompileError, match=message):
        compile_view(whole)


def test_a_type_that_a_kernel_does_not_take_is_named() -> None:
    (wide,) = (instruction for instruction in implementations.REGISTRY if instruction.kernel == "fft")
    fact = pulse.load(model()[0].graph("1,1,T,f32")).analyse().inputs["x"]
    integers = type(fact)(np.dtype(np.int32), fact.shape)
    op = Conv((1,), (1,), ())
    assert wide.reason_against(op, [integers]) == "does not take i32"


def test_a_chain_keeps_the_views_of_its_parts() -> None:
    first, second = (Sequential([ReLU(), Tanh()], name="same") for _ in range(2))
    first.set_backend("numpy")
    joined = pulse.chain(first.graph("1,T"), second.graph("1,T"))
    assert list(joined.graph.views) == ["same", "same.1"]
    program = pulse.stream(joined, pulse=2)
    assert program.backend == "numba + numpy"
    assert len(program.transfers) == 1
    pulse.verify(joined, pulse=2).require()


def test_a_model_of_chunks_runs_on_one_backend() -> None:
    gru = GRU(2, 3, "gru", states=True)
    Connector("h", "1,1,3").feed(gru, 5)
    y, state = gru(Connector("x", "1,1,2"))
    view = y.graph(state)
    model = pulse.load(view.graph(outputs=["y", "h_out"]))
    assert model.chunks is not None
    pulse.verify(model).require()
    view.set_backend("numpy")
    with pytest.raises(PulsifyError, match=r"takes chunks.*omit set_backend of view 0"):
        pulse.stream(view.graph(outputs=["y", "h_out"]))


def test_programs_without_views_do_not_change() -> None:
    whole, *_ = model()
    assert type(compile_view(whole)).__name__ == "NativeProgram"
    assert type(compile_view(whole, "numpy")).__name__ == "ReferenceProgram"


def test_a_view_whose_nodes_are_gone_leaves_one_backend() -> None:
    """The second of two Relus does nothing, so nothing is left of the view on numpy."""
    second = ReLU("second")
    view = Sequential([Conv1D(1, 1, 1), ReLU("first"), second])
    GraphView([second]).set_backend("numpy")
    program = pulse.stream(view.graph("1,1,T"), pulse=2)
    assert (type(program).__name__, program.backend) == ("NativeProgram", "numba")
