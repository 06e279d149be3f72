"""Pictures of graphs as Graphviz DOT: boxes in groups by the scopes of their names, and arrows."""

from collections.abc import Sequence
from dataclasses import field

from pulse.support.printable import printable
from pulse.support.record import record

SCOPE = "/"
"""The separator of the name scopes of a node."""


@record(frozen=False)
class _Group:
    """The boxes of one scope, and the scopes in it."""

    boxes: list[str] = field(default_factory=list[str])
    inner: "dict[str, _Group]" = field(default_factory=dict[str, "_Group"])


class Picture:
    """A graph that is drawn: boxes first, then arrows between them."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._top = _Group()
        self._arrows: list[str] = []

    def add_box(
        self, key: str, label: Sequence[str], name: str = "", shape: str = "", tooltip: str = ""
    ) -> None:
        """Add a box to the groups of its name: ``a/b/c`` is in b, which is in a."""
        attributes = [f"label={quote(*label)}"]
        attributes += [f"shape={shape}"] if shape else []
        attributes += [f"tooltip={quote(tooltip)}"] if tooltip else []
        group = self._top
        for scope in [part for part in name.split(SCOPE)[:-1] if part]:
            group = group.inner.setdefault(scope, _Group())
        group.boxes.append(f"{key} [{', '.join(attributes)}];")

    def add_arrow(self, start: str, end: str, label: str = "", dashed: bool = False) -> None:
        """Add an arrow between two boxes."""
        attributes = [f"label={quote(label)}"] if label else []
        attributes += ["style=dashed"] if dashed else []
        suffix = f" [{', '.join(attributes)}]" if attributes else ""
        self._arrows.append(f"  {start} -> {end}{suffix};")

    def text(self) -> str:
        """Return the picture as Graphviz reads it."""
        lines = [f"digraph {quote(self._title)} {{", "  node [shape=box];"]
        count = 0
        stack: list[tuple[_Group, int, str]] = [(self._top, 1, "")]
        closing: list[str] = []
        while stack:
            group, depth, name = stack.pop()
            if group is _END:
                lines.append(closing.pop())
                continue
            indent = "  " * depth
            if name:
                outer = "  " * (depth - 1)
                lines += [f"{outer}subgraph cluster_{count} {{", f"{indent}label={quote(name)};"]
                closing.append(f"{outer}}}")
                stack.append((_END, 0, ""))
                count += 1
            lines += [f"{indent}{box}" for box in group.boxes]
            stack += [(inner, depth + 1, scope) for scope, inner in reversed(group.inner.items())]
        return "\n".join([*lines, *self._arrows, "}"]) + "\n"


_END = _Group()
"""The position at which a group is closed."""


def quote(*lines: str) -> str:
    """Return a Graphviz string that keeps lines, with control characters escaped."""
    texts = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(texts) + '"'
