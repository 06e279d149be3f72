"""Random graphs written edge by edge, by calls and by structures: the same graph, the same model."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

import pulse
from pulse.build import (
    ELU,
    Add,
    AvgPool1D,
    Concat,
    Connector,
    Conv1D,
    ConvDepthWise1D,
    GraphView,
    LeakyReLU,
    Mul,
    Node,
    Parallel,
    ReLU,
    Sequential,
    Sigmoid,
    Sub,
    Tanh,
)
from tests.noise import normal_noise
from tests.pulse.build.edges import edges

CHANNELS = 3
SHAPE = f"1,{CHANNELS},T"
ONE: Sequence[Callable[[str, int], Node]] = (
    lambda name, seed: Conv1D(CHANNELS, CHANNELS, 3, name, padding_dims=[2, 0], seed=seed),
    lambda name, seed: Conv1D(CHANNELS, CHANNELS, 2, name, padding_dims=[1, 0], seed=seed),
    lambda name, seed: ConvDepthWise1D(CHANNELS, 3, name, padding_dims=[1, 1], seed=seed),
    lambda name, seed: AvgPool1D(3, name, padding_dims=[1, 1], stride_dims=1),
    lambda name, seed: ReLU(name),
    lambda name, seed: Tanh(name),
    lambda name, seed: Sigmoid(name),
    lambda name, seed: ELU(name=name),
    lambda name, seed: LeakyReLU(name=name),
)
"""Operators of one input that keep the shape."""
TWO: Sequence[Callable[[str], Node]] = (
    lambda name: Add(name),
    lambda name: Sub(name),
    lambda name: Mul(name),
)
"""Operators of two inputs that keep the shape."""


@dataclass
class Plan:
    """A graph: for each node what makes it, and which nodes it reads; -1 is the input."""

    makers: list[Callable[[], Node]] = field(default_factory=list[Callable[[], Node]])
    reads: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])

    @property
    def ends(self) -> list[int]:
        """The nodes that no other reads."""
        read = {source for sources in self.reads for source in sources}
        return [number for number in range(len(self.reads)) if number not in read]

    def by_calls(self) -> GraphView:
        x = Connector("x", SHAPE)
        connectors: list[Connector] = []
        for make, sources in zip(self.makers, self.reads):
            connectors.append(make()(*(x if source < 0 else connectors[source] for source in sources)))
        ends = [connectors[number] for number in self.ends]
        return ends[0].graph(*ends[1:])

    def by_edges(self, rng: np.random.Generator) -> GraphView:
        """The edges in any order, those of the input too."""
        x, nodes = Connector("x", SHAPE), [make() for make in self.makers]
        listed = [
            (source, target, place)
            for target, sources in enumerate(self.reads)
            for place, source in enumerate(sources)
        ]
        for index in rng.permutation(len(listed)):
            source, target, place = listed[index]
            if source < 0:
                x.feed(nodes[target], place)
            else:
                nodes[source].add_child(nodes[target], out=0, in_=place)
        return GraphView(nodes, outputs=[Connector.of(nodes[number]) for number in self.ends])


def random_plan(rng: np.random.Generator) -> Plan:
    """Up to twelve nodes, each of which reads any before it."""
    plan = Plan()
    for number in range(int(rng.integers(1, 13))):
        seed = int(rng.integers(1 << 30))
        if rng.random() < 0.4:
            make = TWO[int(rng.integers(len(TWO)))]
            plan.makers.append(lambda make=make, name=f"n{number}": make(name))
            plan.reads.append((int(rng.integers(-1, number)), int(rng.integers(-1, number))))
        else:
            make_unary = ONE[int(rng.integers(len(ONE)))]
            plan.makers.append(
                lambda make_unary=make_unary, name=f"n{number}", seed=seed: make_unary(name, seed)
            )
            plan.reads.append((int(rng.integers(-1, number)),))
    return plan


class Trees:
    """Random structures and, in the same order, the calls that they stand for."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.count = rng, 0

    def make(self, depth: int) -> "tuple[object, Callable[[Connector], Connector]]":
        """A part that keeps the shape, and what calls make of it."""
        kind = self.rng.random() if depth else 1.0
        if kind < 0.4:
            parts = [self.make(depth - 1) for _ in range(int(self.rng.integers(1, 4)))]
            listed = [part for part, _ in parts]
            return (Sequential(listed) if self.rng.random() < 0.5 else listed), _in_a_row(
                [call for _, call in parts]
            )
        if kind < 0.75:
            return self.merge_branches(depth)
        self.count += 1
        make_unary, name, seed = (
            ONE[int(self.rng.integers(len(ONE)))],
            f"n{self.count}",
            int(self.rng.integers(1 << 30)),
        )
        return make_unary(name, seed), lambda x: make_unary(name, seed)(x)

    def merge_branches(self, depth: int) -> "tuple[object, Callable[[Connector], Connector]]":
        (left, by_left), (right, by_right) = (self.make(depth - 1) for _ in range(2))
        self.count += 1
        name = f"n{self.count}"
        if self.rng.random() < 0.7:
            make_binary = TWO[int(self.rng.integers(len(TWO)))]
            return [Parallel([left, right]), make_binary(name)], lambda x: make_binary(name)(
                by_left(x), by_right(x)
            )
        mix = f"{name}.mix"

        def join_nodes() -> list[Node]:
            return [Concat(2, 1, name), Conv1D(2 * CHANNELS, CHANNELS, 1, mix, seed=1)]

        def call(x: Connector) -> Connector:
            concat, conv = join_nodes()
            return conv(concat(by_left(x), by_right(x)))

        return [Parallel([left, right]), *join_nodes()], call


