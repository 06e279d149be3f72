"""Which inputs are states: by name, by shape, and when it is better to ask."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pulse.chunks.axes import time_axis
from pulse.chunks.state_names import looks_like_state, next_names
from pulse.chunks.states import Candidates
from pulse.errors import PulsifyError

Shapes = Mapping[str, Sequence[int]]
F = np.dtype(np.float32)


def pairs_of(
    inputs: Shapes, outputs: Shapes, signals: Sequence[str] = (), integers: Sequence[str] = ()
) -> dict[str, str]:
    """Return the state pairs that are found in a model of f32, but for these integers."""

    def dtype_of(name: str) -> np.dtype:
        return np.dtype(np.int64) if name in integers else F

    candidates = Candidates(
        list(inputs),
        list(outputs),
        fits=lambda name, other: (
            tuple(inputs[name]) == tuple(outputs[other]) and dtype_of(name) == dtype_of(other)
        ),
        can_stream=lambda name: time_axis(inputs[name], dtype_of(name)) is not None,
        is_floating=lambda name: dtype_of(name) == F,
        signals=signals,
    )
    return {pair.input: pair.output for pair in candidates.pairs()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("state", "stateN"),
        ("h", "hn"),
        ("c", "cn"),
        ("h0", "hn"),
        ("h_0", "h_n"),
        ("h_in", "h_out"),
        ("caches_in", "caches_out"),
        ("conv_cache", "conv_cache_out"),
        ("cache_in_0", "cache_out_0"),
        ("s0", "o0"),
        ("cached_len_3", "new_cached_len_3"),
        ("states.1", "next_states.1"),
        ("hidden", "updated_hidden"),
        ("lstm", "lstm_next"),
        ("past_conv", "present_conv"),
        ("past_key_values.0.key", "present.0.key"),
        ("prev_state", "next_state"),
        ("old_mem", "new_mem"),
        ("stateIn", "stateOut"),
        ("input_state", "output_state"),
        ("in_h", "out_h"),
        ("att_cache", "r_att_cache"),
        ("prev_h", "h"),
        ("hx", "hy"),
        ("init_state", "final_state"),
        ("enc_state.1", "enc_state_next.1"),
        ("enc_state_1", "enc_state_out_1"),
        ("STATE_IN_1", "STATE_OUT_1"),
        ("stateful_in_0", "stateful_out_0"),
        ("i_states", "o_states"),
    ],
)
def test_states_are_paired_by_name(before: str, after: str) -> None:
    """Exporters and authors name the next value of a state in these ways."""
    assert after in [other for other, _ in next_names(before)]
    shapes = {"x": [1, 80, 1], before: [2, 3, 4]}
    assert pairs_of(shapes, {"y": [1, 80, 1], after: [2, 3, 4]}) == {before: after}


def test_words_of_states_alone_pair_nothing() -> None:
    """Most of these names are of signals too: of hidden layers, of a memory that attention reads, of one side.

    Beside another stream of their form the user decides.
    """
    shape = [1, 1, 160]
    for before, after in (
        ("hidden_state", "last_hidden_state"),
        ("memory", "final_memory"),
        ("context_in", "context"),
        ("c", "current_c"),
        ("gru_input", "gru_out"),
        ("audio_r", "audio"),
        ("h", "h1"),
    ):
        assert pairs_of({before: shape}, {after: shape}) == {}
        inputs, outputs = {"x": shape, "gru": [2, 3, 4]}, {"y": shape, "gru_n": [2, 3, 4]}
        with pytest.raises(PulsifyError, match=f"{before}: may be a state or a stream.*found: gru=gru_n"):
            pairs_of({**inputs, before: shape}, {**outputs, after: shape})
        assert pairs_of({**inputs, before: shape}, {**outputs, after: shape}, [before]) == {"gru": "gru_n"}


def test_a_signal_before_and_after_is_not_a_state() -> None:
    """``x_in`` and ``x_out`` of one shape: the first input is the stream, whatever it is called."""
    shapes = {"x_in": [1, 257, 1, 2], "cache_in_0": [1, 24, 36], "cache_in_1": [1, 24, 36]}
    after = {"x_out": [1, 257, 1, 2], "cache_out_0": [1, 24, 36], "cache_out_1": [1, 24, 36]}
    assert pairs_of(shapes, after) == {"cache_in_0": "cache_out_0", "cache_in_1": "cache_out_1"}


def test_a_cache_shaped_like_sound_is_found_by_its_name() -> None:
    """Audio may have the shape [1, 256], too."""
    assert pairs_of({"in": [1, 512], "cache_in": [1, 256]}, {"out": [1, 256], "cache_out": [1, 256]}) == {
        "cache_in": "cache_out"
    }
    assert looks_like_state("convCache")
    assert looks_like_state("caches_in")
    assert not looks_like_state("spec_in")


def test_states_are_found_by_shapes_where_names_are_ambiguous() -> None:
    """Only where the input cannot be a chunk and one output alone has its form."""
    assert pairs_of(
        {"input_2": [1, 1, 257], "input_3": [1, 2, 128, 2]}, {"a": [1, 1, 257], "b": [1, 2, 128, 2]}
    ) == {"input_3": "b"}
    assert pairs_of({"x": [1, 512], "gain": [3, 4]}, {"y": [1, 512], "z": [1, 512]}) == {}
    assert pairs_of({"x": [1, 512], "k": [1, 512]}, {"y": [1, 512]}) == {}


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (
            {"mic": [1, 64], "far": [1, 64]},
            {"out": [1, 64], "echo": [1, 64]},
            'far: may be a state or a stream.*states={"far": "echo"}.*states={}. if there are none',
        ),
        (
            {"x": [1, 64], "p": [2, 3, 4], "q": [2, 3, 4]},
            {"y": [1, 64], "u": [2, 3, 4], "v": [2, 3, 4]},
            'p, q: may be a state or a constant.*states={"p": "u", "q": "v"}.*constants={"p": "VALUE"}; .*none',
        ),
        (
            {"x": [1, 64], "far": [1, 32], "p": [2, 3], "q": [2, 3]},
            {"y": [1, 64], "echo": [1, 32], "u": [2, 3], "v": [2, 3]},
            "far, p, q: may be a state or a stream or a constant.*constants=.*p",
        ),
        (
            {"x": [1, 1, 161], "h0": [1, 1, 64], "h1": [1, 1, 64]},
            {"y": [1, 1, 161], "hn": [1, 1, 64], "hn1": [1, 1, 64]},
            'h1: may be a state or a stream.*found: h0=hn.*"h1": "hn1".*states={"h0": "hn"}. if there are no others',
        ),
        (
            {"x": [1, 64], "h0": [2, 1, 64], "gain": [2, 4]},
            {"y": [1, 64], "hn": [2, 1, 64], "level": [2, 4]},
            "gain: may be a state or a constant.*found: h0=hn.*gain.*level.*if there are no others",
        ),
        (
            {"mic_in": [1, 64], "ref_in": [1, 64], "h": [1, 1, 8]},
            {"mic_out": [1, 64], "ref_out": [1, 64], "hn": [1, 1, 8]},
            'ref_in: may be.*found: h=hn.*states={"h": "hn", "ref_in": "ref_out"}',
        ),
    ],
    ids=["streams", "two of a form", "both", "names do not go on", "another is named", "signals"],
)
def test_doubtful_pairs_of_states_are_refused(inputs: Shapes, outputs: Shapes, message: str) -> None:
    """The message is the command line to continue with."""
    with pytest.raises(PulsifyError, match=message):
        pairs_of(inputs, outputs)


@pytest.mark.parametrize("states", [{}, {"cache": "cache_next"}], ids=["alone", "beside a state"])
@pytest.mark.parametrize("shape", [[1], [], [3]], ids=["one element", "scalar", "several"])
def test_integers_are_paired_by_name_only(states: dict[str, str], shape: list[int]) -> None:
    """A length and the length of the output have one form; the message has the option for either."""
    inputs = {"x": [1, 80, 1], "length": shape, **dict.fromkeys(states, (1, 2, 20, 64))}
    outputs = {"y": [1, 80, 1], "out_len": shape, **dict.fromkeys(states.values(), (1, 2, 20, 64))}
    integers = ["length", "out_len", "length_next"]
    with pytest.raises(
        PulsifyError, match=r'length: may be a state or a constant.*"length": "out_len".*VALUE'
    ):
        pairs_of(inputs, outputs, integers=integers)
    named = {name: size for name, size in outputs.items() if name != "out_len"}
    assert pairs_of(inputs, {**named, "length_next": shape}, integers=integers) == {
        "length": "length_next",
        **states,
    }


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ([1, 512], 1),
        ([512], 0),
        ([1, 1], 1),
        ([1, 257, 1, 2], 2),
        ([1, 1, 257], 1),
        ([1, 80, 8], None),
        ([8, 80], None),
        ([1, 1, 1, 257], None),
        ([], None),
        ([1, 2, 128, 2], None),
    ],
)
def test_the_time_axis_follows_from_the_shape(shape: list[int], axis: int | None) -> None:
    """The shape is audio, one frame of features, or undecided."""
    axis_and_reason = time_axis(shape, F)
    assert (axis_and_reason[0] if axis_and_reason else None) == axis
    assert time_axis([512], np.dtype(np.int64)) is None


def test_an_input_with_a_time_axis_is_not_a_state() -> None:
    """A signal before and after, whose shape determines no axis: the user gives it."""
    inputs = {"real": [1, 1, 1, 257], "cache": [1, 2, 2, 257]}
    outputs = {"real_out": [1, 1, 1, 257], "cache_out": [1, 2, 2, 257]}
    assert pairs_of(inputs, outputs) == {"real": "real_out", "cache": "cache_out"}
    assert pairs_of(inputs, outputs, ["real"]) == {"cache": "cache_out"}
    nameless = {"y": [1, 1, 1, 257], "z": [1, 2, 2, 257]}
    assert pairs_of(inputs, nameless, ["real"]) == {"cache": "z"}
