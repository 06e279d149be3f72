"""The end of a stream, from the number of frames of its inputs."""

from collections.abc import Mapping, Sequence
from math import ceil

from pulse.dim import Symbol, TDim
from pulse.errors import InputError
from pulse.interface import Port
from pulse.pulsify.lengths import min_value_for
from pulse.pulsify.stream_lengths import MAX_TRIED_LENGTHS, allows_length
from pulse.support.record import record
from pulse.support.wording import count_of


def stream_end(ports: Sequence[Port], totals: Mapping[str, int], symbol: Symbol) -> int:
    """Return the fewest frames of the symbol for which the inputs have ``totals`` frames.

    Raises InputError: no length of the stream fits all of them.
    """
    spans = [_ends_of(port, totals[port.name], symbol) for port in ports]
    for port, span in zip(ports, spans):
        if not span:
            near = [port.length.eval({symbol: end}) for end in (span.stop - 1, span.start)]
            raise InputError(
                f"{port.name} has {count_of(totals[port.name], 'frame')}, but the model takes {port.length} of them: "
                "end after "
                f"{near[0]} or {near[1]}, or complete the stream with zeros, by complete=True of flush"
            )
    return _common_end(ports, spans, totals)


@record
class Completion:
    """How the inputs of a stream are continued to a length that the model takes.

    missing  input -> the frames of zeros that it lacks
    frames   as many frames of the symbol
    whole    the longest length that the model takes without them
    """

    missing: Mapping[str, int]
    frames: int
    whole: int


def complete_inputs(
    ports: Sequence[Port], totals: Mapping[str, int], symbol: Symbol, assumptions: Sequence[TDim]
) -> Completion | None:
    """Return how the inputs are continued, or None.

    None if nothing is missing, or if the model takes no longer stream near, or no shorter one: too short a stream is
    not completed.

    Raises InputError: the inputs end at different times.
    """

    def is_whole(end: int) -> bool:
        """Return whether the model takes a length, and each input is shorter in a shorter stream."""
        lengths = [(port, port.length.eval({symbol: end})) for port in ports]
        return allows_length(end, symbol, assumptions) and all(
            min_value_for(port.length, length, symbol) == end for port, length in lengths
        )

    spans = [_ends_of(port, totals[port.name], symbol) for port in ports]
    first = _common_end(ports, [span or range(span.start, span.start + 1) for span in spans], totals)
    if all(spans) and allows_length(first, symbol, assumptions):
        return None
    end = next((end for end in range(first, first + MAX_TRIED_LENGTHS) if is_whole(end)), None)
    whole = next(
        (end for end in range(first - 1, max(-1, first - MAX_TRIED_LENGTHS), -1) if is_whole(end)), None
    )
    if end is None or whole is None:
        return None
    missing = {port.name: max(0, port.length.eval({symbol: end}) - totals[port.name]) for port in ports}
    finest = max(ports, key=lambda port: port.rate)
    frames = ceil(missing[finest.name] / finest.rate)
    if any(abs(missing[port.name] - frames * port.rate) >= 1 for port in ports):
        raise _different_ends(ports, totals)
    return Completion(missing, frames, whole)


def _ends_of(port: Port, total: int, symbol: Symbol) -> range:
    """Return the frames of the symbol for which an input has ``total`` frames.

    If there are none, the range is empty and begins at the first for which it has more.
    """
    return range(min_value_for(port.length, total, symbol), min_value_for(port.length, total + 1, symbol))


def _common_end(ports: Sequence[Port], spans: Sequence[range], totals: Mapping[str, int]) -> int:
    first = max(span.start for span in spans)
    if first >= min(span.stop for span in spans):
        raise _different_ends(ports, totals)
    return first


def _different_ends(ports: Sequence[Port], totals: Mapping[str, int]) -> InputError:
    lengths = ", ".join(f"{port.name} with {totals[port.name]} of {port.length}" for port in ports)
    return InputError(
        f"the inputs end at different times: {lengths} frames; feed the rest of the shorter one"
    )
