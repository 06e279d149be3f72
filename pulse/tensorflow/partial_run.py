"""A run of a session in parts, as inputs arrive."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pulse.errors import InputError
from pulse.facts import Array
from pulse.tensorflow.graph_node import NodeOutput


class PartialRun:
    """A run that takes its feeds, and returns its fetches, in several parts.

    Results of a part are passed to later parts, so that they are not computed again; each target runs once.
    Assignments that a part needs are part of that run: fetch a tensor after them once.

    run   ``Session.run``, called with fetches, feeds and targets
    """

    def __init__(
        self, run: Callable[..., Any], fetches: Sequence[str], feeds: Sequence[str], targets: Sequence[str]
    ) -> None:
        self._run = run
        self._fetches = {_full_name(name) for name in fetches}
        self._feeds = {_full_name(name) for name in feeds}
        self._targets = set(targets)
        self._values: dict[str, Any] = {}

    def run(
        self,
        fetches: str | Sequence[str] = (),
        feeds: Mapping[str, Any] | None = None,
        targets: Sequence[str] = (),
    ) -> Any:
        """Feed some more tensors, and compute some of the fetches.

        fetches, feeds, targets  of those that the run was set up with, each once
        Returns  the array of the one name, or a list of them
        Raises   InputError: a name was not set up, or was used before; LoadError, FactError: as in ``Session.run``
        """
        names = [fetches] if isinstance(fetches, str) else list(fetches)
        fed = {_full_name(name): value for name, value in (feeds or {}).items()}
        for kind, requested, left, done in (
            ("feed", fed, self._feeds, "was fed already"),
            ("fetch", map(_full_name, names), self._fetches, "was given already"),
            ("target", targets, self._targets, "has run already"),
        ):
            for name in requested:
                if name not in left:
                    raise InputError(f"{kind} {name}: the partial run was not set up with it, or it {done}")
        feeds_so_far = self._values | fed
        results: list[Array | None] = self._run(names, feeds_so_far, targets)
        self._feeds -= fed.keys()
        self._fetches -= {_full_name(name) for name in names}
        self._targets -= set(targets)
        values = {_full_name(name): value for name, value in zip(names, results) if value is not None}
        self._values = feeds_so_far | values
        return results[0] if isinstance(fetches, str) else results


def _full_name(name: str) -> str:
    return str(NodeOutput.parse(name))
