"""Oracles: the offline results with which every proof compares."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.arithmetic import Arithmetic
from pulse.program.backends.reference import ReferenceProgram
from pulse.program.whole_stream import stream_whole
from pulse.pulsify.network import PulsedNetwork
from pulse.typed import TypedNetwork

Feeds: TypeAlias = Mapping[str, Array]
Oracle: TypeAlias = Callable[[Feeds, Arithmetic], dict[str, Array]]
"""Whole inputs to whole outputs; raises InputError for lengths that the model does not take."""


def typed_oracle(model: TypedNetwork, fetches: Sequence[str | OutletId] | None = None) -> Oracle:
    """Return the oracle of a typed model, of its outputs or of any of its wires."""
    return lambda feeds, arithmetic: model.run(feeds, fetches, arithmetic)


def pulsed_oracle(model: PulsedNetwork, typed: TypedNetwork | None = None) -> Oracle:
    """Return the oracle of a pulsed model.

    typed   its offline model before any rewriting; by default the model that it keeps

    A file that was written in pulses no longer has an offline form: its stream, op by op, replaces it.
    """
    if model.is_reopened:
        return lambda feeds, arithmetic: stream_whole(ReferenceProgram(model, arithmetic=arithmetic), feeds)

    def offline(feeds: Feeds, arithmetic: Arithmetic) -> dict[str, Array]:
        model.typed.bind(feeds)
        return (typed or model.typed).run(feeds, arithmetic=arithmetic)

    return offline
