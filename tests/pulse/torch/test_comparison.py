"""A comparison of two functions of arrays, of which the one stands for a module and the other for what was exported."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from pulse.errors import InputError, LoadError
from pulse.facts import Array
from pulse.ops.arithmetic import Arithmetic
from pulse.torch.comparison import Comparison
from pulse.torch.inputs import SampledInputs
from tests.noise import next_noise
from tests.pulse.model_builder import ModelBuilder

Outputs = dict[str, Array]


def sampled_inputs(**more: int) -> dict[str, SampledInputs]:
    """Inputs ``x`` [1, 3, T], and one [1, S] for each other length."""
    rng = np.random.default_rng(0)
    samples = {"x": SampledInputs(next_noise(rng, 1, 3, 20), {2: "T"})}
    for symbol, length in more.items():
        samples[symbol.lower()] = SampledInputs(next_noise(rng, 1, length), {1: symbol})
    return samples


class Seen:
    """A function of arrays that remembers the lengths that it was asked for, and refuses some."""

    def __init__(
        self, function: Callable[..., Any], takes: Callable[[dict[str, int]], bool] = lambda lengths: True
    ) -> None:
        self.function = function
        self.takes = takes
        self.ran: list[dict[str, int]] = []
        self.refused: list[dict[str, int]] = []

    def __call__(self, feeds: Mapping[str, Array]) -> Outputs:
        lengths = {name: value.shape[-1] for name, value in feeds.items()}
        if not self.takes(lengths):
            self.refused.append(lengths)
            raise InputError(f"RuntimeError: no such length as {list(lengths.values())}")
        self.ran.append(lengths)
        result = self.function(**feeds)
        return result if isinstance(result, dict) else {"y": result}


def difference_of(
    module: Callable[..., Any],
    model: Callable[..., Any],
    samples: dict[str, SampledInputs],
    lengths: Any = None,
) -> list[str]:
    def oracle(feeds: Mapping[str, Array], arithmetic: Arithmetic) -> Outputs:
        return model(feeds)

    return Comparison("Net", module, oracle, samples, "axis 2 of x (T)").require_equal(lengths)


def double(x: Array) -> Array:
    return 2 * x


def test_equal_functions_run_at_a_shorter_and_a_longer_length() -> None:
    module, model = Seen(double), Seen(lambda x: x + x)
    assert difference_of(module, model, sampled_inputs()) == []
    assert [lengths["x"] for lengths in module.ran] == [lengths["x"] for lengths in model.ran] == [7, 41, 7]


@pytest.mark.parametrize("samples", [sampled_inputs(), {"x": SampledInputs(np.arange(3.0), {})}])
def test_a_choice_that_only_large_values_show_is_refused(samples: dict[str, SampledInputs]) -> None:
    with pytest.raises(LoadError, match="on floats that are 10 times as large it differs: output y, at "):
        difference_of(Seen(lambda x: np.where(abs(x) > 5, 5, x)), Seen(lambda x: x), samples)


def test_larger_values_that_overflow_show_nothing() -> None:
    def refuse(x: Array) -> Array:
        if abs(x).max() > 5:
            raise InputError("AssertionError: too loud")
        return x

    for module in (lambda x: np.where(abs(x) > 5, np.inf, x), refuse):
        assert difference_of(Seen(module), Seen(lambda x: x), sampled_inputs()) == []


def test_without_dynamic_axes_the_module_runs_twice() -> None:
    module = Seen(double)
    assert difference_of(module, double_of, {"x": SampledInputs(np.ones((1, 3), np.float32), {})}) == []
    assert len(module.ran) == 2


def test_a_difference_on_a_fixed_size_example_is_refused() -> None:
    samples = {"x": SampledInputs(np.ones((1, 3), np.float32), {})}
    with pytest.raises(
        LoadError,
        match=r"Net: .* differs from the module on the example itself, .*: output y, at \[0, 0\]: ",
    ):
        difference_of(Seen(double), lambda feeds: {"y": 3 * feeds["x"]}, samples)


@pytest.mark.parametrize(
    ("exported", "words"),
    [
        pytest.param(
            lambda x: 2 * x[..., :25],
            r"T = 41 .*output y: the module returns shape \[1, 3, 41\], the model \[1, 3, 25\]",
            id="shorter",
        ),
        pytest.param(
            lambda x: 2 * np.pad(x, [(0, 0), (0, 0), (0, 20 - x.shape[2])]),
            r"T = 7 .* the model \[1, 3, 20\]",
            id="longer",
        ),
        pytest.param(
            lambda x: x * (2 + (np.arange(x.shape[2]) >= 20)),
            r"T = 41 .*output y, frame 20, at \[0, 0, 20\]: ",
            id="changes after 20 frames",
        ),
        pytest.param(
            lambda x: x * x.shape[2] / 10,
            r"T = 7 .*output y, frame 0, at \[0, 0, 0\]: the module returns .*, the model ",
            id="scaled by the length",
        ),
    ],
)
def test_a_baked_length_is_refused_with_the_place_and_its_causes(
    exported: Callable[[Array], Array], words: str
) -> None:
    with pytest.raises(
        LoadError, match=rf"Net: .* at the example's length \(T = 20\), but at {words}"
    ) as caught:
        difference_of(Seen(double), lambda feeds: {"y": exported(**feeds)}, sampled_inputs())
    for part in ("axis 2 of x (T)", "typical causes are int(x.shape[-1])"):
        assert part in str(caught.value)


def test_a_model_that_refuses_a_length_of_the_module_is_refused() -> None:
    """A constant with the example's length fixes the symbol to that length, as in a real model."""
    builder = ModelBuilder(x="1,3,T")
    table = builder.constant(np.ones((1, 3, 20), np.float32))
    typed = builder.model(builder.apply("mul", builder["x"], table), names=["y"])
    with pytest.raises(
        LoadError, match=r"at T = 7 it differs: the model refuses .*\(T==20\), which T=7 does not sat"
    ):
        difference_of(Seen(lambda x: x), typed.run, sampled_inputs())


