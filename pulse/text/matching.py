"""Queries for parts of graphs: ``Conv->BatchNorm?->(Relu|Tanh)``.

query   chain ; chain ; …     all of them; nodes with one tag are one node
chain   step -> step -> …     each reads the one before it
step    Conv                  an operator by its name, ignoring case; ``Norm`` at the end means Normalization
        $                     any operator
        (a->b|c)              one of several chains
        step? step* step+     none or one, any number, one at least; as many as fit
        step.                 read by the next step alone
        step#name             a tag
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from pulse.errors import InputError
from pulse.graph import Graph, OutletId
from pulse.support.printable import printable
from pulse.support.record import record
from pulse.text.dump import HasNameAndDetail

F = TypeVar("F")
O = TypeVar("O", bound=HasNameAndDetail)

MAX_STEPS = 1_000_000
"""Maximum number of steps of one query; ``$*`` has exponentially many paths through some graphs."""
MAX_QUERY_LENGTH = 400
"""Maximum number of characters of a query."""
MAX_REPEATS = 100
"""How often one step may be repeated."""
_TOKEN = re.compile(r"\s*(->|[A-Za-z_][\w:]*|[$()|?*+.;#]|\d+|\S)")
_TIMES = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_INPUTS = ("Source", "Const", "Input", "Constant")
"""Ops that no step matches, unless it has their name."""


@record(eq=False)
class _Step:
    """One step of a chain.

    names         the operators, in lowercase; none: any
    alternatives  the chains of a group; empty if it is not a group
    min_times     how often it must occur
    max_times     how often it may occur; None: any number of times
    alone         whether only the next step may read its output
    tag           the name under which its node is returned
    """

    names: frozenset[str] = frozenset()
    alternatives: "tuple[tuple[_Step, ...], ...]" = ()
    min_times: int = 1
    max_times: int | None = 1
    alone: bool = False
    tag: str = ""


@record
class Match:
    """Nodes that fit a query.

    nodes  their ids, in the order of the query
    tags   tag -> node
    """

    nodes: tuple[int, ...]
    tags: Mapping[str, int]


_Chain: TypeAlias = tuple[_Step, ...]
_PartialMatch: TypeAlias = tuple[tuple[int, ...], dict[str, int]]
"""The nodes matched so far, and their tags."""


def find_matches(graph: Graph[F, O], query: str, among: Container[int] | None = None) -> list[Match]:
    """Return the parts of a graph that fit, in the order of the graph, none of a node that is in an earlier one.

    among   the nodes that parts are made of; all of them by default
    Raises InputError: not a query, or one that has too many ways through this graph
    """
    chains = _Parser(query).query()
    search = _Search(graph, query, among)
    used_nodes: set[int] = set()
    matches: list[Match] = []
    for start in search.order:
        for nodes, tags in search.all_chains(chains, start):
            if nodes and used_nodes.isdisjoint(nodes):
                used_nodes.update(nodes)
                matches.append(Match(tuple(dict.fromkeys(nodes)), tags))
                break
    return matches


def matches_text(graph: Graph[F, O], query: str) -> str:
    """Return the parts that fit, one a line, and how many there are. Raises InputError as ``find_matches``."""
    matches = find_matches(graph, query)
    nodes = graph.nodes
    lines = [
        " -> ".join(f"{nodes[node_id].name} ({nodes[node_id].op.name})" for node_id in match.nodes)
        for match in matches
    ]
    fit = "1 part fits" if len(matches) == 1 else f"{len(matches)} parts fit"
    return "\n".join([*map(printable, lines), printable(f"{fit} {query}")]) + "\n"


class _Parser:
    """Reads a query."""

    def __init__(self, query: str) -> None:
        if len(query) > MAX_QUERY_LENGTH:
            raise InputError(f"a query of {len(query)} characters; at most {MAX_QUERY_LENGTH} are supported")
        self._query = query
        self._tokens: list[str] = _TOKEN.findall(query)
        self._position = 0

    def query(self) -> list[_Chain]:
        """Return all chains. Raises InputError: a syntax error."""
        chains = [self._chain()]
        while self._take_if(";"):
            chains.append(self._chain())
        if self._position < len(self._tokens):
            raise self._error(f"{self._tokens[self._position]!r} is not expected")
        return chains

    def _chain(self) -> _Chain:
        steps = [self._step()]
        while self._take_if("->"):
            steps.append(self._step())
        return tuple(steps)

    def _step(self) -> _Step:
        names: frozenset[str] = frozenset()
        alternatives: tuple[_Chain, ...] = ()
        if self._take_if("("):
            chains = [self._chain()]
            while self._take_if("|"):
                chains.append(self._chain())
            if not self._take_if(")"):
                raise self._error("a bracket is not closed")
            alternatives = tuple(chains)
        elif not self._take_if("$"):
            name = self._name("an operator, $ or a bracket is expected").lower()
            names = frozenset({name, f"{name}alization"} if name.endswith("norm") else {name})
        tag = self._name("a tag is expected after #", r"\w+") if self._take_if("#") else ""
        min_times, max_times = next((times for sign, times in _TIMES.items() if self._take_if(sign)), (1, 1))
        return _Step(names, alternatives, min_times, max_times, self._take_if("."), tag)

    def _take_if(self, token: str) -> bool:
        is_next = self._position < len(self._tokens) and self._tokens[self._position] == token
        self._position += is_next
        return is_next

    def _name(self, otherwise: str, pattern: str = r"[A-Za-z_][\w:]*") -> str:
        if self._position == len(self._tokens) or not re.fullmatch(pattern, self._tokens[self._position]):
            raise self._error(otherwise)
        self._position += 1
        return self._tokens[self._position - 1]

    def _error(self, message: str) -> InputError:
        before = "".join(self._tokens[: self._position])
        where = f" after {before!r}" if before else ""
        return InputError(
            f"query {self._query!r}: {message}{where}; a query is such as 'Conv->BatchNorm?->Relu'"
        )


class _Search:
    """The ways of chains through a graph."""

    def __init__(self, graph: Graph[F, O], query: str, among: Container[int] | None) -> None:
        self._among = among
        self._names = {node.id: node.op.name.lower() for node in graph.nodes}
        self._plain = {node.id for node in graph.nodes if type(node.op).__name__ not in _INPUTS}
        self._readers: dict[int, list[int]] = {}
        self._output_nodes: set[int] = {outlet.node for outlet in graph.outputs}
        for node in graph.nodes:
            readers = dict.fromkeys(inlet.node for outlet in node.outputs for inlet in outlet.successors)
            self._readers[node.id] = list(readers)
        self.order = graph.order([OutletId(node.id) for node in graph.nodes if node.outputs])
        self._query, self._steps = query, 0

    def all_chains(self, chains: Sequence[_Chain], start: int) -> Iterator[_PartialMatch]:
        """Yield the nodes and tags of all chains, the first of which begins at a node."""

        def further(position: int, match: _PartialMatch) -> Iterator[_PartialMatch]:
            if position == len(chains):
                yield match
                return
            for first in (start,) if position == 0 else self.order:
                for more, tags in self._chain(chains[position], 0, ((), match[1]), first):
                    yield from further(position + 1, (match[0] + more, tags))

        return further(0, ((), {}))

    def _chain(self, chain: _Chain, index: int, match: _PartialMatch, start: int) -> Iterator[_PartialMatch]:
        if index == len(chain):
            yield match
            return
        for longer in self._match_repeatedly(chain[index], 0, match, start):
            yield from self._chain(chain, index + 1, longer, start)

    def _match_repeatedly(
        self, step: _Step, count: int, match: _PartialMatch, start: int
    ) -> Iterator[_PartialMatch]:
        """Yield repeated matches, the longest first."""
        if step.max_times is None or count < step.max_times:
            if count == MAX_REPEATS:
                raise InputError(
                    f"query {self._query!r}: a step repeats more than {MAX_REPEATS} times; omit * and +"
                )
            for longer in self._match_once(step, match, start):
                if len(longer[0]) > len(match[0]):
                    yield from self._match_repeatedly(step, count + 1, longer, start)
        if count >= step.min_times:
            yield match

    def _match_once(self, step: _Step, match: _PartialMatch, start: int) -> Iterator[_PartialMatch]:
        nodes, tags = match
        if step.alternatives:
            for alternative in step.alternatives:
                for longer in self._chain(alternative, 0, match, start):
                    if not step.alone or not longer[0] or self._is_private(longer[0][-1]):
                        yield longer
            return
        for node in self._readers[nodes[-1]] if nodes else (start,):
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise InputError(
                    f"query {self._query!r}: it has too many ways through this graph; name operators in place of $"
                )
            fits_name = self._names[node] in step.names if step.names else node in self._plain
            fits = fits_name and (self._among is None or node in self._among)
            if fits and tags.get(step.tag, node) == node and (not step.alone or self._is_private(node)):
                yield (*nodes, node), {**tags, step.tag: node} if step.tag else tags

    def _is_private(self, node: int) -> bool:
        """Return whether a wire has at most one reader and is not an output."""
        return len(self._readers[node]) <= 1 and node not in self._output_nodes
