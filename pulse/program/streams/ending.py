"""The end of a stream, from the number of frames of its inputs."""

from collections.abc import Mapping, Sequence

from pulse.dim import Symbol, TDim
from pulse.errors import InputError
from pulse.interface import Port
from pulse.pulsify.lengths import min_value_for
from pulse.pulsify.limit import MAX_DISTANCE, allows_length


def stream_end(ports: Sequence[Port], totals: Mapping[str, int], symbol: Symbol) -> int:
    """Return the fewest frames of the symbol for which the inputs have ``totals`` frames.

    Raises InputError: no length of the stream fits all of them.
    """
    spans = [_ends_of(port, totals[port.name], symbol) for port in ports]
    for port, span in zip(ports, spans):
        if not span:
            near = [port.length.eval({symbol: end}) for end in (span.stop - 1, span.start)]
            raise InputError(
                f"{port.name} has {totals[port.name]} frames, but the model takes {port.length} of them: end after "
                f"{near[0]} or {near[1]}, or complete the stream with zeros, by complete=True of flush"
            )
    return _common_end(ports, spans, totals)


def missing_frames(
    ports: Sequence[Port], totals: Mapping[str, int], symbol: Symbol, assumptions: Sequence[TDim]
) -> dict[str, int]:
    """Return how many frames each input lacks until the model takes the stream.

    All 0 if the model takes no longer stream near, or no shorter one: too short a stream is not completed.
    Raises InputError: the inputs end at different times.
    """
    spans = [_ends_of(port, totals[port.name], symbol) for port in ports]
    first = _common_end(ports, [span or range(span.start, span.start + 1) for span in spans], totals)
    later, earlier = range(first, first + MAX_DISTANCE), range(first, max(-1, first - MAX_DISTANCE), -1)
    end = next((end for end in later if allows_length(end, symbol, assumptions)), None)
    if end is None or not any(allows_length(end, symbol, assumptions) for end in earlier):
        return dict.fromkeys(totals, 0)
    return {port.name: max(0, port.length.eval({symbol: end}) - totals[port.name]) for port in ports}


def _ends_of(port: Port, total: int, symbol: Symbol) -> range:
    """Return the frames of the symbol for which an input has ``total`` frames, from the first for which it has more if
    there are none.
    """
    return range(min_value_for(port.length, total, symbol), min_value_for(port.length, total + 1, symbol))


def _common_end(ports: Sequence[Port], spans: Sequence[range], totals: Mapping[str, int]) -> int:
    first = max(span.start for span in spans)
    if first >= min(span.stop for span in spans):
        lengths = ", ".join(f"{port.name} with {totals[port.name]} of {port.length}" for port in ports)
        raise InputError(
            f"the inputs end at different times: {lengths} frames; feed the rest of the shorter one"
        )
    return first
