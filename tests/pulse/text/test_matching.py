"""Queries for parts of graphs."""

import pytest

from pulse.build import Add, BatchNorm1D, Conv1D, GraphView, Parallel, ReLU, Sequential, Sigmoid, Tanh
from pulse.errors import InputError
from pulse.text.matching import MAX_REPEATS, find_matches


def row() -> GraphView:
    """Conv a, BatchNormalization b, Relu c, Conv d, Relu e, read by Tanh t and Sigmoid s, Add p."""
    names = [Conv1D(1, 2, 1, "a"), BatchNorm1D(2, name="b"), ReLU("c"), Conv1D(2, 2, 1, "d"), ReLU("e")]
    return Sequential([*names, Parallel([Tanh("t"), Sigmoid("s")]), Add("p")])


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("Conv->BatchNorm?->Relu", ["abc", "de"]),
        ("Conv->BatchNormalization->Relu", ["abc"]),
        ("conv", ["a", "d"]),
        ("Conv->$+", ["abcdetp"]),
        ("Conv.->$->Relu", ["abc"]),
        ("Relu.->$", ["cd"]),
        ("Relu->(Tanh|Sigmoid)", ["et"]),
        ("Relu->(Sigmoid|Tanh)->Add", ["esp"]),
        ("Relu#r->Tanh;Relu#r->Sigmoid", ["ets"]),
        ("Tanh->Add#x;Sigmoid->Add#x", ["tps"]),
        ("(Conv->BatchNorm?->Relu)+", ["abcde"]),
        ("(Conv->BatchNorm?->Relu)+.", ["abc"]),
        ("Tanh?->Add", ["tp"]),
        ("Relu->Relu", []),
        (" Conv -> BatchNorm ", ["ab"]),
    ],
)
def test_parts_that_fit_are_found(query: str, parts: list[str]) -> None:
    assert sorted("".join(node.name for node in part) for part in row().match(query)) == [
        "".join(sorted(part, key="abcdetsp".index)) for part in sorted(parts)
    ]


def test_tags_name_nodes_and_matches_keep_the_order_of_the_query() -> None:
    graph = row().graph("1,1,T").graph
    (match,) = find_matches(graph, "Conv#first->BatchNorm->Relu#last")
    assert [graph.nodes[node].name for node in match.nodes] == ["a", "b", "c"]
    assert {tag: graph.nodes[node].name for tag, node in match.tags.items()} == {"first": "a", "last": "c"}


def test_an_output_has_another_reader() -> None:
    model = row().graph("1,1,T").analyse().with_outputs(["c", "p"])
    assert not find_matches(model.graph, "relu.->Conv")
    assert len(find_matches(model.graph, "relu->Conv")) == 1


def test_constants_are_not_operators() -> None:
    graph = row().graph("1,1,T").analyse().graph
    assert all(len(match.nodes) == 1 for match in find_matches(graph, "$"))
    assert {type(graph.nodes[match.nodes[0]].op).__name__ for match in find_matches(graph, "$")}.isdisjoint(
        {"Const", "Source"}
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "an operator"),
        ("Conv->", "an operator, . or a bracket is expected after 'Conv->'"),
        ("(Conv", "a bracket is not closed"),
        ("Conv)", "is not expected"),
        ("Conv#", "a tag"),
        ("Conv&Relu", "'&' is not expected"),
        pytest.param("(" * 500, "a query of 500 characters", id="500 brackets"),
    ],
)
def test_invalid_queries_are_refused(query: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        row().match(query)


def test_a_query_with_too_many_ways_is_refused() -> None:
    deep = Sequential([[Parallel([ReLU(), Tanh()]), Add()] for _ in range(30)])
    with pytest.raises(InputError, match="too many ways"):
        deep.match("Relu->$+->Conv")
    long = Sequential([ReLU() for _ in range(MAX_REPEATS + 2)])
    with pytest.raises(InputError, match=f"more than {MAX_REPEATS} times"):
        long.match("Relu+")
