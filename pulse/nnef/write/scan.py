"""A call of ``tract_core_scan`` under construction: a body that runs for every piece of its inputs."""

from dataclasses import field

from pulse.nnef.syntax import Call, Expression, Name
from pulse.nnef.write.graph import Scope
from pulse.support.record import record


@record(eq=False)
class ScanOperationWriter:
    """A scan under construction.

    outer  the scope around it
    name   the name of its body
    inner  the scope of the body
    """

    outer: Scope
    name: str
    inner: Scope
    _parameters: list[str] = field(default_factory=list[str])
    _scanned: list[Expression] = field(default_factory=list["Expression"])
    _full: list[Expression] = field(default_factory=list["Expression"])
    _states: list[tuple[str, Name, str]] = field(default_factory=list[tuple[str, Name, str]])
    _results: list[tuple[str, int | None, int]] = field(default_factory=list[tuple[str, "int | None", int]])

    @classmethod
    def begin(cls, outer: Scope, name: str) -> "ScanOperationWriter":
        """Return a scan with an empty body."""
        return cls(outer, name, outer.inner())

    def add_slice(self, name: str, value: Name, axis: int, chunk: int) -> Name:
        """Add a wire to the body that is a piece of one around it; return its name."""
        inside = self._parameter(name)
        self._scanned.append((inside.text, value, axis, chunk))
        return inside

    def add_whole(self, name: str, value: Name) -> Name:
        """Add a wire to the body that is the whole of one around it; return its name."""
        inside = self._parameter(name)
        self._full.append((inside.text, value))
        return inside

    def add_state(self, name: str, initial: Name, result: str) -> Name:
        """Add a state to the body: first ``initial``, then the previous value of the body's wire ``result``."""
        inside = self._parameter(name)
        self._states.append((inside.text, initial, result))
        return inside

    def add_result(self, name: str, axis: int | None, chunk: int) -> None:
        """Add an output: the body's wire ``name`` of all iterations joined along an axis, or of the last one."""
        self._results.append((name, axis, chunk))

    def finish(self, targets: list[str], resets: bool) -> None:
        """Add the assignment to the scope around; ``resets``: every run begins with the initial states."""
        names = [
            *dict.fromkeys(
                [*(result for _, _, result in self._states), *(name for name, _, _ in self._results)]
            )
        ]
        identifiers: dict[str, str] = {}
        for name in names:
            identifier = self.inner.wire(name)
            if identifier.text in identifiers.values() or identifier.text in self._parameters:
                copy = self.outer.shared.identifier(f"{name}.copy")
                self.inner.assign(copy, Call("copy", (identifier,)))
                identifier = Name(copy)
            identifiers[name] = identifier.text
        body = self.inner.fragment(self.name, self._parameters, list(identifiers.values()))
        full = [*self._full, *((inside, outside) for inside, outside in self.inner.captured.items())]
        states: list[Expression] = [
            (inside, initial, identifiers[result]) for inside, initial, result in self._states
        ]
        results: list[Expression] = [
            (identifiers[name], "last", 0, 1) if axis is None else (identifiers[name], "full", axis, chunk)
            for name, axis, chunk in self._results
        ]
        call = Call(
            "tract_core_scan",
            (),
            (
                ("body", body),
                ("scan", self._scanned),
                ("full", full),
                ("state", states),
                ("output", results),
                ("skip", 0),
                ("reset_every_turn", resets),
                ("external_state", False),
            ),
        )
        self.outer.assign(targets[0] if len(targets) == 1 else tuple(targets), call)

    def _parameter(self, name: str) -> Name:
        inside = self.inner.declare(name)
        self._parameters.append(inside)
        return Name(inside)
