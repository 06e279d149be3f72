"""The author's loop: what a chunk model means, run by the numpy oracle."""

from collections.abc import Mapping

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.ops.arithmetic import NATIVE, Arithmetic
from pulse.ops.stateful import frames_at
from pulse.program.ending import stream_end
from pulse.pulsify.model import Port, PulsedModel
from pulse.typed import TypedModel


def author_loop(
    model: PulsedModel,
    feeds: Mapping[str, Array],
    typed: TypedModel | None = None,
    arithmetic: Arithmetic = NATIVE,
) -> dict[str, Array]:
    """A call of the typed model for each chunk: frames of the past in front, states handed on, zeros after the end.

    feeds    every input whole
    typed    what is called; by default what the chunk model keeps
    arithmetic  as of ``TypedModel.run``
    returns  each output: its frames without those of the delay; one that has no frames as of the last chunk
    """
    assert model.chunks is not None, "not a chunk model"
    ports = [port for port in model.inputs if port.streams]
    totals = {port.name: feeds[port.name].shape[port.axis or 0] for port in ports}
    end = stream_end(ports, totals, model.symbol)
    context, nexts = model.chunks.context, {pair.input: pair.output for pair in model.chunks.pairs}
    calls = max(-(-end // model.pulse), *(_calls(port, end, model) for port in model.outputs))
    padded = {port.name: _padded(feeds[port.name], port, calls, context.get(port.name, 0)) for port in ports}
    states = {register.name: register.initial for register in model.registers}
    wanted = list(dict.fromkeys([*(port.name for port in model.outputs), *(nexts[name] for name in states)]))
    made: list[dict[str, Array]] = []
    for number in range(calls):
        chunk = {
            port.name: frames_at(
                padded[port.name],
                port.axis or 0,
                number * port.frames,
                (number + 1) * port.frames + context.get(port.name, 0),
            )
            for port in ports
        }
        made.append((typed or model.typed).run({**feeds, **states, **chunk}, wanted, arithmetic))
        states = {name: made[-1][nexts[name]] for name in states}
    return {
        port.name: _valid([outputs[port.name] for outputs in made], port, end, model)
        for port in model.outputs
    }


def _frames(port: Port, end: int, model: PulsedModel) -> int:
    return port.length.eval({model.symbol: end}) if port.streams else 0


def _calls(port: Port, end: int, model: PulsedModel) -> int:
    frames = _frames(port, end, model)
    return -(-(port.delay + frames) // port.frames) if frames else 0


def _padded(array: Array, port: Port, calls: int, context: int) -> Array:
    widths = [(0, 0)] * array.ndim
    axis = port.axis or 0
    widths[axis] = context, calls * port.frames - array.shape[axis]
    return np.pad(array, widths)


def _valid(made: list[Array], port: Port, end: int, model: PulsedModel) -> Array:
    if not made:
        raise InputError(f"{port.name}: nothing is known of it in a stream without frames")
    if port.axis is None:
        return made[-1]
    return frames_at(
        np.concatenate(made, port.axis), port.axis, port.delay, port.delay + _frames(port, end, model)
    )
