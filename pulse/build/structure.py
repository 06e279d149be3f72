"""Nodes in a row and side by side."""

import itertools
from collections.abc import Sequence

from pulse.build.nodes import Component, GraphView, Node
from pulse.errors import InputError
from pulse.infer.network import Constant
from pulse.support.wording import count_of


def make_view(part: Component) -> GraphView:
    """Return a part as a view: a list is a sequence. Raises InputError: something else, or an empty list."""
    if isinstance(part, GraphView):
        return part
    if isinstance(part, Node):
        if isinstance(part.op, Constant):
            raise InputError(
                f"{part.name}: a constant is not a part of a structure; connect it with add_child"
            )
        return GraphView([part])
    if isinstance(part, Sequence) and not isinstance(part, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return Sequential(part)
    raise InputError(f"a structure is made of nodes, views and lists of them, not of {part!r}")


def Sequential(parts: Sequence[Component], name: str = "") -> GraphView:
    """Return parts in a row: the outputs of each feed the open inputs of the next, in their order.

    parts   nodes, views, lists (which are sequences)
    name    name of the view
    Raises  InputError: no parts, a part twice, or one with another number of inputs than the previous one has outputs
    """
    views = [make_view(part) for part in parts]
    if not views:
        raise InputError("a sequence needs at least one part")
    _require_once(views)
    inputs = views[0].inputs()
    for before, after in itertools.pairwise(views):
        ends, open_inputs = before.outputs(), after.open_inputs()
        if len(ends) != len(open_inputs):
            raise InputError(
                f"{_text(before)} has {count_of(len(ends), 'output')} and {_text(after)} has "
                f"{count_of(len(open_inputs), 'open input')}; "
                "they are connected one to one"
            )
        for end, open_input in zip(ends, open_inputs):
            after.feed(open_input, end)
    return GraphView([node for view in views for node in view], inputs, views[-1].outputs(), name)


def Parallel(parts: Sequence[Component], name: str = "") -> GraphView:
    """Return parts side by side: all read the same inputs; the outputs are the parts' outputs, in their order.

    parts   nodes, views, lists (which are sequences)
    name    name of the view
    Raises  InputError: no parts, a part twice, or parts with different numbers of open inputs
    """
    views = [make_view(part) for part in parts]
    if not views:
        raise InputError("parallel parts need at least one part")
    _require_once(views)
    first = views[0].open_inputs()
    for view in views[1:]:
        inputs = view.open_inputs()
        if len(inputs) != len(first):
            raise InputError(
                f"parallel parts read the same inputs: {_text(views[0])} has {len(first)} open ones, {_text(view)} has "
                f"{len(inputs)}"
            )
        for open_input, shared in zip(inputs, first):
            view.feed(open_input, shared)
    outputs = [end for view in views for end in view.outputs()]
    return GraphView([node for view in views for node in view], first, outputs, name)


def _require_once(views: Sequence[GraphView]) -> None:
    visited: set[Node] = set()
    for view in views:
        for node in view:
            if node in visited:
                raise InputError(
                    f"{node.name} ({node.type}): appears twice; share() makes another node with its parameters, "
                    "clone() one with its own"
                )
            visited.add(node)


def _text(view: GraphView) -> str:
    return " -> ".join(f"{node.name} ({node.type})" for node in view.nodes[:3]) + (
        " …" if len(view) > 3 else ""
    )