def test_a_model_that_never_runs_is_refused() -> None:
    """An operator that is not supported, for instance: no length is the cause."""
    with pytest.raises(
        LoadError, match=r"on the example itself, .*: the model refuses .* no such length as \[20\]"
    ):
        difference_of(Seen(double), Seen(double, lambda lengths: False), sampled_inputs())


def test_a_module_failing_on_its_example_is_compared_elsewhere() -> None:
    module = Seen(double, lambda lengths: lengths["x"] != 20)
    with pytest.raises(
        LoadError, match=r"differs from the module at T = 7, and on the example .* such length as \[20\]"
    ):
        difference_of(module, Seen(lambda x: 3 * x), sampled_inputs())


def test_near_lengths_are_tried_if_the_module_refuses() -> None:
    """The module takes multiples of 5 from 10 on."""
    module = Seen(double, lambda lengths: lengths["x"] % 5 == 0 and lengths["x"] >= 10)
    assert difference_of(module, double_of, sampled_inputs()) == []
    assert [lengths["x"] for lengths in module.ran] == [10, 40, 10]
    assert len(module.refused) > 2


def double_of(feeds: Mapping[str, Array]) -> Outputs:
    return {"y": 2 * feeds["x"]}


def test_a_module_without_shorter_inputs_gets_no_note() -> None:
    """There is nothing to report: streams are longer."""
    assert difference_of(Seen(double, lambda lengths: lengths["x"] >= 20), double_of, sampled_inputs()) == []


@pytest.mark.parametrize("takes_all", [True, False])
def test_a_shorter_length_is_noted_only_if_the_module_takes_it(takes_all: bool) -> None:
    def bind(feeds: Mapping[str, Array]) -> None:
        if feeds["x"].shape[-1] % 4:
            raise InputError("T-4*(T/4)==0")

    module = Seen(double, lambda lengths: takes_all or lengths["x"] % 4 == 0)
    samples = sampled_inputs()
    comparison = Comparison("Net", module, lambda feeds, arithmetic: double_of(feeds), samples, "", bind=bind)
    assert bool(comparison.require_equal()) is takes_all


def test_multiples_of_a_symbol_change_with_it() -> None:
    samples = sampled_inputs()
    samples["s"] = SampledInputs(next_noise(np.random.default_rng(1), 1, 80), {1: "4*T"})
    module = Seen(lambda x, s: {"y": x + s[:, None, ::4]})
    assert difference_of(module, Seen(lambda x, s: {"y": x + s[:, None, ::4]}), samples) == []
    assert [tuple(lengths.values()) for lengths in module.ran] == [(7, 28), (41, 164), (7, 28)]