def _in_a_row(calls: Iterable[Callable[[Connector], Connector]]) -> Callable[[Connector], Connector]:
    listed = list(calls)

    def call(x: Connector) -> Connector:
        for layer_call in listed:
            x = layer_call(x)
        return x

    return call


def assert_same(first: GraphView, second: GraphView, streams: bool, seed: int) -> None:
    """The same nodes, attributes, parameters and edges; the same numbers; and a stream equal to them."""
    assert edges(first) == edges(second)
    kinds = [{node.name: (node.type, node.attributes) for node in view} for view in (first, second)]
    assert kinds[0] == kinds[1]
    x = normal_noise(1, CHANNELS, 7, seed=seed)
    results = [list(view.forward(x).values()) for view in (first, second)]
    assert len(results[0]) == len(results[1])
    assert all(np.array_equal(left, other, equal_nan=True) for left, other in zip(*results))
    if streams:
        pulse.verify(pulse.load(second, inputs={"x": SHAPE}), pulse=3, backend="numpy", lengths=[1, 8])


def compare(numbers: Iterable[int]) -> Counter[str]:
    """How many graphs of each kind, and of how many nodes."""
    counts: Counter[str] = Counter()
    for number in numbers:
        rng = np.random.default_rng(number)
        plan = random_plan(rng)
        assert_same(plan.by_calls(), plan.by_edges(rng), number % 8 == 0, number)
        counts["by edges"] += 1
        part, call = Trees(rng).make(3)
        view, called = Sequential([part]), call(Connector("x", SHAPE)).graph()
        assert_same(called, view, number % 8 == 1, number)
        counts["by structures"] += 1
        counts["nodes"] += len(plan.reads) + len(view)
    return counts


def test_both_syntaxes_build_the_same_random_graphs() -> None:
    assert compare(range(24))["nodes"] > 150


@pytest.mark.slow
def test_both_syntaxes_build_many_of_the_same_random_graphs() -> None:
    counts = compare(range(1000, 3000))
    print(dict(counts))
    assert counts["by edges"] == counts["by structures"] == 2000
