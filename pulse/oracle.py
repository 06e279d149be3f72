"""What whole inputs should give: the offline side of every proof."""

from collections.abc import Callable
from typing import TypeAlias

from pulse.chunks.loop import author_loop
from pulse.facts import Array
from pulse.program.compiler import compile_model
from pulse.program.whole import streamed
from pulse.pulsify.model import PulsedModel
from pulse.typed import TypedModel

Oracle: TypeAlias = Callable[[dict[str, Array]], dict[str, Array]]
"""Whole inputs to whole outputs; raises InputError for lengths that the model does not take."""


def oracle_of(model: PulsedModel, typed: TypedModel | None = None) -> Oracle:
    """The oracle of a pulsed model.

    typed   the offline model that it was made of; by default the one that it keeps

    A model of chunks is run as its author would, chunk by chunk. A file that was written in pulses has no offline form
    any more: its stream, op by op, stands for it.
    """
    if model.chunks is not None:
        return lambda feeds: author_loop(model, feeds)
    if model.registers:
        return lambda feeds: streamed(compile_model(model, "numpy"), feeds)
    return lambda feeds: _offline(model, typed or model.typed, feeds)


def _offline(model: PulsedModel, typed: TypedModel, feeds: dict[str, Array]) -> dict[str, Array]:
    model.typed.bind(feeds)
    return typed.run(feeds)