def test_an_even_length_changes_multiples_too() -> None:
    """A shorter length that powers of two divide is the only one that the module takes."""
    samples = sampled_inputs()
    samples["s"] = SampledInputs(next_noise(np.random.default_rng(1), 1, 80), {1: "4*T"})
    module = Seen(
        lambda x, s: {"y": x + s[:, None, ::4]},
        lambda lengths: lengths["s"] == 4 * lengths["x"] and lengths["x"] in (8, 41),
    )

    def oracle(feeds: Mapping[str, Array], arithmetic: Arithmetic) -> Outputs:
        return {"y": feeds["x"] + feeds["s"][:, None, ::4]}

    Comparison("Net", module, oracle, samples, "").require_equal(try_even_length=True)
    assert module.ran[0] == {"x": 8, "s": 32}


def test_a_module_without_longer_inputs_gets_a_note() -> None:
    notes = difference_of(Seen(double, lambda lengths: lengths["x"] <= 20), double_of, sampled_inputs())
    assert len(notes) == 1
    assert "longer than the example's (T = 20)" in notes[0]
    assert "at T = 41: RuntimeError: no such length" in notes[0]


def test_a_module_that_runs_at_no_other_length_is_refused() -> None:
    module = Seen(double, lambda lengths: lengths["x"] in (20, 33))
    with pytest.raises(
        InputError, match=r"Net: T may .* the example's 20 frames .* at T = 41: RuntimeError: .*lengths="
    ):
        difference_of(module, double_of, sampled_inputs())
    assert len(module.refused) < 40
    assert difference_of(module, double_of, sampled_inputs(), [{"T": 33}]) == []


def test_given_lengths_are_the_only_ones() -> None:
    """They are tried in their order, and no others; one that the module refuses is reported."""
    module = Seen(double, lambda lengths: lengths["x"] != 9)
    assert difference_of(module, double_of, sampled_inputs(), [{"T": 33}, {"T": 8}]) == []
    assert [lengths["x"] for lengths in module.ran] == [33, 8, 8]
    with pytest.raises(
        InputError, match=r"Net: the module does not run on T = 9: RuntimeError: .*; give lengths"
    ):
        difference_of(module, double_of, sampled_inputs(), [{"T": 9}])


def test_each_symbol_is_varied() -> None:
    """Alone; what is baked in of either is found."""
    module = Seen(lambda x, s: {"y": 2 * x, "z": 3 * s})
    assert difference_of(module, Seen(lambda x, s: {"y": 2 * x, "z": 3 * s}), sampled_inputs(S=8)) == []
    ran = [(lengths["x"], lengths["s"]) for lengths in module.ran]
    assert ran == [(7, 8), (41, 8), (20, 3), (20, 17), (7, 8)]
    with pytest.raises(LoadError, match=r"\(T = 20, S = 8\), but at T = 20, S = 17 it differs: output z"):
        difference_of(module, Seen(lambda x, s: {"y": 2 * x, "z": 3 * s[:, :8]}), sampled_inputs(S=8))


def test_symbols_that_depend_on_each_other_change_in_proportion() -> None:
    """They change in proportion where neither can change alone; a third one still changes alone."""
    module = Seen(
        lambda x, s, r: {"y": x[..., ::4] + s[:, None], "r": r},
        lambda lengths: lengths["x"] == 4 * lengths["s"],
    )
    model = Seen(lambda x, s, r: {"y": x[..., ::4] + s[:, None], "r": r})
    assert difference_of(module, model, sampled_inputs(S=5, R=10)) == []
    ran = [tuple(lengths.values()) for lengths in module.ran]
    assert [lengths for lengths in ran if lengths[0] == 20] == [(20, 5, 4), (20, 5, 21)]
    assert len({x for x, s, r in ran}) == 3
    assert all(x == 4 * s for x, s, r in ran)


def test_a_module_that_never_gives_the_same_is_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(LoadError, match=r"Net: output y differs between two runs on the same input.* random"):
        difference_of(Seen(lambda x: x + rng.standard_normal(x.shape)), double_of, sampled_inputs())


def test_outputs_as_many_as_frames_are_refused() -> None:
    """A list over time has another number of outputs at each length."""

    def frames(x: Array) -> Outputs:
        return {f"f{frame}": x[..., frame] for frame in range(x.shape[-1])}

    def exported_outputs(feeds: Mapping[str, Array]) -> Outputs:
        return {f"f{frame}": feeds["x"][..., min(frame, feeds["x"].shape[-1] - 1)] for frame in range(20)}

    with pytest.raises(LoadError, match="at T = 7 it differs: the module returns 7 outputs, the model 20"):
        difference_of(Seen(frames), exported_outputs, sampled_inputs())
