"""The end of a stream, from the number of frames of its inputs."""

from collections.abc import Mapping, Sequence

from pulse.dim import Symbol
from pulse.errors import InputError
from pulse.interface import Port
from pulse.pulsify.lengths import min_value_for


def stream_end(ports: Sequence[Port], totals: Mapping[str, int], symbol: Symbol) -> int:
    """Return the fewest frames of the symbol for which the inputs have ``totals`` frames.

    Raises InputError: no length of the stream fits all of them.
    """
    first = max(min_value_for(port.length, totals[port.name], symbol) for port in ports)
    last = min(min_value_for(port.length, totals[port.name] + 1, symbol) - 1 for port in ports)
    if first > last:
        lengths = ", ".join(f"{port.name} with {totals[port.name]} of {port.length}" for port in ports)
        raise InputError(
            f"the inputs end at different times: {lengths} frames; feed the rest of the shorter one"
        )
    return first
