"""``python -m bench.views``: the cost of views and the registry if nothing asks for them, and of a view on numpy."""

import argparse
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

import pulse
from bench.measurement.timing import Ratio, alternate, make_stepper
from pulse.build import Add, Connector, Conv1D, GraphView, Node, Tanh
from pulse.extend import Conv
from pulse.models import Model
from pulse.program.backends import implementations
from pulse.program.program import Program

PLAIN, NAMED, REGISTERED, ON_NUMPY = "no view", "named views", "an implementation more", "a view on numpy"
"""The variants of the model that are compared."""
CHANNELS, LAYERS, PULSE = 32, 8, 16
"""Sizes of the model: channels, layers, frames of a pulse."""
SHAPE = f"1,{CHANNELS},T"
"""The shape of the input."""


@dataclass(frozen=True)
class ViewTime:
    """One variant of the model: milliseconds of CPU to compile it, microseconds of a step, ratios to the plain one."""

    title: str
    compile_ms: float
    compile_ratio: float
    step_us: float
    step_ratio: Ratio


def layers() -> tuple[Connector, list[Node]]:
    """Return the output of residual layers, and their convolutions."""
    x = Connector("x", SHAPE)
    convolutions = [
        Conv1D(CHANNELS, CHANNELS, 3, f"conv{layer}", padding_dims=[2, 0], seed=layer)
        for layer in range(LAYERS)
    ]
    for conv in convolutions:
        x = Add()(Tanh()(conv(x)), x)
    return x, convolutions


def variants() -> Mapping[str, Callable[[], Model]]:
    """Return the model in each variant."""

    def without_views() -> Model:
        return layers()[0].graph().graph()

    def with_names() -> Model:
        y, convolutions = layers()
        views = [GraphView(convolutions[:half], name=f"first {half}") for half in range(2, LAYERS, 2)]
        assert len(views) > 2
        return y.graph().graph()

    def on_numpy() -> Model:
        y, convolutions = layers()
        GraphView(convolutions[-1:]).set_backend("numpy")
        return y.graph().graph()

    return {PLAIN: without_views, NAMED: with_names, REGISTERED: without_views, ON_NUMPY: on_numpy}


def compile_variant(title: str, make: Callable[[], Model]) -> Program:
    """Return the program of a variant; for ``REGISTERED``, the registry has one more, unused implementation."""
    if title != REGISTERED:
        return pulse.stream(make(), PULSE)
    registry = list(implementations.REGISTRY)

    def implement(op: Conv, inputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        return op.eval(inputs, {})

    implementations.implements(Conv, kernel="unused", priority=-1)(implement)
    try:
        return pulse.stream(make(), PULSE)
    finally:
        implementations.REGISTRY[:] = registry


def view_times(rounds: int, steps: int) -> list[ViewTime]:
    """Return the times of all variants. Raises AssertionError: results of compiled variants are not bit-identical."""
    variants_by_title = variants()
    programs = {title: compile_variant(title, make) for title, make in variants_by_title.items()}
    spent: dict[str, list[float]] = {title: [] for title in variants_by_title}
    gc.collect()
    gc.disable()
    for round_index in range(rounds):
        titles = list(variants_by_title)
        for title in titles[round_index % len(titles) :] + titles[: round_index % len(titles)]:
            model = variants_by_title[title]
            started_s = time.process_time()
            compile_variant(title, model)
            spent[title].append((time.process_time() - started_s) * 1e3)
    gc.enable()
    x = list(0.1 * np.random.default_rng(0).standard_normal((8, 1, CHANNELS, PULSE)).astype(np.float32))
    states = {title: program.spawn() for title, program in programs.items()}
    for pulse_of_x in x:
        results = {title: next(iter(state.step(pulse_of_x).values())) for title, state in states.items()}
        assert all(results[title].tobytes() == results[PLAIN].tobytes() for title in (NAMED, REGISTERED))
    times = alternate(
        {title: make_stepper(state.step, x) for title, state in states.items()}, rounds, steps, steps
    )
    return [
        ViewTime(
            title,
            median(spent[title]),
            median(own_s / plain_s for own_s, plain_s in zip(spent[title], spent[PLAIN])),
            times.median(title).p50_us,
            times.ratio(title, PLAIN),
        )
        for title in variants_by_title
    ]


def main() -> None:
    """Print a row for each variant."""
    parser = argparse.ArgumentParser(prog="python -m bench.views", description=main.__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    for row in view_times(options.rounds, options.steps):
        print(
            f"{row.title:24} compile {row.compile_ms:7.1f} ms CPU, {row.compile_ratio:5.2f} times; "
            f"step {row.step_us:7.1f} us, {row.step_ratio} times"
        )


if __name__ == "__main__":
    main()
