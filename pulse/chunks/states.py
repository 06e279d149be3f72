"""Recognition of states: inputs of a chunk model, each with the output that is its next value."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NoReturn

from pulse.chunks.state_names import NameRule, looks_like_state, next_names
from pulse.errors import PulsifyError
from pulse.support.naming import require_name
from pulse.support.record import record
from pulse.support.wording import spell


@record
class CallState:
    """A state: its input, the output with its next value, and why these are a pair."""

    input: str
    output: str
    reason: str

    def __str__(self) -> str:
        return f"{self.input}={self.output}"


@record
class Candidates:
    """The inputs and outputs that may be paired.

    inputs        names, in the order of the model
    outputs       likewise
    fits          whether an output can be the next value of an input: they have one type and shape
    can_stream    whether an input's shape can be that of a chunk of a stream
    is_floating   whether an input has floating values; integers may be a length, a rate or an index as well
    shapes_known  whether they are, so that they may identify states that names do not
    signals       inputs that are not states, according to the user
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    fits: Callable[[str, str], bool]
    can_stream: Callable[[str], bool]
    is_floating: Callable[[str], bool]
    shapes_known: bool = True
    signals: Collection[str] = ()

    def pairs(self) -> tuple[CallState, ...]:
        """Return the pairs, by these rules in turn.

        1. By name (``NAME_RULES``), type and shape being equal. Where the rule also fits a signal before and after,
           the input is a state if a word of its name says so or if its shape cannot be a chunk's; the model's first
           input is else the stream.
        2. By shape, if all shapes are known and no state has a name: a floating input that cannot be a chunk, and the
           one output of its form.

        Raises PulsifyError: an input may be a state, a stream or a constant, and nothing tells which.
        """
        by_name = self._pair_by_name()
        by_shape = self._pair_by_shape(by_name)
        order = list(self.inputs)
        return tuple(sorted((*by_name, *by_shape), key=lambda pair: order.index(pair.input)))

    def find_given(self, states: Mapping[str, str]) -> tuple[CallState, ...]:
        """Return the pairs that the user names. Raises PulsifyError: they do not fit the model."""
        for name, other in states.items():
            require_name("input", name, self.inputs, PulsifyError, f"state {name}={other}")
            require_name("output", other, self.outputs, PulsifyError, f"state {name}={other}")
        if len(set(states.values())) < len(states):
            raise PulsifyError("two states have the same output as their next value; name each output once")
        return tuple(CallState(name, other, "as given") for name, other in states.items())

    def _pair_by_name(self) -> list[CallState]:
        pairs: list[CallState] = []
        doubtful: list[tuple[str, str]] = []
        for name in self.inputs:
            output = self._next_output(name, {pair.output for pair in pairs})
            if output is None or name in self.signals:
                continue
            other, rule = output
            if rule.is_certain or looks_like_state(name) or not self.can_stream(name):
                pairs.append(CallState(name, other, "by name"))
            elif name != self.inputs[0]:
                doubtful.append((name, other))
        if doubtful:
            self._refuse(doubtful, pairs)
        return pairs

    def _next_output(self, name: str, paired_outputs: set[str]) -> tuple[str, NameRule] | None:
        for other, rule in next_names(name):
            if other in self.outputs and other not in paired_outputs and self.fits(name, other):
                return other, rule
        return None

    def _pair_by_shape(self, by_name: Sequence[CallState]) -> list[CallState]:
        states, nexts = {pair.input for pair in by_name}, {pair.output for pair in by_name}
        inputs = [name for name in self.inputs if name not in states]
        outputs = [name for name in self.outputs if name not in nexts]
        if not self.shapes_known or len(inputs) < 2 or len(outputs) < 2:
            return []
        pairs: list[CallState] = []
        doubtful: list[tuple[str, str]] = []
        for name in inputs:
            fitting = [other for other in outputs if self.fits(name, other)]
            rivals = [other for other in inputs if fitting and self.fits(other, fitting[0])]
            if not fitting or name in self.signals:
                continue
            is_only = len(fitting) == len(rivals) == 1 and not states
            if is_only and self.is_floating(name) and not self.can_stream(name):
                pairs.append(CallState(name, fitting[0], "by shape"))
            elif not self.can_stream(name) or name != inputs[0]:
                doubtful.append((name, fitting[rivals.index(name) % len(fitting)]))
        if doubtful:
            self._refuse(doubtful, [*by_name, *pairs])
        return pairs

    def _refuse(self, doubtful: Sequence[tuple[str, str]], pairs: Sequence[CallState]) -> NoReturn:
        every = spell("states", {**{pair.input: pair.output for pair in pairs}, **dict(doubtful)})
        names = [name for name, _ in doubtful]
        streams = [name for name in names if self.can_stream(name)]
        constants = [name for name in names if name not in streams]
        detected = ", ".join(map(str, pairs)) or "none"
        roles = " or ".join(
            role for role, members in (("a stream", streams), ("a constant", constants)) if members
        )
        ways = [f"name all states, as in {every}"]
        if constants:
            ways.append(f"give a constant its value, as in {spell('constants', {constants[0]: 'VALUE'})}")
        others = {pair.input: pair.output for pair in pairs}
        ways.append(
            f"{spell('states', others)} if there are no others"
            if others
            else f"{spell('states', {})} if there are none"
        )
        raise PulsifyError(
            f"{', '.join(names)}: may be a state or {roles}, and neither name nor shape decides (states found: "
            f"{detected}); {'; '.join(ways)}"
        )

    def _inventory(self) -> str:
        return f"inputs are {', '.join(self.inputs)}; outputs are {', '.join(self.outputs)}"
